"""An operation of someone who has never heard of fragir's interfaces."""

from typing import ClassVar

from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    result_def,
)


@irdl_op_definition
class NegatedOp(IRDLOperation):
    """Anything with its sign turned."""

    name = "toy.negated"
    _T: ClassVar = VarConstraint("T", AnyAttr())
    source = operand_def(_T)
    result = result_def(_T)
    assembly_format = "$source attr-dict `:` type($source)"
