"""What fragir adds to every xDSL tool: dialects, passes, targets.

Stock `xdsl-opt` finds this through the entry point `xdsl.universe`. Each value is a function, so
that a tool imports only what a program uses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xdsl.universe import Universe

    FRAGIR_UNIVERSE: Universe

# name -> module and attribute; the name of a pass is the name on the command line
DIALECTS = {
    "frag": ("fragir.dialects.frag", "Frag"),
    "ptx": ("fragir.dialects.ptx", "Ptx"),
}
OWN_DIALECTS = {
    "arith": ("fragir.dialects.tensors.registration", "ARITH"),
    "linalg": ("fragir.dialects.linalg.registration", "LINALG"),
    "memref": ("fragir.dialects.memories.registration", "MEMREF"),
    "tensor": ("fragir.dialects.tensors.registration", "TENSOR"),
    "tm_tensor": ("fragir.dialects.tensors.registration", "TM_TENSOR"),
    "iree_linalg_ext": ("fragir.dialects.tensors.registration", "IREE_LINALG_EXT"),
}
"""Dialects that take the place of xDSL's in fragir's own contexts."""
PASSES = {
    "convert-linalg-to-frag": ("fragir.passes.convert_linalg_to_frag", "ConvertLinalgToFragPass"),
    "frag-bufferize": ("fragir.passes.frag_bufferize", "FragBufferizePass"),
    "frag-raster": ("fragir.passes.frag_raster", "FragRasterPass"),
    "frag-pipeline": ("fragir.passes.frag_pipeline", "FragPipelinePass"),
    "frag-prefetch": ("fragir.passes.frag_prefetch", "FragPrefetchPass"),
    "frag-specialize": ("fragir.passes.frag_specialize", "FragSpecializePass"),
    "frag-tile": ("fragir.passes.frag_tile", "FragTilePass"),
    "frag-place": ("fragir.passes.frag_place", "FragPlacePass"),
    "func-inline": ("fragir.passes.func_inline", "FuncInlinePass"),
    "linalg-dispatch": ("fragir.passes.linalg_dispatch", "LinalgDispatchPass"),
    "linalg-normalize": ("fragir.passes.linalg_normalize", "LinalgNormalizePass"),
    "linalg-tile": ("fragir.passes.linalg_tile", "LinalgTilePass"),
    "lift-structure": ("fragir.passes.lift_structure", "LiftStructurePass"),
    "convert-frag-to-ptx": ("fragir.passes.convert_frag_to_ptx", "ConvertFragToPtxPass"),
}
TARGETS = {"ptx": ("fragir.passes.ptx_target", "PtxTarget")}
NOTEBOOKS = "fragir.draw.display"
"""The module that draws values in notebooks: layouts know it by this name only."""
EXECUTOR = "fragir.emulator.launch.legality"
"""The module that says which operands a statement may have: operations know it by this name only.
They ask what a launch would refuse, never what a statement computes."""


def drawer() -> Any:
    """The module that draws values in notebooks."""
    return import_module(NOTEBOOKS)


def statement_problem(statement: str, names: Any) -> tuple[str, str | None] | None:
    """What a launch would say of a statement; `names`: what it may name (`opcodes.table.Names`)."""
    found: tuple[str, str | None] | None = import_module(EXECUTOR).problem(statement, names)
    return found


def lazily(places: Mapping[str, tuple[str, str]]) -> dict[str, Callable[[], Any]]:
    """Name -> a function that imports and gives what one of the tables above names."""
    return {name: _importing(*place) for name, place in places.items()}


def _importing(module: str, name: str) -> Callable[[], Any]:
    return lambda: getattr(import_module(module), name)


def __getattr__(name: str) -> Universe:
    """`FRAGIR_UNIVERSE`, when a tool asks for it: a compilation imports no universe."""
    if name != "FRAGIR_UNIVERSE":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from xdsl.universe import Universe

    made = Universe(
        all_dialects=lazily(DIALECTS), all_passes=lazily(PASSES), all_targets=lazily(TARGETS)
    )
    globals()[name] = made
    return made
