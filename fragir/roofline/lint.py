"""What makes a launch slow, in sentences: the cause, where it is, and about what it costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from xdsl.dialects.builtin import FileLineColLoc

from fragir.roofline.counters import LINE, WIDEST, MemoryUse
from fragir.roofline.model import LaunchModel

if TYPE_CHECKING:
    from xdsl.ir import Operation

TOLD = 1.3
"""The least factor of which a word is said."""
SHORT = 8000
"""Cycles below which a launch is short whatever it does: a few times what a launch takes."""
SLIGHT = 0.05
"""Of its time that a launch moves bytes, below which it waits for something else than these."""
CAUSES = ("sms", "narrow", "sectors", "again", "flight", "passes", "products", "fma")


class LaunchRemark(NamedTuple):
    """Something that makes a launch slow."""

    cause: str
    """A word of `CAUSES`."""
    factor: float
    """By how much the launch is slower than it would be without, were all else well."""
    words: str
    kernel: str
    operation: Operation | None = None
    """Which it is about; None of the whole launch."""

    @property
    def place(self) -> str:
        """Of the operation in the program, `file:line:column`; "" where that is not known."""
        at = None if self.operation is None else self.operation.location
        if not isinstance(at, FileLineColLoc):
            return ""
        return f"{at.filename.data}:{at.line.data}:{at.column.data}"

    def __str__(self) -> str:
        return f"{self.place or self.kernel}: {self.words}; it costs about {self.factor:.1f} times"

    def __repr__(self) -> str:
        return f"<{self}>"

    @property
    def document(self) -> dict[str, str | float]:
        """As JSON has it."""
        return {
            "cause": self.cause,
            "factor": round(self.factor, 2),
            "words": self.words,
            "kernel": self.kernel,
            "place": self.place,
        }


def remarks(model: LaunchModel) -> list[LaunchRemark]:
    """What slows a launch down by 1.3 times or more, the worst first; nothing of a short launch."""
    now = model.cycles()
    if now < SHORT:
        return []
    best = model.cycles(CAUSES)
    left = {
        cause: model.cycles([other for other in CAUSES if other != cause]) / best
        for cause in CAUSES
    }
    found = _remarks_on(model, left)
    if not found and now >= TOLD * best:
        # several, of which each alone would be hidden: the one without which it is fastest
        without = {cause: now / model.cycles([cause]) for cause in CAUSES}
        found = _remarks_on(model, without)[:1]
    return found


def _remarks_on(model: LaunchModel, factors: Mapping[str, float]) -> list[LaunchRemark]:
    """What is said of causes of these factors, the worst first."""
    found: list[LaunchRemark] = []
    for cause, factor in sorted(factors.items(), key=lambda each: -each[1]):
        words, op = _SENTENCES[cause](model) if factor >= TOLD else ("", None)
        if words:
            found.append(LaunchRemark(cause, factor, words, model.kernel, op))
    return found


Sentence = tuple[str, "Operation | None"]
"""Words, and the operation that they are about; no words where there is nothing to say."""


def _few_blocks(model: LaunchModel) -> Sentence:
    sms = model.device.sms
    if model.blocks < sms:
        blocks = "one block" if model.blocks == 1 else f"{model.blocks} blocks"
        return (
            f"the launch has {blocks}: {model.busy} of the {sms} SMs of the {model.device.name} "
            "work",
            None,
        )
    each = -(-model.blocks // sms)
    last = model.blocks - (each - 1) * sms
    return (
        f"{model.blocks} blocks are {each} rounds of the {sms} SMs of the {model.device.name}, "
        f"the last of {last}",
        None,
    )


def _sectors(model: LaunchModel) -> Sentence:
    use = _worst(model, lambda use: (use.lines * LINE - use.asked) * use.turns)
    if use is None or not use.requests:
        return "", None
    sectors = use.sectors / use.requests
    asked = use.asked / use.requests
    verb = "writes" if use.writes else "reads"
    return (
        f"a warp {verb} {_name(model, use)} by {sectors:.0f} sectors of 32 bytes for "
        f"{asked:.0f} bytes",
        use.operation,
    )


def _narrow(model: LaunchModel) -> Sentence:
    use = _worst(model, lambda use: use.requests * use.turns * (use.beside - use.size))
    if use is None:
        return "", None
    words = (
        f"{_name(model, use)} is accessed by {use.size} bytes where {use.beside} of a lane lie "
        "side by side"
    )
    row = model.open_rows.get(use.memory or 0)
    if row is not None:
        count = WIDEST * 8 // model.bits[use.memory or 0]
        words += f"; with frag.divisible = {{{row} = {count}}} they would be {WIDEST}"
    return words, use.operation


def _again(model: LaunchModel) -> Sentence:
    use = _worst(model, lambda use: use.asked * use.turns - use.wanted * use.distinct_turns)
    if use is None:
        return "", None
    times = use.asked * use.turns / (use.wanted * use.distinct_turns)
    return (
        f"{_name(model, use)} is read from global memory {times:.0f} times by a block",
        use.operation,
    )


def _in_flight(model: LaunchModel) -> Sentence:
    use = _worst(model, lambda use: 0.0 if use.writes else use.once)
    parts = model.parts()
    if use is None or parts["memory"] + parts["L2"] < SLIGHT * parts["latency"]:
        return "", None
    wanted = model.device.in_flight
    if model.in_flight >= wanted:
        return (
            f"a block waits {model.work.waits:.0f} times for memory, as nothing is read ahead",
            use.operation,
        )
    return (
        f"{model.in_flight / 1024:.0f} KiB of {_name(model, use)} are on their way to an SM at "
        f"once, where memory wants {wanted // 1024}",
        use.operation,
    )


def _passes(model: LaunchModel) -> Sentence:
    for part in model.by_memory().values():
        if len(part) > 1 and part[0].memory is not None:
            verb = "written" if part[0].writes else "read"
            return (
                f"{_name(model, part[0])} is {verb} in {len(part)} passes over memory",
                part[-1].operation,
            )
    return "", None


def _products(model: LaunchModel) -> Sentence:
    found = [(times, key) for key, times in model.work.products.items() if key[1][:3] == "mma"]
    if not found:
        return "", None
    _, (op, mnemonic) = max(found, key=lambda each: each[0])
    why = "its factors are in registers, wgmma reads B from swizzled shared memory"
    return f"a product goes by {mnemonic} where {model.target} has wgmma: {why}", op


def _by_arithmetic(model: LaunchModel) -> Sentence:
    return "a product goes by fma, on no tensor core: of f32 they take 10 bits (tf32)", None


def _worst(model: LaunchModel, cost: Callable[[MemoryUse], float]) -> MemoryUse | None:
    """The traffic of the largest cost; None where none has any."""
    found = [use for use in model.work.traffic if use.known and use.memory is not None]
    worst = max(found, key=cost, default=None)
    return None if worst is None or cost(worst) <= 0 else worst


def _name(model: LaunchModel, use: MemoryUse) -> str:
    return model.names[use.memory] if use.memory is not None else "memory"


_SENTENCES: dict[str, Callable[[LaunchModel], Sentence]] = {
    "sms": _few_blocks,
    "sectors": _sectors,
    "narrow": _narrow,
    "again": _again,
    "flight": _in_flight,
    "passes": _passes,
    "products": _products,
    "fma": _by_arithmetic,
}
