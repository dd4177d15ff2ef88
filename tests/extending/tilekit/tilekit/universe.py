"""What xDSL's and fragir's tools find here; each is imported when a program uses it."""

from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.universe import Universe

from fragir.compilation.pipeline import Stage


def kit() -> Dialect:
    from .dialect import KIT

    return KIT


def to_frag() -> type[ModulePass]:
    from .to_frag import KitToFragPass

    return KitToFragPass


def set_tile() -> type[ModulePass]:
    from .set_tile import SetTilePass

    return SetTilePass


UNIVERSE = Universe(
    all_dialects={"kit": kit},
    all_passes={"kit-to-frag": to_frag, "kit-set-tile": set_tile},
)

STAGE = Stage(
    "kit-to-frag",
    needed=lambda contents: "kit.gram" in contents.operations,
    before="frag-tile",
)
