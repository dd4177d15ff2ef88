"""The dialect `kit`."""

from xdsl.ir import Dialect

from .columns import ColumnsAttr
from .gram import GramOp
from .row_max import RowMaxOp

KIT = Dialect("kit", [GramOp, RowMaxOp], [ColumnsAttr])
