"""Products of batches: tiles whose first dimension counts matrices."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr, UnitAttr
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import IRDLOperation, operand_def, opt_prop_def, result_def, traits_def
from xdsl.traits import NoMemoryEffect
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.definition import op_definition
from fragir.dialects.frag.choice import choose
from fragir.dialects.frag.products import TileTypes, flag, given, tile_types, word
from fragir.dialects.frag.qualifiers import How
from fragir.dialects.frag.regrouped import by
from fragir.dialects.frag.types import TileType
from fragir.errors import FragirError


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
                "using": given(using),
                "satfinite": flag(satfinite),
                "rounding": given(rounding),
                "bitop": given(bitop),
                "kind": given(kind),
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
