"""Layout texts of every notation, right and wrong: a layout or one clear error, soon.

What a text gives is asked everything that a layout can be asked; small layouts are compared with
what looking at every slot says.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any

from fragir import layout
from fragir.errors import FragirError
from fragir.layout import Layout, LinearLayout, SharedLayout
from fragir.sweeps import Plan, Result, Sweep, Task
from fragir.sweeps.attempt import SECONDS, attempt

_NUMBERS = (
    *(
        "0",
        "1",
        "2",
        "3",
        "4",
        "7",
        "8",
        "16",
        "24",
        "32",
        "64",
        "128",
        "1000",
        "65536",
        "2147483648",
    ),
    *(
        "99999999",
        "4294967296",
        "1" + "0" * 30,
        "9" * 200,
        "9" * 5000,
        "-1",
        "1.5",
        "0x10",
        "09",
        "_8",
    ),
)
_TEXTS: dict[str, tuple[str, ...]] = {
    "layout": (
        "lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]",
        "warp [4:(16,0)] lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 3:(0,8)]",
        "lane [4:(0,0) 8:(1,0)] element [4:(0,1)] offset (16,0) where lane/2%4==1 and element%2==0",
        "row [8:128] col [64:2] dims (byte)",
        "lane [2:(1,0,0) 2:(0,2,0) 4:(0,0,1) 2:(4,0,0)] element [2:(0,1,0) 2:(2,0,0) 2:(0,4,0)]",
    ),
    "shared": ("row [8:128] col [64:2] dims (byte) swizzle (3,4,3)",),
    "cute": ("((4,8),(2,2)):((32,1),(16,8))", "(8,(4,2)):(16,(1,4))", "(_4,_8):(_1,_4)", "8:1"),
    "f2": (
        'f2:{"lane": [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], "register": [[0, 1], [8, 0]]}',
        'f2:{"row": [[5], [10]], "col": [[1], [2]]} dims (bank)',
        "f2:{register = [[0, 1]], lane = [[1, 0]]}",
    ),
    "formula": (
        "row = %laneid / 4; col = %laneid % 4 * 2 + i for i = {0,..,1}",
        "g = %laneid >> 2\nrow = g for ai where 0 <= i < 2 || 4 <= i < 6\n      g + 8 Otherwise\n"
        "col = %laneid % 4 * 2 + (i & 0x1) for ai where i < 4\n"
        "      %laneid % 4 * 2 + (i & 0x1) + 8 for ai where i >= 4",
        "a = i + i\nrow = a + a\ncol = %laneid for i = {0,..,3}\nheld where %laneid % 4 == 1",
    ),
}
_JUNK = (
    *("(", ")", "[", "]", "{", "}", ":", ",", ";", "=", "<<", ">>", "%", "/", "*", "..", "where"),
    *("dims", "offset", "swizzle", "for", "lane", "element", "i", "%tid.x", "held", "otherwise"),
    *("\n", "\0", "é", '"', "f2:", "(" * 3000, "[" * 3000, "{" * 3000, " " * 5000, "\n" * 5000),
)


def text(rng: random.Random) -> tuple[str, str]:
    """(notation, a text of it with up to four changes)."""
    kind = rng.choice(list(_TEXTS))
    made = rng.choice(_TEXTS[kind])
    for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 4))):
        at = rng.randrange(len(made) + 1)
        digits = [i for i, char in enumerate(made) if char.isdigit()]
        match rng.randrange(5):
            case 0 | 1 if digits:
                at = rng.choice(digits)
                made = made[:at] + rng.choice(_NUMBERS) + made[at + 1 :]
            case 2:
                made = made[:at] + rng.choice(_JUNK) + made[at:]
            case 3:
                made = made[:at] + made[at + rng.choice((1, 1, 3, 10)) :]
            case _:
                made = made[:at] + made[at:][: rng.choice((1, 5, 20))] + made[at:]
    return kind, made


def read(kind: str, given: str) -> list[Layout]:
    """The layouts that a text stands for; everything that is asked of them is asked."""
    match kind:
        case "layout":
            found = [Layout.parse(given)]
        case "shared":
            shared = SharedLayout.parse(given)
            _refusable(shared.offsets)
            found = [shared.layout]
        case "cute":
            found = [layout.from_cute(given, axes=("lane", "element"), dims=("index",))]
            _refusable(partial(layout.from_cute, given, (16, 8)))
        case "f2":
            linear = LinearLayout.parse(given)
            assert LinearLayout.parse(str(linear)) == linear
            _ = linear.is_bijection, linear.rank, linear.shape
            return [one for one in [_refusable(partial(layout.to_layout, linear))] if one]
        case _:
            found = [layout.from_formula(given)]
    return found


def ask(one: Layout) -> None:
    """The questions: each may be refused, with a reason."""
    assert Layout.parse(str(one)) == one
    origin = tuple(0 for _ in one.dims)
    for question in (
        *(one.simplified, one.formula, one.table, one.array, one.is_bijection, one.replication),
        *(partial(layout.to_cute, one), partial(layout.to_linear, one)),
        *(partial(layout.inverse, one), partial(layout.right_inverse, one)),
        *(partial(layout.left_inverse, one), partial(layout.complement, one, one.shape)),
        *(partial(layout.logical_product, one, one), partial(layout.plan, one, one)),
        *(partial(layout.subtile, one, origin, one.shape), partial(one.inverse, *origin)),
        partial(layout.compose, layout.identity(dict(zip(one.dims, one.shape, strict=True))), one),
    ):
        _refusable(question)


def _refusable(question: Callable[[], Any]) -> Any:
    """The answer, or None where it is refused; each question has its own time."""
    start = time.process_time()
    try:
        return question()
    except FragirError:
        return None
    finally:
        spent = time.process_time() - start
        assert spent < SECONDS, f"{question} took {spent:.1f} s"


def bijective(one: Layout) -> bool:
    """What `is_bijection` says, by looking at every slot."""
    points = [point for _, point in one.slots()]
    box = product(*(range(a, b) for a, b in zip(one.origin, one.shape, strict=True)))
    return None not in points and sorted(p for p in points if p is not None) == sorted(box)


def _trial(kind: str, given: str) -> None:
    for one in read(kind, given):
        ask(one)
        slots = 1
        for size in one.sizes.values():
            slots *= size
        box = 1
        for extent in one.shape:
            box *= extent
        if max(slots, box) <= 4096:
            assert one.is_bijection() == bijective(one), f"is_bijection of {one}"


def tasks(plan: Plan) -> Sequence[Any]:
    return [None] * (plan.count or 20)


def run(task: Task) -> Result:
    """A batch of texts."""
    counts = {"texts": 0, "layouts": 0}
    findings: list[str] = []
    for number in range(task.parameters["batch"]):
        kind, given = text(random.Random(f"{task.seed}/{task.index}/{number}"))
        trial = attempt(partial(_trial, kind, given), seconds=6 * SECONDS)
        counts["texts"] += 1
        counts["layouts"] += trial.error is None and trial.finding is None
        if trial.finding is not None:
            findings.append(f"text {number}, {kind} {given[:200]!r}: {trial.finding}")
    return {**counts, "findings": findings}


SWEEP = Sweep(tasks, run, {"batch": 100}, seconds=300.0)
