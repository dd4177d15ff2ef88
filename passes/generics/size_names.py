"""Names for sizes of a kernel's memory, so that a launch can tell the grid from its arrays."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr
from xdsl.ir import BlockArgument, SSAValue

from fragir.dialects import frag
from fragir.passes.generics.axes import CommonLoops


def name_sizes(function: func.FuncOp, external: Sequence[SSAValue], common: CommonLoops) -> None:
    """Names dimensions that have none, so that a launch knows which sizes are equal."""
    given = function.arg_attrs
    every = (
        list(given.data)
        if given is not None
        else [DictionaryAttr({})] * len(function.body.block.args)
    )
    names: dict[int, str] = {}
    arguments = [memory for memory in external if isinstance(memory, BlockArgument)]
    for memory in arguments:
        known = frag.sizes_of(every[memory.index].data.get("frag.sizes"))
        names.update(zip(common.of_operand[memory], known, strict=False))
    taken = set(names.values())
    for loop in range(common.count):
        name = f"n{loop}"
        while name in taken:
            name += "_"
        names.setdefault(loop, name)
    arguments = [memory for memory in external if isinstance(memory, BlockArgument)]
    for memory in arguments:
        entry = every[memory.index].data
        loops = common.of_operand[memory]
        if "frag.sizes" not in entry and loops:
            said = ArrayAttr([StringAttr(names[loop]) for loop in loops])
            every[memory.index] = DictionaryAttr({**entry, "frag.sizes": said})
    function.arg_attrs = ArrayAttr(every)
