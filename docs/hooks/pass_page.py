"""The passes, in the order in which programs go through them."""

from __future__ import annotations

import dataclasses
import inspect

from xdsl.passes import ModulePass

from docs.hooks.pages import table
from fragir.passes.stages import LEVELS, STAGES
from fragir.universe import PASSES, lazily

PATH = "reference/passes.md"


def files() -> dict[str, str]:
    """The page by its path on the site."""
    return {PATH: page()}


def page() -> str:
    """What every pass does, its options, and where it stands."""
    passes = {name: found() for name, found in lazily(PASSES).items()}
    road = [stage.name for stage in STAGES]
    others = sorted(passes.keys() - set(road))
    levels = {stage: level for level, stage in LEVELS.items()}
    rows = [
        (str(number), f"[`{name}`](#{name})", _ends(levels.get(name)))
        for number, name in enumerate(road, 1)
    ]
    return f"""\
# Passes

A program goes through those that its contents need, in this order; which, says
`fragir compile --print-pipeline`. `fragir-opt -p` and `fragir compile -p` run any by name, with
options in braces:
`frag-raster{{order="hilbert" persistent=true}}`. Passes of packages stand among them
([extending](../extending.md)); xDSL's own, such as `canonicalize`, `cse` and `licm`, are there too.

{table(("", "pass", "the level that it ends"), rows)}
{"".join(_pass(name, passes[name]) for name in road)}
*No program needs those below by itself.*

{"".join(_pass(name, passes[name]) for name in others)}"""


def _ends(level: str | None) -> str:
    return f"`--to {level}`" if level else ""


def _pass(name: str, cls: type[ModulePass]) -> str:
    text = inspect.cleandoc(cls.__doc__ or "")
    module = inspect.getmodule(cls)
    about = inspect.cleandoc((module and module.__doc__) or "").partition(": ")[2]
    options = [
        (f"`{field.name}`", f"`{field.type}`", f"`{field.default!r}`")
        for field in dataclasses.fields(cls)
    ]
    shown = table(("option", "type", "by default"), options) if options else ""
    sentence = " ".join(about.partition("\n\n")[0].split())
    return f"## `{name}`\n\n{sentence[:1].upper()}{sentence[1:]}\n\n{text}\n\n{shown}\n"
