"""Products of tiles by warps, frag.mma, and of batches of tiles, frag.mma_batched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, TypeAlias, cast

from xdsl.dialects.builtin import StringAttr, UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AnyInt,
    IntVarConstraint,
    IRDLOperation,
    operand_def,
    opt_prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import NoMemoryEffect
from xdsl.utils.exceptions import VerifyException

from fragir import isa
from fragir.dialects.definition import op_definition
from fragir.dialects.frag import product_layouts
from fragir.dialects.frag.instructions import How, instruction_of, operand_name
from fragir.dialects.frag.product_layouts import choose
from fragir.dialects.frag.regrouped import by
from fragir.dialects.frag.tensor_scales import BLOCKS, CHUNK_SHAPE, ROWS
from fragir.dialects.frag.types import TileType, tile_of
from fragir.dialects.interfaces import (
    DimensionsInterface,
    LayoutDemand,
    LayoutInterface,
    Names,
    OperandAt,
    Threads,
    Tile,
)
from fragir.errors import FragirError

# --- what there is beside A, B and C --------------------------------------------------------------


def of_scales(scales: Sequence[SSAValue]) -> Iterable[tuple[SSAValue, Names]]:
    """Scales of A have its rows, those of B its columns; along K there are fewer."""
    sides: tuple[Names, Names] = (("m", None), (None, "n"))
    return zip(scales, sides, strict=False)


def read_scales(scales: Sequence[SSAValue], m: int, n: int, k: int) -> tuple[str, int]:
    """The type of the scales and how many elements of K each serves; ("", 0) without any.

    FragirError where their shapes or types are not those of an M x N x K product.
    """
    if not scales:
        return "", 0
    if len(scales) != 2:
        raise FragirError(
            f"`scaled` takes two tiles, not {len(scales)}", hint="write `scaled %sfa, %sfb`"
        )
    sfa, sfb = map(tile_of, scales)
    first, second = _scale_shape(sfa, m), _scale_shape(sfb, n, turned=True)
    blocks = first[1] or 1
    if sfa.element_type != sfb.element_type:
        raise FragirError(f"the scales of A are {sfa.element}, those of B {sfb.element}")
    name = {"ue8m0": "ue8m0", "e4m3": "ue4m3"}.get(sfa.element)
    if name is None:
        raise FragirError(
            f"{sfa.element} are no scales",
            hint="write f8E8M0FNU, or f8E4M3FN, whose sign is dropped",
        )
    if first != (m, blocks) or second != (n, blocks) or k % blocks:
        raise FragirError(
            f"SFA is {'x'.join(map(str, sfa.shape))} and SFB {'x'.join(map(str, sfb.shape))} in a "
            f"product of {m}x{n}x{k}",
            hint=f"SFA is {m} x blocks, SFB blocks x {n}, and the blocks divide K",
        )
    return name, k // blocks


def _scale_shape(tile: TileType, rows: int, *, turned: bool = False) -> tuple[int, int]:
    """Rows and blocks of a tile of scales; of one of chunks, as `frag.matmul` has them for tensor
    memory, of which the last rows may be too many, (rows, blocks)."""
    if are_chunks(tile):
        across, along, *_ = tile.shape
        return (rows, BLOCKS * along) if -(-rows // ROWS) == across else (ROWS * across, 0)
    if len(tile.shape) != 2:
        return 0, 0
    return (tile.cols, tile.rows) if turned else (tile.rows, tile.cols)


def are_chunks(tile: TileType) -> bool:
    """Whether a tile of scales has the order of tensor memory."""
    return tile.shape[2:] == CHUNK_SHAPE


def check_metadata(
    op: str, instruction: isa.Instruction, metadata: TileType, rows: int, k: int
) -> None:
    """VerifyException unless the metadata have a nibble for every chunk of every row."""
    chunk = instruction.operands["e"].chunk
    wanted = k // chunk
    if metadata.element != "u4" or metadata.shape != (rows, wanted):
        raise VerifyException(
            f"{op}: the metadata are a tile of {rows}x{wanted}xui4, a nibble "
            f"for every {chunk} elements of K, not {metadata}"
        )


# --- products -------------------------------------------------------------------------------------

A, B, C, METADATA = range(4)
"""The places of a product's first operands."""


def word(attribute: StringAttr | None) -> str:
    """The string of a property, empty where it is not given."""
    return "" if attribute is None else attribute.data


def optional_string(text: str) -> StringAttr | None:
    """A property for a string, none for an empty one."""
    return StringAttr(text) if text else None


def flag(on: bool) -> UnitAttr | None:
    """A property that is there or not."""
    return UnitAttr() if on else None


TileTypes: TypeAlias = tuple[TileType, TileType, TileType, TileType]


def tile_types(a: SSAValue, b: SSAValue, c: SSAValue, d: SSAValue) -> TileTypes:
    """The types of the tiles of a product."""
    types = a.type, b.type, c.type, d.type
    for type_ in types:
        assert isinstance(type_, TileType)
    return cast("TileTypes", types)


def of_accumulators(types: TileTypes, c: Tile, d: SSAValue) -> Iterable[Sequence[Tile]]:
    """C and D have one layout where they are of one type."""
    return ((c, d),) if types[2].element_type == types[3].element_type else ()


def memory_dimensions(names: Names, transposed: UnitAttr | None) -> Names:
    """The names of dimensions as memory has them."""
    return names if transposed is None else names[::-1]


@op_definition
class MmaOp(IRDLOperation, LayoutInterface, DimensionsInterface):
    """`d = a b + c` on tiles of any multiple of an mma.sync's shape, over the warps of a block.

    The instruction is that of the tiles' layouts, else the one named by `using` (like
    "m16n8k8.f16"), else the largest that fits shape and types. `scaled %sfa, %sfb` multiplies
    blocks along K by scales: SFA is M x blocks, SFB blocks x N (or both are chunks, which products
    in tensor memory take). `satfinite` clamps sums of
    integers, at every instruction; `rounding "rz"` rounds sums of f64 so; `bitop "xor"` counts
    where single bits differ instead of where both are set; `kind "mxf4nvf4"` names the kind where
    the types leave it open. PTX ISA 9.2, sections 9.7.14.5 and 9.7.14.3.
    """

    name = "frag.mma"
    _M: ClassVar = IntVarConstraint("M", AnyInt())
    _N: ClassVar = IntVarConstraint("N", AnyInt())
    _K: ClassVar = IntVarConstraint("K", AnyInt())
    _P: ClassVar = IntVarConstraint("P", AnyInt())
    a = operand_def(TileType.constr(_M, _K, _P))
    b = operand_def(TileType.constr(_K, _N, _P))
    c = operand_def(TileType.constr(_M, _N, _P))
    scales = var_operand_def(TileType)
    satfinite = opt_prop_def(UnitAttr)
    rounding = opt_prop_def(StringAttr)
    bitop = opt_prop_def(StringAttr)
    kind = opt_prop_def(StringAttr)
    using = opt_prop_def(StringAttr)
    d = result_def(TileType.constr(_M, _N, _P))
    # no memory, but not Pure: a collective operation must not be hoisted out of control flow
    traits = traits_def(NoMemoryEffect())
    assembly_format = (
        "$a `,` $b `,` $c (`scaled` $scales^)? (`satfinite` $satfinite^)?"
        " (`rounding` $rounding^)? (`bitop` $bitop^)? (`kind` $kind^)? (`using` $using^)? attr-dict"
        " `:` type($a) `,` type($b) `,` type($c) (`,` type($scales)^)? `->` type($d)"
    )

    def __init__(
        self,
        a: SSAValue | Operation,
        b: SSAValue | Operation,
        c: SSAValue | Operation,
        d: TileType | None = None,
        *,
        using: str | None = None,
        scales: Sequence[SSAValue | Operation] = (),
        satfinite: bool = False,
        rounding: str = "",
        bitop: str = "",
        kind: str = "",
    ):
        super().__init__(
            operands=[a, b, c, scales],
            properties={
                "using": optional_string(using or ""),
                "satfinite": flag(satfinite),
                "rounding": optional_string(rounding),
                "bitop": optional_string(bitop),
                "kind": optional_string(kind),
            },
            result_types=[d or SSAValue.get(c).type],
        )

    def tile_types(self) -> TileTypes:
        """The types of a, b, c and d."""
        return tile_types(self.a, self.b, self.c, self.d)

    def how(self) -> How:
        """What it says besides shapes and types; FragirError where the scales do not fit."""
        a, _, _, d = self.tile_types()
        scale, block = read_scales(self.scales, d.rows, d.cols, a.cols)
        return How(
            self.satfinite is not None,
            word(self.rounding),
            word(self.bitop),
            word(self.kind),
            scale,
            block,
        )

    def instruction_name(self, target: str | None = None) -> str:
        """The short name of the instruction this becomes; FragirError where there is none."""
        a, b, c, d = self.tile_types()
        using = None if self.using is None else self.using.data
        return choose(a, b, c, d, using, target, self.how())

    def instruction(self, target: str | None = None) -> isa.Instruction:
        """The instruction this becomes; FragirError where there is none."""
        a, b, c, d = (tile.element for tile in self.tile_types())
        return instruction_of(self.instruction_name(target), a, b, c, d, self.how())

    def same_layout(self) -> Iterable[Sequence[Tile]]:
        """C and D, where they are of one type."""
        return of_accumulators(self.tile_types(), OperandAt(self, C), self.d)

    def demands(self, threads: Threads) -> Iterator[LayoutDemand]:
        """The fragments of the instruction that the target has for these tiles."""
        name = self.instruction_name(threads.target)
        _, _, c, d = self.tile_types()
        warps = product_layouts.warps_for(name, d, threads.warps)
        operands = [
            (tile, operand_name(name, operand, accumulator), operand)
            for tile, operand, accumulator in (
                (OperandAt(self, A), "a", ""),
                (OperandAt(self, B), "b", ""),
                (OperandAt(self, C), "c", c.element),
                (self.d, "c", d.element),
            )
        ]
        yield from product_layouts.fragments(operands, "abcd", warps)
        if any(are_chunks(tile_of(value)) for value in self.scales):
            raise FragirError(
                "chunks of scales are read by products in tensor memory",
                hint="load a tile of rows by blocks",
            )
        if self.scales:
            instruction = self.instruction(threads.target)
            yield from product_layouts.scales(instruction, self, self.scales, warps)

    def alternatives(
        self, value: SSAValue, layout: Attribute, threads: Threads
    ) -> Iterator[Sequence[LayoutDemand]]:
        """A and B with K in the order in which `layout` has the columns of A in its lanes; B, C
        and D with N in that in which `layout` has those of C.
        """
        if value not in (self.a, self.c) or self.scales:
            return
        a, b, c, d = self.demands(threads)
        if value is self.a:
            yield from product_layouts.reordered_demands(a, b, layout)
        if value is self.c:
            yield from product_layouts.reordered_column_demands(b, c, d, layout)

    def dimensions(self) -> Iterator[tuple[SSAValue, Names]]:
        """M x K, K x N, and of the scales what they share with A and B."""
        yield self.a, ("m", "k")
        yield self.b, ("k", "n")
        yield from of_scales(self.scales)

    def verify_(self) -> None:
        try:
            self.instruction_name()
            if self.scales:
                tiles = (self.a, self.b, self.c, self.d)
                product_layouts.check_in_order(tiles, "scales are for blocks of K as it is")
        except FragirError as error:
            raise VerifyException(f"frag.mma: {error}") from error


# --- batches --------------------------------------------------------------------------------------


@op_definition
class MmaBatchedOp(IRDLOperation):
    """`d[i] = a[i] b[i] + c[i]`: one `frag.mma` for every matrix of tiles of three dimensions.

    A is batch x M x K, B batch x K x N, C and the result batch x M x N. Words are those of
    `frag.mma`; there are no scales. `frag-place` makes it products of the batch's matrices, which
    are in the same lanes and warps, in other registers. (`frag.mma` with `m8n8k4.f16` forms four
    products at once, which the last dimension counts.)
    """

    name = "frag.mma_batched"
    a = operand_def(TileType)
    b = operand_def(TileType)
    c = operand_def(TileType)
    satfinite = opt_prop_def(UnitAttr)
    rounding = opt_prop_def(StringAttr)
    bitop = opt_prop_def(StringAttr)
    kind = opt_prop_def(StringAttr)
    using = opt_prop_def(StringAttr)
    d = result_def(TileType)
    # no memory, but not Pure: a collective operation must not be hoisted out of control flow
    traits = traits_def(NoMemoryEffect())
    assembly_format = (
        "$a `,` $b `,` $c (`satfinite` $satfinite^)? (`rounding` $rounding^)? (`bitop` $bitop^)?"
        " (`kind` $kind^)? (`using` $using^)? attr-dict"
        " `:` type($a) `,` type($b) `,` type($c) `->` type($d)"
    )

    def __init__(
        self,
        a: SSAValue | Operation,
        b: SSAValue | Operation,
        c: SSAValue | Operation,
        d: TileType | None = None,
        *,
        using: str = "",
        satfinite: bool = False,
        rounding: str = "",
        bitop: str = "",
        kind: str = "",
    ):
        super().__init__(
            operands=[a, b, c],
            properties={
                "using": optional_string(using),
                "satfinite": flag(satfinite),
                "rounding": optional_string(rounding),
                "bitop": optional_string(bitop),
                "kind": optional_string(kind),
            },
            result_types=[d or SSAValue.get(c).type],
        )

    def tile_types(self) -> TileTypes:
        """The types of a, b, c and d."""
        return tile_types(self.a, self.b, self.c, self.d)

    def matrices(self) -> TileTypes:
        """The types of one product's tiles, without layouts."""
        a, b, c, d = (TileType(t.shape[1:], t.element_type) for t in self.tile_types())
        return a, b, c, d

    def how(self) -> How:
        """What it says besides shapes and types."""
        words = word(self.rounding), word(self.bitop), word(self.kind)
        return How(self.satfinite is not None, *words)

    def instruction_name(self, target: str | None = None) -> str:
        """The short name of the instruction this becomes; FragirError where there is none."""
        using = None if self.using is None else self.using.data
        return choose(*self.matrices(), using, target, self.how())

    def verify_(self) -> None:
        a, b, c, d = (tile.shape for tile in self.tile_types())
        if any(len(shape) != 3 for shape in (a, b, c, d)):
            raise VerifyException(
                "frag.mma_batched: its tiles have three dimensions, a batch of matrices; frag.mma "
                "multiplies matrices"
            )
        fits = a[2] == b[1] and c == d == (a[0], a[1], b[2]) and a[0] == b[0]
        if not fits:
            shown = [by(shape) for shape in (a, b, c, d)]
            raise VerifyException(
                f"frag.mma_batched: {shown[0]} times {shown[1]} plus {shown[2]} is not {shown[3]}; "
                "A is batch x M x K, B batch x K x N, C and the result batch x M x N"
            )
        try:
            name = self.instruction_name()
        except FragirError as error:
            raise VerifyException(f"frag.mma_batched: {error}") from error
        if name.startswith("m8n8k4.f16"):
            raise VerifyException(
                "frag.mma_batched: m8n8k4.f16 forms four products at once; write frag.mma, whose "
                "tiles have them last"
            )
