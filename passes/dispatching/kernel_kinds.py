"""Whether a function of linalg is one that a pass makes a kernel of."""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

from fragir.errors import FragirError


def problem_of(function: func.FuncOp) -> str | None:
    """Why no pass makes a kernel of a function; None where one does. It is tried on a copy."""
    from fragir.passes.contraction.fusion import Fusion

    copy = function.clone()
    ModuleOp([copy])
    try:
        Fusion(copy).run()
    except (FragirError, PassFailedException) as error:
        return str(error)
    return None
