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
frag.arrive        atomics:ArriveOp            roles              grids                 k.arrive
frag.assert        reporting:AssertOp          reporting:assert_  tiles:assert_         k.assert_
frag.atomic        atomics:AtomicOp            indexed            indexed               k.atomic
frag.await         in_flight:AwaitOp           products:await_    rings:await_          ring.wait,flight.wait
frag.barrier       memory:BarrierOp            memories           tiles:nothing         k.barrier
frag.block_id      memory:BlockIdOp            scalars            tiles                 k.block_id
frag.broadcast     reductions:BroadcastOp      tiles              reductions            t.broadcast,t.broadcast_to  patterns=canonical
frag.cast          pointwise:CastOp            tiles              tiles:cast_tile       t.cast                      patterns=canonical
frag.cluster_rank  kernels:ClusterRankOp       roles:rank         grids:rank            k.cluster_rank
frag.commit        memory:CommitOp             memories           tiles:nothing         k.commit
frag.concat        shapes:ConcatenateOp        tiles:rename       tiles                 k.concatenate               patterns=canonical
frag.convert       pointwise:ConvertOp         tiles              tiles                 k.convert                   patterns=canonical
frag.coordinates   lanes:CoordinatesOp         lanes              -                     lane.coordinates            in_lanes=region
frag.copy          memory:CopyOp               memories           tiles                 k.copy
frag.fill          pointwise:FillOp            tiles              tiles                 k.fill
frag.for_tiles     raster:ForTilesOp           -                  grids                 k.for_tiles
frag.gather        indexed:GatherOp            indexed            indexed               k.gather
frag.grid_size     raster:GridSizeOp           roles              grids                 k.grid_size
frag.head          memory:HeadOp               memories           grids                 k.head
frag.in_flight     in_flight:InFlightOp        products           tiles                 k.in_flight
frag.iota          generated:IotaOp            tiles              reductions            k.iota
frag.join          shapes:JoinOp               tiles:rename       tiles                 k.join                      patterns=canonical
frag.lanes         lanes:LanesOp               lanes:region       lanes.region          k.lanes
frag.launch        kernels:LaunchOp            -                  control               -
frag.load          tiles:LoadOp                memories           tiles:load_tile       k.load
frag.map           pointwise:MapOp             tiles:map_         tiles:map_            k.map,k.select,k.exp
frag.matmul        matmul:MatmulOp             -                  tiles                 k.matmul
frag.mma           products:MmaOp              products           products              k.mma
frag.mma_batched   products:MmaBatchedOp       -                  products              k.mma
frag.mma_sparse    sparse:MmaSparseOp          products           products              k.mma_sparse
frag.no_slot       rings:NoSlotOp              rings              rings                 ring.no_slot
frag.part          rings:PartOp                rings:part_of      rings                 slot.parts
frag.pass_turn     rings:PassTurnOp            roles              rings                 k.turn
frag.pointer       lanes:PointerOp             lanes              -                     lane.pointer                in_lanes=memory
frag.print         reporting:PrintOp           reporting:print_   tiles:print_          k.print
frag.publish       rings:PublishOp             rings              rings                 slot.publish
frag.random        generated:RandomOp          tiles              tiles                 k.random
frag.reduce        reductions:ReduceOp         tiles              reductions:reduction  t.sum,t.max,t.argmax
frag.reduce_by     reductions:ReduceByOp       tiles              reductions            k.reduce
frag.release       rings:ReleaseOp             rings              rings                 slot.release
frag.reshape       shapes:ReshapeOp            tiles:rename       tiles                 t.reshape                   patterns=canonical
frag.ring          rings:RingOp                rings              rings                 k.ring
frag.roles         roles:RolesOp               roles              rings                 k.role
frag.scan          scan:ScanOp                 tiles              reductions            t.cumsum,t.cummax
frag.scatter       indexed:ScatterOp           indexed            indexed               k.scatter
frag.slice         shapes:SliceTileOp          tiles:rename       tiles:slice_          t.__getitem__               patterns=canonical:slice_
frag.split         shapes:SplitOp              tiles:rename       tiles                 t.split                     patterns=canonical
frag.store         tiles:StoreOp               memories           tiles:store_tile      k.store
frag.take_turn     rings:TakeTurnOp            roles              rings                 k.turn
frag.tcgen05_copy  tensor_scales:TensorCopyOp  tensor_memory:copy  tensor_memory:copy    k.tcgen05_copy
frag.tcgen05_load  tensor_memory:TensorLoadOp  tensor_memory:load  tensor_memory:load    k.tcgen05_load
frag.tcgen05_mma   tensor_memory:TensorMmaOp   tensor_memory:mma   tensor_memory:mma     k.tcgen05_mma
frag.tcgen05_store  tensor_memory:TensorStoreOp  tensor_memory:store  tensor_memory:store  k.tcgen05_store
frag.transpose     shapes:TransposeOp          tiles:rename       tiles                 t.transpose                 patterns=canonical
frag.undefined     in_flight:UndefinedOp       products           tiles                 k.undefined
frag.view          memory:ViewOp               memories           tiles                 k.view
frag.wait          memory:WaitOp               memories           tiles:nothing         k.wait
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
    "frag.ring": "fragir.dialects.frag.rings:RingType",
    "frag.shared": "fragir.dialects.frag.attributes:SharedAttr",
    "frag.slot": "fragir.dialects.frag.rings:SlotType",
    "frag.tensor": "fragir.dialects.frag.attributes:TensorMemoryAttr",
    "frag.tile": "fragir.dialects.frag.types:TileType",
}

#: What else the package exports, by module.
FRAG_NAMES = places(
    """
attributes     LayoutAttr MmaFragment sizes_error sizes_of
grid           DIVISIBLE BlockCount Extent fixed_extents least_of promises_error promises_of size_names
memory         Dimension
memory_layout  matrix_layout memory_layout strides_of
types          MOST_DIMENSIONS held_tile holds_operand holds_scales is_shared is_tensor_memory tile_of
""",
    "fragir.dialects.frag",
)

PTX = rows(
    """
operation        cls                        writer               in_lanes
ptx.assert_fail  reporting:AssertFailOp     reporting            -
ptx.atomic       memory:AtomicOp            memory               memory
ptx.barrier      exchange:NamedBarrierOp    exchange             exchange:nothing
ptx.bitcast      registers:BitcastOp        values               registers
ptx.compare      registers:CompareOp        -                    registers
ptx.concat       registers:ConcatOp         values               registers:together
ptx.copy         registers:CopyOp           values               registers
ptx.cp_async     memory:CpAsyncOp           memory               -
ptx.cvt          registers:CvtOp            -                    registers
ptx.descriptor   tensor:DescriptorOp        products             -
ptx.end          foreign:EndOp              foreign              -
ptx.flip         memory:FlipOp              memory               -
ptx.function     foreign:FunctionOp         -                    -
ptx.ldmatrix     memory:LdmatrixOp          memory               -
ptx.load         memory:LoadOp              memory               memory
ptx.mma          tensor:MmaOp               products             -
ptx.mma_sparse   tensor:MmaSparseOp         products             -
ptx.movmatrix    exchange:MovmatrixOp       exchange             exchange
ptx.mul_wide     memory:MulWideOp           memory               memory
ptx.nibbles      exchange:NibblesOp         exchange             -
ptx.offset       memory:OffsetOp            memory               memory
ptx.offset_wide  memory:OffsetWideOp        memory               memory:offset
ptx.op           instruction:InstructionOp  foreign:instruction  statements:statement
ptx.pack         registers:PackOp           values               registers:together
ptx.permute      exchange:PermuteOp         exchange             exchange
ptx.printf       reporting:PrintfOp         reporting:print_     -
ptx.select       registers:SelectOp         -                    registers
ptx.shared       memory:SharedOp            memory               memory
ptx.shuffle      exchange:ShuffleOp         exchange             exchange
ptx.shuffle_xor  exchange:ShuffleXorOp      exchange             exchange
ptx.slice        registers:SliceOp          values:slice_        registers:slice_
ptx.special      registers:SpecialOp        values               registers
ptx.splat        registers:SplatOp          values               registers
ptx.stmatrix     memory:StmatrixOp          memory               -
ptx.store        memory:StoreOp             memory               memory
ptx.sync         memory:SyncOp              products             exchange:nothing
ptx.text         foreign:TextOp             foreign              -
ptx.undefined    foreign:UndefinedOp        foreign              -
ptx.unpack       registers:UnpackOp         values               registers
ptx.wgmma        tensor:WgmmaOp             products             -
ptx.wgmma_wait   tensor:WgmmaWaitOp         products             -
ptx.zero         registers:ZeroOp           values               registers
""",
    "fragir.dialects.ptx",
    in_rooms=True,
)

#: Types and attributes, by their names in programs.
PTX_ATTRIBUTES = {
    "ptx.bits": "fragir.dialects.ptx.types:BitsType",
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
operation      lowering        meaning         in_lanes       writer          layouts
scf.condition  control         -               -              control         -
scf.for        control:loop    control:loop    region:loop    control:loop    relations:ForLayouts
scf.if         control:branch  control:branch  region:branch  control:branch  relations:IfLayouts
scf.while      control:while_  control:while_  region:while_  control:while_  relations:WhileLayouts
scf.yield      control:yield_  -               -              control:yield_  -
""",
    "fragir.dialects",
    in_rooms=True,
)

_SCALARS = rows(
    """
operation         lowering         meaning               in_lanes              writer
affine.apply      -                contraction           -                     -
affine.min        -                contraction:apply     -                     -
arith.addi        scalars:integer  -                     -                     -
arith.constant    scalars          scalars               -                     values
arith.divui       scalars:integer  -                     -                     -
arith.muli        scalars:integer  -                     -                     -
arith.remui       scalars:integer  -                     -                     -
arith.select      -                -                     registers:select_one  -
arith.subi        scalars:integer  -                     -                     -
cf.assert         -                tiles:assert_element  -                     -
cf.br             -                -                     -                     foreign:branch
cf.cond_br        -                -                     -                     foreign:conditional_branch
func.call         -                control               -                     -
func.return       scalars:end      buffers:returned      -                     values:end
vector.broadcast  scalars          -                     registers             -
vector.extract    scalars          -                     registers             -
vector.insert     scalars          -                     registers             -
vector.shuffle    scalars          -                     registers             -
""",
    "fragir.dialects",
    in_rooms=True,
)

_MEMORIES = rows(
    """
operation                cls                      lowering              meaning           in_lanes
memref.alloc             -                        memories              buffers           -
memref.alloca            -                        -                     buffers:alloc     -
memref.cast              registration:CastReader  memories              buffers:cast      -
memref.collapse_shape    -                        memories:collapse     buffers:collapse  -
memref.copy              registration:CopyReader  -                     buffers           -
memref.dealloc           -                        memories              buffers:nothing   -
memref.dim               -                        memories              buffers           -
memref.expand_shape      -                        memories:expand       buffers:expand    -
memref.load              -                        indexed:load_scalar   buffers           memory:load_number
memref.reinterpret_cast  -                        memories:reinterpret  -                 -
memref.store             -                        -                     buffers           -
memref.subview           -                        memories              buffers           -
""",
    "fragir.dialects.memories",
    in_rooms=True,
)

_TENSORS = rows(
    """
operation              cls                               meaning
linalg.broadcast       linalg.shaped:LinalgBroadcastOp   -
linalg.elementwise     linalg.named_table:ElementwiseOp  -
linalg.index           -                                 contraction
linalg.map             linalg.shaped:LinalgMapOp         -
linalg.pack            tensors.packing:LinalgPackOp      buffers
linalg.reduce          linalg.shaped:LinalgReduceOp      -
linalg.softmax         linalg.shaped:SoftmaxOp           contraction
linalg.unpack          tensors.packing:LinalgUnpackOp    buffers
tensor.cast            -                                 buffers:cast
tensor.collapse_shape  -                                 buffers
tensor.concat          -                                 buffers
tensor.dim             -                                 buffers
tensor.empty           -                                 buffers
tensor.expand_shape    -                                 buffers
tensor.extract         -                                 buffers
tensor.extract_slice   -                                 buffers
tensor.from_elements   -                                 buffers
tensor.generate        tensors.packing:GenerateOp        buffers
tensor.insert          -                                 buffers
tensor.insert_slice    -                                 buffers
tensor.pack            tensors.packing:TensorPackOp      buffers
tensor.pad             -                                 buffers
tensor.reshape         tensors.packing:TensorReshapeOp        buffers
tensor.splat           -                                 buffers
tensor.unpack          tensors.packing:TensorUnpackOp    buffers
""",
    "fragir.dialects",
    in_rooms=True,
)

_EXTENSIONS = rows(
    """
operation                cls                             meaning
iree_linalg_ext.fft      tensors.extensions:IreeFft      extensions
iree_linalg_ext.scan     tensors.extensions:IreeScan     extensions
iree_linalg_ext.scatter  tensors.extensions:IreeScatter  extensions
iree_linalg_ext.sort     tensors.extensions:IreeSort     extensions
iree_linalg_ext.yield    tensors.extensions:IreeYield    -
tm_tensor.scan           tensors.extensions:TmScan       extensions
tm_tensor.scatter        tensors.extensions:TmScatter    extensions
tm_tensor.sort           tensors.extensions:TmSort       extensions
tm_tensor.yield          tensors.extensions:TmYield      -
""",
    "fragir.dialects",
    in_rooms=True,
)

#: Of other dialects. A class stands where fragir's takes the place of xDSL's, or xDSL has none.
OTHERS = (*_BRANCHES, *_SCALARS, *_MEMORIES, *_TENSORS, *_EXTENSIONS)


def of_dialect(name: str) -> list[Row]:
    """The rows of `OTHERS` that are a dialect's."""
    return [row for row in OTHERS if row.operation.startswith(f"{name}.")]
