"""Pipelines: the passes that a program goes through, chosen by its contents or given by name.

A pipeline is written as in xDSL, `frag-tile{target="sm_80"},frag-place`, which `fragir-opt -p` and
`fragir compile -p` take. Which passes a program needs is said by the rows of
`fragir.passes.stages`, and those that other packages add to them.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Literal, NamedTuple, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec, parse_pipeline

from fragir import plugins
from fragir.errors import FragirError, kind_of, pass_on
from fragir.mlir import diagnostics
from fragir.passes.stages import DIALECTS, LEVELS, STAGES, Contents, Stage

Level = Literal["placed", "lane"]
Observer = Callable[[str, ModuleOp], None]
ENTRY_POINTS = "fragir.stages"
Given = str | ModulePass | type[ModulePass]
"""A pass: its name, pass-pipeline text, an object, or a class that can do without options."""


# What a program needs -------------------------------------------------------------------------


def road(contents: Contents, to: Level) -> tuple[Stage, ...]:
    """The stages up to a level: ours and, for a program of other dialects, other packages'."""
    stages = STAGES
    if not contents.dialects <= DIALECTS:
        stages = insert_stages(STAGES, outside().stages)
    if to == "lane":
        return stages
    names = [stage.name for stage in stages]
    return stages[: names.index(LEVELS[to]) + 1]


def needed(module: ModuleOp, to: Level, target: str) -> Iterator[ModulePass]:
    """The passes that a module needs on its way to a level, each to be applied before the next.

    Whether a stage is needed is asked of the module as it is by then.
    """
    contents: Contents | None = Contents(module)
    for stage in road(contents, to):
        contents = contents or Contents(module)
        if _is_needed(stage, contents):
            yield from _passes_of(stage, target)
            contents = None  # the passes have changed the module


@cache
def _own_passes(stage: Stage, target: str) -> list[ModulePass]:
    """The passes of a stage of ours: they keep nothing from one program to the next."""
    return parse(stage.passes, target)


def _passes_of(stage: Stage, target: str) -> list[ModulePass]:
    if stage in STAGES:
        return _own_passes(stage, target)
    try:
        return parse(stage.passes, target)
    except FragirError as error:
        package = plugins.package_of(stage.needed) or "fragir"
        error.message = f"the stage {stage.name} of {package}: {error.message}"
        raise


def _is_needed(stage: Stage, contents: Contents) -> bool:
    try:
        return stage.needed(contents)
    except FragirError:
        raise
    except Exception as error:
        pass_on(error)
        package = plugins.package_of(stage.needed) or "fragir"
        raise diagnostics.from_exception(
            error, packages=(package,), doing=f"the stage {stage.name}"
        ) from error


class Outside(NamedTuple):
    """Other packages' stages, each with its package, and what is wrong with those left out."""

    stages: tuple[tuple[str, Stage], ...]
    excuses: str


@cache
def outside() -> Outside:
    """The entry points `fragir.stages`, loaded at the first call."""
    stages: list[tuple[str, Stage]] = []
    excuses = ""
    for package, entry in plugins.entries(ENTRY_POINTS):
        try:
            stage = entry.load()
        except (Exception, SystemExit) as error:
            wrong = plugins.words_of(error)
        else:
            if isinstance(stage, Stage):
                stages.append((package, stage))
                continue
            kind = type(stage).__name__
            wrong = f"{entry.value} is a {kind}, not a fragir.compilation.pipeline.Stage"
        excuses += f"; the stage {entry.name} of the package {package} cannot be used: {wrong}"
    return Outside(tuple(stages), excuses)


def _excuses(module: ModuleOp) -> str:
    """What a program may miss for which packages have stages."""
    return "" if Contents(module).dialects <= DIALECTS else outside().excuses


def insert_stages(
    stages: Sequence[Stage], others: Iterable[tuple[str, Stage]]
) -> tuple[Stage, ...]:
    """The stages with those of other packages, each ahead of the one that it names.

    FragirError that names the package where there is no such stage.
    """
    result, waiting = list(stages), list(others)
    while waiting:
        names = [stage.name for stage in result]
        package, stage = next(
            (pair for pair in waiting if pair[1].before in (*names, "ptx")), waiting[0]
        )
        if stage.before not in (*names, "ptx"):
            raise FragirError(
                f"the package {package} puts its stage {stage.name} before {stage.before!r}, "
                "which is none",
                hint=f"there are {', '.join(names)} and ptx",
            )
        waiting.remove((package, stage))
        at = names.index(stage.before) if stage.before in names else len(result)
        result.insert(at, stage)
    return tuple(result)


# What a user asks for -------------------------------------------------------------------------


def parse(text: str, target: str | None = None) -> list[ModulePass]:
    """The passes of pass-pipeline text; FragirError for what is none, or has other options.

    A pass whose field `target` is an SM by default gets `target`, unless the text gives it one.
    """
    return [make_pass(pass_class(spec.name), spec, target) for spec in specs(text)]


def specs(text: str) -> list[ArgSpec]:
    """The names and options in pass-pipeline text; FragirError where it is not well-formed."""
    try:
        return list(parse_pipeline(text))
    except BaseException as error:
        # xDSL's ArgSpecParseError derives from BaseException
        if type(error).__name__ != "ArgSpecParseError":
            raise
        lines = (
            str(error).strip().split("\n")
        )  # a title, `pass-pipeline:1:12`, the text, a caret, words
        column = lines[1].rpartition(":")[2].strip() if len(lines) > 1 else "1"
        raise FragirError(
            f"`{text}` is no pipeline, at column {column}: {lines[-1].strip()}",
            hint="write 'a-pass,another{option=1}'",
        ) from error


def pass_class(name: str) -> type[ModulePass]:
    """The pass of a name, be it another package's; FragirError where there is none."""
    own = plugins.own_passes()
    if name in own:
        return own[name]()
    found = plugins.plugins().find("pass", name)
    if found is not None:
        return found()
    from difflib import get_close_matches

    near = get_close_matches(name, [*own, *plugins.plugins().names("pass")], n=1)
    raise FragirError(
        f"there is no pass {name}{plugins.plugins().excuses()}",
        hint=f"did you mean {near[0]}?" if near else "`fragir-opt --help` lists the passes",
    )


def make_pass(kind: type[ModulePass], spec: ArgSpec, target: str | None = None) -> ModulePass:
    """A pass with the options of pass-pipeline text; FragirError where it has not these."""
    spec = spec.normalize_parameter_names()
    if target is not None and "target" not in spec.parameters and _is_for_machine(kind):
        spec.parameters["target"] = (target,)
    try:
        return kind.from_pass_spec(spec)
    except FragirError:
        raise
    except Exception as error:
        pass_on(error)
        raise FragirError(
            f"the pass {spec} cannot be had: {diagnostics.message_of(error)}",
            hint=_options(kind),
        ) from error


def _is_for_machine(kind: type[ModulePass]) -> bool:
    """Whether a pass has a field `target` that names an SM."""
    return any(
        field.name == "target" and str(field.default).startswith("sm_")
        for field in dataclasses.fields(kind)
    )


def _options(kind: type[ModulePass]) -> str:
    fields = [field.name.replace("_", "-") for field in dataclasses.fields(kind) if field.init]
    return f"its options: {', '.join(fields)}" if fields else "it has no options"


def passes_of(given: str | Sequence[Given], target: str) -> list[ModulePass]:
    """The passes that a caller lists: names, pass-pipeline text, objects and classes.

    FragirError for anything else.
    """
    result: list[ModulePass] = []
    given = [given] if isinstance(given, str | ModulePass | type) else given
    for item in cast("Iterable[object]", given):
        if isinstance(item, str):
            result += parse(item, target)
        elif isinstance(item, ModulePass):
            result.append(item)
        elif isinstance(item, type) and issubclass(item, ModulePass):
            result.append(make_pass(item, ArgSpec(item.name, {}), target))
        else:
            raise FragirError(
                "a pass is a name, its text with options, or a ModulePass, not "
                + kind_of(cast("object", item))
            )
    return result


def text_of(passes: Iterable[ModulePass]) -> str:
    """Pass-pipeline text for passes, with the target of each that has one."""
    return ",".join(str(_spec(one)) for one in passes)


def _spec(one: ModulePass) -> ArgSpec:
    spec = one.pipeline_pass_spec()
    if _is_for_machine(type(one)):
        spec.parameters["target"] = (getattr(one, "target"),)
    return spec


# Running --------------------------------------------------------------------------------------


def run(
    passes: Iterable[ModulePass],
    module: ModuleOp,
    *,
    source: str | None = None,
    before: Callable[[ModuleOp], None] | None = None,
    observe: Observer | None = None,
    times: dict[str, float] | None = None,
) -> list[ModulePass]:
    """Applies passes to a module in place; those that were applied.

    `before(module)` sees it before each pass, `observe(pass name, module)`, verified, after each;
    `times` gets their times in ms. Every exception becomes a FragirError: a fault in a pass or an
    operation of another package is told as that package's.
    """
    ctx = plugins.FragirContext()
    applied: list[ModulePass] = []
    for one in passes:
        package = plugins.package_of(type(one))
        try:
            if before is not None:
                before(module)
            start = time.perf_counter()
            one.apply(ctx, module)
        except Exception as error:
            pass_on(error)
            packages = plugins.packages_of(module) | plugins.imported_packages()
            packages |= {package} if package else set()
            known = diagnostics.from_exception(
                error, source, packages=packages, doing=f"the pass {one.name}"
            )
            known.message += _excuses(module)
            raise known from diagnostics.cause_of(error)
        if times is not None:
            times[one.name] = times.get(one.name, 0.0) + (time.perf_counter() - start) * 1e3
        check_after(one, module, source)
        if observe is not None:
            diagnostics.verify(module, source)
            observe(one.name, module)
        applied.append(one)
    return applied


def check_after(one: ModulePass, module: ModuleOp, source: str | None) -> None:
    """Verifies what a pass of another package has left; FragirError that names pass and package."""
    package = plugins.package_of(type(one))
    if package is None:
        return
    try:
        diagnostics.verify(module, source)
    except FragirError as error:
        whose = plugins.package_text(package)
        error.message = f"the pass {one.name} of {whose} leaves a wrong program: {error.message}"
        raise


__all__ = ["Contents", "Stage", "needed", "parse", "passes_of", "run", "text_of"]


def __dir__() -> list[str]:
    """What there is to use, without what is imported here."""
    return __all__
