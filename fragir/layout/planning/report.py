"""A plan of a conversion for people and for other programs: its steps, its price, its reasons.

>>> from fragir.layout.layout import Layout
>>> from fragir.layout.planning.planner import plan_conversion
>>> sums = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 4:(0,8)]")
>>> operand = Layout.parse("lane [4:(0,4) 8:(1,0)] element [4:(0,1) 2:(8,0) 2:(0,16)]")
>>> report = report_of(plan_conversion(sums, operand, 8))
>>> report.steps
(('selp', 4), ('shfl', 4), ('prmt', 4))
>>> print(report.reasons[0])
Each lane needs words of 2 lanes, 4 words in all: no program has fewer than 4 shuffles.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import isclose

from fragir.errors import short_text
from fragir.layout.planning.bounds import Movement
from fragir.layout.planning.costs import COSTS, FEATURES, Costs, Features
from fragir.layout.planning.planner import ConversionPlan, Through, assemble_program
from fragir.layout.planning.registers import pair_of
from fragir.layout.planning.shared import shared_plan
from fragir.layout.planning.warp import price, warp_plan

WORDS = {
    "nothing": "nothing moves",
    "registers": "registers change their names",
    "bytes": "bytes move inside of the lane's registers",
    "shuffles": "data move between the lanes of a warp",
    "shared": "data move through shared memory",
    "elements": "data move through shared memory, element by element",
}

_OPERATIONS = {
    "selp": "select one of two words by the lane's number",
    "prmt": "permute or select bytes of two words",
    **dict.fromkeys(("and", "or", "shl", "shr", "mul"), "take bytes apart and join them"),
    "shfl": "shuffle a word between lanes",
    "movmatrix": "transpose 8 x 8 over the warp",
    "bar.warp.sync": "wait for the lanes of the warp",
    "bar.sync": "wait for the warps that exchange data",
}


@dataclass(frozen=True)
class ConversionReport:
    """What a plan does, in the order in which it is done, by one thread.

    `steps` are (operation, count); `passes` over the banks by the stores and loads of one warp,
    `cost` and `least` in half cycles of an SM, `scratch` in bytes.
    """

    steps: tuple[tuple[str, int], ...]
    cost: float
    least: float
    passes: tuple[int, int]
    barriers: int
    scratch: int
    reasons: tuple[str, ...]

    def __repr__(self) -> str:
        steps = " + ".join(f"{count} {name}" for name, count in self.steps)
        priced = f"{self.cost:g} half cycles, {self.least:g} at least"
        return short_text(f"<conversion: {steps or 'no instructions'}; {priced}>")

    @property
    def instructions(self) -> int:
        """The instructions of one thread, without what lanes compute of their number once."""
        return sum(count for _, count in self.steps)

    @property
    def shuffles(self) -> int:
        """Shuffles and transpositions."""
        return sum(count for name, count in self.steps if name in ("shfl", "movmatrix"))


def meaning(operation: str) -> str:
    """What an operation of `steps` does, in words."""
    if operation in _OPERATIONS:
        return _OPERATIONS[operation]
    name, _, rest = operation.partition(".")
    size = rest.split(".")[0]
    if name in ("st", "ld"):
        verb = "store" if name == "st" else "load"
        return f"{verb} {int(size) // 8} bytes a lane" if size.isdigit() else verb
    if name in ("stmatrix", "ldmatrix"):
        verb = "store" if name == "stmatrix" else "load"
        turned = ", transposed" if rest.endswith("trans") else ""
        return f"{verb} {size.removeprefix('x')} matrices of 8 x 8{turned}"
    return ""


def report_of(
    plan: ConversionPlan, features: Features = FEATURES, costs: Costs = COSTS
) -> ConversionReport:
    """The report of a plan that was made for these features and costs."""
    return ConversionReport(
        tuple(_steps(plan)),
        plan.cost,
        plan.least,
        _passes(plan),
        _barriers(plan),
        plan.scratch,
        tuple(_reasons(plan, features, costs)),
    )


def _steps(plan: ConversionPlan) -> Iterator[tuple[str, int]]:
    if plan.program is not None:
        yield from plan.program.counts.items()
    elif plan.through is not None:
        yield from _joined_steps(_through(plan.through))
    elif plan.rows is not None:
        sizes, accesses = plan.rows.sizes, plan.rows.accesses
        yield f"st.{8 * sizes[0]}", accesses[0]
        yield "bar.sync", 1
        yield f"ld.{8 * sizes[1]}", accesses[1]
    elif plan.apart is not None:
        yield from plan.counts.items()


def _through(through: Through) -> Iterator[tuple[str, int]]:
    barrier = "bar.warp.sync" if through.meeting.reach == "warp" else "bar.sync"
    yield from through.before.counts.items()
    for turn, (stores, loads) in enumerate(through.turns):
        if turn:
            yield barrier, 1
        yield from ((access.name, 1) for access in stores)
        yield barrier, 1
        yield from ((access.name, 1) for access in loads)
    yield from through.after.counts.items()


def _joined_steps(steps: Iterable[tuple[str, int]]) -> Iterator[tuple[str, int]]:
    """Neighbours of one name as one step."""
    last: tuple[str, int] | None = None
    for name, count in steps:
        if last is not None and last[0] == name:
            last = name, last[1] + count
            continue
        if last is not None:
            yield last
        last = name, count
    if last is not None:
        yield last


def _passes(plan: ConversionPlan) -> tuple[int, int]:
    if plan.apart is not None:
        return _passes(plan.apart)
    if plan.through is not None:
        return plan.through.passes
    return (0, 0) if plan.rows is None else plan.rows.passes


def _barriers(plan: ConversionPlan) -> int:
    if plan.apart is not None:
        return _barriers(plan.apart)
    if plan.through is not None:
        return plan.through.barriers
    return 0 if plan.rows is None else 1


def _reasons(plan: ConversionPlan, features: Features, costs: Costs) -> Iterator[str]:
    """Why nothing is cheaper, as far as it is known."""
    if plan.free:
        yield "Every value stays in its lane and every word in one piece: there is nothing to do."
        return
    if plan.apart is not None:
        yield "Elements part from those they share a byte with: each goes with a byte of its own."
        yield from _reasons(plan.apart, features, costs)
        return
    moves, pair = plan.moves, pair_of(plan.source, plan.target, plan.bits)
    if moves is None or pair is None:
        yield "The layouts are not linear over bits together, so no bound is known."
        return
    times = pair.times
    yield from _needs(moves, times)
    if plan.way == "shuffles":
        taken, least = plan.counts.get("shfl", 0), plan.least_shuffles
        transposed = plan.counts.get("movmatrix", 0)
        if transposed:
            yield f"movmatrix does {transposed} of them, which shuffles do with selects beside."
        elif taken == least:
            yield f"This one has {taken}, the least."
        else:
            yield f"This one has {taken}; the bound is of words that each come from another lane."
        yield from _other(plan, "shared", features, costs)
    if plan.through is not None:
        stored, loaded = plan.through.passes
        least = sum(plan.through.passes)
        words = moves.words * times
        if loaded <= words:
            yield (
                f"Stores take {stored} and loads {loaded} passes over the banks; no bank is met "
                f"twice where that is {words} each."
            )
        else:
            yield f"Stores and loads take {least} passes over the banks, {words} each at best."
        yield from _waiting(plan.through)
        if moves.reach != "warps":
            yield from _other(plan, "shuffles", features, costs)
    if isclose(plan.cost, plan.least):
        yield "It costs what no plan can undercut."


def _needs(moves: Movement, times: int) -> Iterator[str]:
    words = moves.words * times
    match moves.reach:
        case "bytes":
            yield (
                f"Values stay in their lanes, but {words} words are made of parts of others or "
                "depend on the lane: one instruction each."
            )
        case "lanes":
            lanes = 1 << moves.mixed
            sources = "one other lane" if lanes == 1 else f"{lanes} lanes"
            yield (
                f"Each lane needs words of {sources}, {words} words in all: no program has fewer "
                f"than {moves.shuffles * times} shuffles."
            )
        case "warps":
            yield f"Each lane needs {words} words of other warps: only shared memory reaches them."
        case _:
            pass


def _waiting(through: Through) -> Iterator[str]:
    meeting = through.meeting
    if meeting.reach == "warp":
        yield "Each warp exchanges with itself alone and waits for its own lanes only."
    elif meeting.reach == "group":
        yield f"{meeting.warps} warps exchange data and wait for each other, the others do not."
    else:
        yield f"All {meeting.warps} warps exchange data and wait for each other."


def _other(plan: ConversionPlan, way: str, features: Features, costs: Costs) -> Iterator[str]:
    """What the way that was not taken would cost."""
    pair = pair_of(plan.source, plan.target, plan.bits)
    if pair is None:
        return
    if way == "shuffles":
        warp = warp_plan(pair.source, pair.target, pair.bits, costs, features)
        if warp is not None:
            cost = price(assemble_program(warp.program, pair), costs)
            yield f"Shuffles would cost {cost:g} where this costs {plan.cost:g}."
    else:
        shared = shared_plan(pair.source, pair.target, pair.bits, features, costs)
        waits = (2 * shared.rounds - 1) * costs.barrier(shared.meeting.reach)
        cost = shared.work * pair.times + shared.formulas + waits
        yield f"Shared memory would cost {cost:g} where this costs {plan.cost:g}."
