"""What fragir adds to every xDSL tool: dialects, passes, targets.

Stock `xdsl-opt` finds this through the entry point `xdsl.universe`. Each value is a function, so
that a tool imports only what a program uses.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from xdsl.universe import Universe

# name -> module and attribute; the name of a pass is the name on the command line
DIALECTS = {
    "frag": ("fragir.dialects.frag", "Frag"),
    "ptx": ("fragir.dialects.ptx", "Ptx"),
}
PASSES = {
    "convert-linalg-to-frag": ("fragir.passes.convert_linalg_to_frag", "ConvertLinalgToFragPass"),
    "frag-bufferize": ("fragir.passes.frag_bufferize", "FragBufferizePass"),
    "frag-tile": ("fragir.passes.frag_tile", "FragTilePass"),
    "frag-place": ("fragir.passes.frag_place", "FragPlacePass"),
    "convert-frag-to-ptx": ("fragir.passes.convert_frag_to_ptx", "ConvertFragToPtxPass"),
}
TARGETS = {"ptx": ("fragir.passes.ptx_target", "PtxTarget")}


def _lazily(place: tuple[str, str]) -> Callable[[], Any]:
    module, name = place
    return lambda: getattr(import_module(module), name)


FRAGIR_UNIVERSE = Universe(
    all_dialects={name: _lazily(place) for name, place in DIALECTS.items()},
    all_passes={name: _lazily(place) for name, place in PASSES.items()},
    all_targets={name: _lazily(place) for name, place in TARGETS.items()},
)
