# ruff: noqa: E501 - tables
"""Every operation that fragir knows, a row each: where its class stands, what it becomes and means.

Columns are those of `fragir.late_dialect.Row`. Classes are counted from the dialect's package,
lowerings from `fragir.passes.lowering.operations`, PTX from `fragir.passes.writer.operations`,
meanings from `fragir.reference`, those in lanes from `fragir.reference.lanes`. docs/ir.md shows
the operations with their operands and results; tests hold both against the files. Besides, every
operation of arith and math has a meaning (`fragir.reference.scalars`), and every structured one of
linalg (`fragir.reference.contraction`).
"""

from __future__ import annotations

from fragir.late_dialect import Row, places, rows

FRAG = rows(
    """
operation          cls                         lowering           meaning               words
frag.acquire       rings:AcquireOp             rings              rings                 ring.acquire
frag.arrive        atomics:ArriveOp            grids              grids                 k.arrive
frag.assert        reporting:AssertOp          reporting:assert_  reporting:assert_     k.assert_
frag.atomic        atomics:AtomicOp            indexed            indexed               k.atomic
frag.await         in_flight:AwaitOp           in_flight:await_   rings:await_          ring.wait,flight.wait
frag.barrier       memory:BarrierOp            memories           tiles:nothing         k.barrier
frag.block_id      memory:BlockIdOp            scalars            tiles                 k.block_id
frag.broadcast     reductions:BroadcastOp      reductions         reductions            t.broadcast,t.broadcast_to  patterns=canonical
frag.cast          pointwise:CastOp            tiles              tiles:cast_tile       t.cast                      patterns=canonical
frag.cluster_rank  kernels:ClusterRankOp       grids:rank         grids:rank            k.cluster_rank
frag.commit        memory:CommitOp             copying            tiles:nothing         k.commit
frag.concat        shapes:ConcatenateOp        shapes:rename      shapes                k.concatenate               patterns=canonical
frag.convert       pointwise:ConvertOp         tiles              tiles                 k.convert                   patterns=canonical
frag.coordinates   lanes:CoordinatesOp         lanes              -                     lane.coordinates            in_lanes=region
frag.copy          memory:CopyOp               copying            tiles                 k.copy
frag.fill          pointwise:FillOp            tiles              tiles                 k.fill
frag.for_tiles     raster:ForTilesOp           -                  grids                 k.for_tiles
frag.gather        indexed:GatherOp            indexed            indexed               k.gather
frag.grid_size     raster:GridSizeOp           grids              grids                 k.grid_size
frag.head          memory:HeadOp               memories           grids                 k.head
frag.in_flight     in_flight:InFlightOp        in_flight          tiles                 k.in_flight
frag.iota          generated:IotaOp            generated          reductions            k.iota
frag.join          shapes:JoinOp               shapes:rename      shapes                k.join                      patterns=canonical
frag.lanes         lanes:LanesOp               lanes:region       lanes.region          k.lanes
frag.launch        kernels:LaunchOp            -                  calls                 -
frag.load          tiles:LoadOp                memories           tiles:load_tile       k.load
frag.map           pointwise:MapOp             tiles:map_         tiles:map_            k.map,k.select,k.exp
frag.matmul        matmul:MatmulOp             -                  tiles                 k.matmul
frag.mma           products:MmaOp              products           products              k.mma
frag.mma_batched   products:MmaBatchedOp       -                  products              k.mma
frag.mma_sparse    sparse:MmaSparseOp          products           products              k.mma_sparse
frag.no_slot       rings:NoSlotOp              rings              rings                 ring.no_slot
frag.part          rings:PartOp                rings:part_of      rings                 slot.parts
frag.pass_turn     rings:PassTurnOp            roles              side_by_side          k.turn
frag.pointer       lanes:PointerOp             lanes              -                     lane.pointer                in_lanes=memory
frag.print         reporting:PrintOp           reporting:print_   reporting:print_      k.print
frag.publish       rings:PublishOp             rings              rings                 slot.publish
frag.random        generated:RandomOp          generated          random                k.random
frag.reduce        reductions:ReduceOp         reductions         reductions:reduction  t.sum,t.max,t.argmax
frag.reduce_by     reductions:ReduceByOp       reductions         reductions            k.reduce
frag.release       rings:ReleaseOp             rings              rings                 slot.release
frag.reshape       shapes:ReshapeOp            shapes:rename      shapes                t.reshape                   patterns=canonical
frag.ring          rings:RingOp                rings              rings                 k.ring
frag.roles         roles:RolesOp               roles              side_by_side          k.role
frag.scan          scan:ScanOp                 reductions         reductions            t.cumsum,t.cummax
frag.scatter       indexed:ScatterOp           indexed            indexed               k.scatter
frag.slice         shapes:SliceTileOp          shapes:rename      shapes:slice_         t.__getitem__               patterns=canonical:slice_
frag.split         shapes:SplitOp              shapes:rename      shapes                t.split                     patterns=canonical
frag.store         tiles:StoreOp               memories           tiles:store_tile      k.store
frag.take_turn     rings:TakeTurnOp            roles              side_by_side          k.turn
frag.transpose     shapes:TransposeOp          shapes:rename      shapes                t.transpose                 patterns=canonical
frag.undefined     in_flight:UndefinedOp       in_flight          tiles                 k.undefined
frag.view          memory:ViewOp               memories           tiles                 k.view
frag.wait          memory:WaitOp               copying            tiles:nothing         k.wait
frag.wgmma         warpgroup_products:WgmmaOp  products           products              k.wgmma,k.wgmma_async
frag.yield         pointwise:YieldOp           lanes:yield_       -                     -
""",
    "fragir.dialects.frag",
    in_rooms=True,
)

#: Types and attributes, by their names in programs.
FRAG_ATTRIBUTES = {
    "frag.dimension": "fragir.dialects.frag.memory:DimensionAttr",
    "frag.grid": "fragir.dialects.frag.grid:GridAttr",
    "frag.in_flight": "fragir.dialects.frag.in_flight:InFlightType",
    "frag.layout": "fragir.dialects.frag.attributes:ExplicitLayoutAttr",
    "frag.least": "fragir.dialects.frag.grid:LeastAttr",
    "frag.mma": "fragir.dialects.frag.attributes:MmaLayoutAttr",
    "frag.packed": "fragir.dialects.elements:PackedType",
    "frag.ring": "fragir.dialects.frag.ring_types:RingType",
    "frag.shared": "fragir.dialects.frag.attributes:SharedAttr",
    "frag.slot": "fragir.dialects.frag.ring_types:SlotType",
    "frag.tile": "fragir.dialects.frag.types:TileType",
}

#: What else the package exports, by module.
FRAG_NAMES = places(
    """
attributes     LayoutAttr MmaFragment sizes_error sizes_of
grid           DIVISIBLE BlockCount Extent fixed_extents least_of promises_error promises_of size_names
memory         Dimension
memory_layout  matrix_layout memory_layout strides_of
types          MOST_DIMENSIONS held_tile is_shared tile_of
""",
    "fragir.dialects.frag",
)

PTX = rows(
    """
operation        cls                        writer                   in_lanes
ptx.assert_fail  reporting:AssertFailOp     reporting                -
ptx.atomic       atomic:AtomicOp            atomics                  memory
ptx.barrier      exchange:NamedBarrierOp    exchange                 exchange:nothing
ptx.bitcast      registers:BitcastOp        naming                   registers
ptx.compare      registers:CompareOp        -                        registers
ptx.concat       registers:ConcatOp         naming                   registers:together
ptx.copy         registers:CopyOp           values                   registers
ptx.cp_async     memory:CpAsyncOp           memory                   -
ptx.cvt          registers:CvtOp            -                        registers
ptx.descriptor   tensor:DescriptorOp        products                 -
ptx.end          foreign:EndOp              foreign                  -
ptx.flip         memory:FlipOp              memory                   -
ptx.function     foreign:FunctionOp         -                        -
ptx.ldmatrix     memory:LdmatrixOp          memory                   -
ptx.load         memory:LoadOp              memory                   memory
ptx.mma          tensor:MmaOp               products                 -
ptx.mma_sparse   sparse:MmaSparseOp         sparse                   -
ptx.movmatrix    exchange:MovmatrixOp       exchange                 exchange
ptx.mul_wide     distances:MulWideOp        distances                memory
ptx.nibbles      exchange:NibblesOp         exchange                 -
ptx.offset       memory:OffsetOp            memory                   memory
ptx.offset_wide  distances:OffsetWideOp     distances                memory:offset
ptx.op           instruction:InstructionOp  instruction:instruction  statements:statement
ptx.pack         registers:PackOp           naming                   registers:together
ptx.permute      exchange:PermuteOp         exchange                 exchange
ptx.printf       reporting:PrintfOp         reporting:print_         -
ptx.select       registers:SelectOp         -                        registers
ptx.shared       memory:SharedOp            memory                   memory
ptx.shuffle      exchange:ShuffleOp         exchange                 exchange
ptx.shuffle_xor  exchange:ShuffleXorOp      exchange                 exchange
ptx.slice        registers:SliceOp          naming:slice_            registers:slice_
ptx.special      registers:SpecialOp        values                   registers
ptx.splat        registers:SplatOp          naming                   registers
ptx.stmatrix     memory:StmatrixOp          memory                   -
ptx.store        memory:StoreOp             memory                   memory
ptx.sync         memory:SyncOp              products                 exchange:nothing
ptx.text         foreign:TextOp             foreign                  -
ptx.undefined    foreign:UndefinedOp        foreign                  -
ptx.unpack       registers:UnpackOp         naming                   registers
ptx.wgmma        tensor:WgmmaOp             products                 -
ptx.wgmma_wait   tensor:WgmmaWaitOp         products                 -
ptx.zero         registers:ZeroOp           values                   registers
""",
    "fragir.dialects.ptx",
    in_rooms=True,
)

#: Types and attributes, by their names in programs.
PTX_ATTRIBUTES = {
    "ptx.bits": "fragir.dialects.ptx.bit_types:BitsType",
    "ptx.ptr": "fragir.dialects.ptx.types:PointerType",
    "ptx.space": "fragir.dialects.ptx.types:SpaceAttr",
    "ptx.tensor_map": "fragir.dialects.ptx.tensor_maps:TensorMapType",
}

#: What else the package exports, by module.
PTX_NAMES = places(
    """
registers  CAST_RULES ORDERED_CASTS
tensor     Scales
types      GLOBAL NO_UNROLL SHARED Space bits length register_bits registers scalar_type vector_type
""",
    "fragir.dialects.ptx",
)

_BRANCHES = rows(
    """
operation      lowering        meaning         in_lanes        writer          layouts
scf.condition  control         -               -               loops           -
scf.for        control:loop    control:loop    control:loop    control:loop    control:ForLayouts
scf.if         control:branch  control:branch  control:branch  control:branch  control:IfLayouts
scf.while      control:while_  control:while_  control:while_  loops:while_    control:WhileLayouts
scf.yield      control:yield_  -               -               control:yield_  -
""",
    "fragir.dialects",
    in_rooms=True,
)

_SCALARS = rows(
    """
operation         lowering         meaning                   in_lanes              writer
affine.apply      -                affine_values             -                     -
affine.min        -                affine_values:apply       -                     -
arith.addi        scalars:integer  -                         -                     -
arith.constant    scalars          scalars                   -                     values
arith.divui       scalars:integer  -                         -                     -
arith.muli        scalars:integer  -                         -                     -
arith.remui       scalars:integer  -                         -                     -
arith.select      -                -                         registers:select_one  -
arith.subi        scalars:integer  -                         -                     -
cf.assert         -                reporting:assert_element  -                     -
cf.br             -                -                         -                     foreign:branch
cf.cond_br        -                -                         -                     foreign:conditional_branch
func.call         -                calls                     -                     -
func.return       scalars:end      buffers:returned          -                     values:end
vector.broadcast  scalars          -                         vectors               -
vector.extract    scalars          -                         vectors               -
vector.insert     scalars          -                         vectors               -
vector.shuffle    scalars          -                         vectors               -
""",
    "fragir.dialects",
    in_rooms=True,
)

_MEMORIES = rows(
    """
operation                cls                 lowering              meaning           in_lanes
memref.alloc             -                   memories              buffers           -
memref.alloca            -                   -                     buffers:alloc     -
memref.cast              readers:CastReader  memories              buffers:same      -
memref.collapse_shape    -                   memories:collapse     buffers:collapse  -
memref.copy              readers:CopyReader  -                     buffers           -
memref.dealloc           -                   memories              buffers:nothing   -
memref.dim               -                   memories              buffers           -
memref.expand_shape      -                   memories:expand       buffers:expand    -
memref.load              -                   indexed:load_scalar   buffers           memory:load_number
memref.reinterpret_cast  -                   memories:reinterpret  -                 -
memref.store             -                   -                     buffers           -
memref.subview           -                   memories              buffers           -
""",
    "fragir.dialects.memories",
    in_rooms=True,
)

_TENSORS = rows(
    """
operation              cls                               meaning
linalg.broadcast       linalg.shaped:LinalgBroadcastOp   -
linalg.elementwise     linalg.named_table:ElementwiseOp  -
linalg.index           -                                 loops
linalg.map             linalg.shaped:LinalgMapOp         -
linalg.pack            tensors.packing:LinalgPackOp      packing
linalg.reduce          linalg.shaped:LinalgReduceOp      -
linalg.softmax         linalg.softmax:SoftmaxOp          softmax
linalg.unpack          tensors.packing:LinalgUnpackOp    packing
tensor.cast            -                                 buffers:same
tensor.collapse_shape  -                                 tensors
tensor.concat          -                                 tensors
tensor.dim             -                                 buffers
tensor.empty           -                                 buffers
tensor.expand_shape    -                                 tensors
tensor.extract         -                                 tensors
tensor.extract_slice   -                                 tensors
tensor.from_elements   -                                 tensors
tensor.generate        tensors.generating:GenerateOp     packing
tensor.insert          -                                 tensors
tensor.insert_slice    -                                 tensors
tensor.pack            tensors.packing:TensorPackOp      packing
tensor.pad             -                                 tensors
tensor.splat           -                                 tensors
tensor.unpack          tensors.packing:TensorUnpackOp    packing
""",
    "fragir.dialects",
    in_rooms=True,
)

#: Of other dialects. A class stands where fragir's takes the place of xDSL's, or xDSL has none.
OTHERS = (*_BRANCHES, *_SCALARS, *_MEMORIES, *_TENSORS)


def of_dialect(name: str) -> list[Row]:
    """The rows of `OTHERS` that are a dialect's."""
    return [row for row in OTHERS if row.operation.startswith(f"{name}.")]
