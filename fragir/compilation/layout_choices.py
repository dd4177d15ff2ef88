"""Why the tiles of a program have the layouts that they have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec

from fragir.compilation import pipeline
from fragir.compilation.pipeline import Given
from fragir.compilation.program import check_sizes, choose_entry, keep_only, parse, steps
from fragir.errors import FragirError, check_kind
from fragir.isa.targets import require_target
from fragir.passes.frag_place import FragPlacePass, place
from fragir.passes.placing.explanation import Explanation


def explain_layouts(
    program: ModuleOp | str,
    *,
    target: str = "sm_80",
    entry: str | None = None,
    passes: str | Sequence[Given] | None = None,
    filename: str = "<input>",
) -> Explanation:
    """Who asked for each tile's layout, and what each conversion costs and is for.

    Arguments as in `compile`. `str` of the result is a table. FragirError for what is wrong with
    the program, and where `passes` do not include `frag-place`.
    """
    check_kind(program, str | ModuleOp, "explain_layouts takes the text of a program or a ModuleOp")
    require_target(target)
    text = program if isinstance(program, str) else None
    module = parse(program, filename) if isinstance(program, str) else program.clone()
    keep_only(module, choose_entry(module, entry))
    check_sizes(module, text)
    told: list[Explanation] = []
    pipeline.run(explaining(steps(module, "placed", target, passes), told), module, source=text)
    if not told:
        raise FragirError(
            "no tile is placed by frag-place in this program, so there is nothing to explain"
        )
    return told[0]


def explaining(passes: Iterable[ModulePass], told: list[Explanation]) -> Iterator[ModulePass]:
    """The same passes; what `frag-place` finds is explained in `told`."""
    for one in passes:
        yield _Explaining(one.target, told) if type(one) is FragPlacePass else one


@dataclass(frozen=True)
class _Explaining(FragPlacePass):
    """`frag-place` that says why."""

    told: list[Explanation] = field(default_factory=list[Explanation], compare=False)
    name: ClassVar = FragPlacePass.name

    def place(self, function: func.FuncOp) -> None:
        place(function, self.target, self.told)

    def pipeline_pass_spec(self, *, include_default: bool = False) -> ArgSpec:
        return FragPlacePass(self.target).pipeline_pass_spec(include_default=include_default)


__all__ = ["Explanation", "explain_layouts", "explaining"]
