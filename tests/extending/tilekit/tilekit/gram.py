"""An operation on whole matrices, which a pass turns into one of fragir's."""

from collections.abc import Iterator, Sequence
from typing import Any

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def

import fragir.dialects.interfaces as interfaces


@irdl_op_definition
class GramOp(
    IRDLOperation,
    interfaces.MemoryInterface,
    interfaces.DimensionsInterface,
    interfaces.ReferenceInterface,
):
    """`C = A A^T`: the scalar products of all pairs of rows."""

    name = "kit.gram"
    a = operand_def(MemRefType)
    c = operand_def(MemRefType)
    assembly_format = "$a `into` $c attr-dict `:` type($a) `into` type($c)"

    def reads(self) -> Sequence[SSAValue]:
        return (self.a,)

    def writes(self) -> Sequence[SSAValue]:
        return (self.c,)

    def dimensions(self) -> Iterator[tuple[SSAValue, tuple[str, str]]]:
        yield self.a, ("m", "k")
        yield self.c, ("m", "n")

    def evaluate(self, run: Any) -> None:
        """Its meaning is that of the product that it stands for."""
        from fragir.dialects import frag
        from fragir.dialects.interfaces import MEANINGS

        meaning = MEANINGS.of(frag.MatmulOp)
        assert meaning is not None
        product = frag.MatmulOp(self.a, self.a, self.c, b_transposed=True)
        meaning(run, product)
        product.erase()
