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
        "row [8:^144 3:1024] col [64:2] dims (byte) swizzle (2,4,3)",
        "lane [4:^(1,2) 8:^(0,3)] element [2:(0,1) 3:(8,0)] offset (1,0) where lane%4==1",
        "lane [2:(1,0,0) 2:(0,2,0) 4:(0,0,1) 2:(4,0,0)] element [2:(0,1,0) 2:(2,0,0) 2:(0,4,0)]",
    ),
    "shared": ("row [8:128] col [64:2] dims (byte) swizzle (3,4,3)",),
    "cute": ("((4,8),(2,2)):((32,1),(16,8))", "(8,(4,2)):(16,(1,4))", "(_4,_8):(_1,_4)", "8:1"),
    "notation": (
        "cute:Sw<3,4,3> o 0 o (8,64):(64,1)",
        "cute:Sw<3,4,3> o smem_ptr[16b](unset) o (8,(64,2)):(64,(1,512))",
        "cute:S<2,3,3> o 192 o (8,80):(80,1)",
        "cute:((4,8),(2,2)):((2@1,1@0),(1@1,8@0))",
        "cute:(16,8):(1@0,1@1) o 0 o ((4,8),(2,2)):((32,1),(16,8))",
        "cute:(4,(2,3)):(1@0@0,(1@1@0,1@1))",
        "Sw<3,4,3> o row [8:80] col [80:1]",
        "row [8:^72 8:512] col [64:1]",
        "lane [4:^(0,2) 8:(1,0)] element [2:(0,1) 2:^(8,3)] offset (1,1)",
    ),
    "ttg": (
        "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], "
        "order = [1, 0], CGALayout = [[0, 1]]}>",
        "#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], "
        "instrShape = [16, 8]}>\n#ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>",
        "tensor<64xf32, #ttg.slice<{dim = 1, parent = #ttg.nvidia_mma<{versionMajor = 3, "
        "versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>}>>",
        "#ttg.linear<{register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], "
        "[4, 0]], warp = [], block = []}>",
        "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>",
        "#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>",
        "#ttg.padded_shared<[64:+8, 128:+4] {order = [1, 0], shape = [64, 64]}>",
        "#ttg.shared_linear<{offset = [[0, 1], [0, 2], [1, 1], [2, 2]]}, alignment = 16>",
        " - register=1 -> (0, 1)\n   register=2 -> (8, 0)\n - lane=1 -> (0, 2)\n"
        "   lane=2 -> (1, 4)\nwhere out dims are: [dim0 (size 16), dim1 (size 8)]",
    ),
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
    *("dims", "offset", "swizzle", ":^", "for", "lane", "element", "i", "%tid.x", "held"),
    "otherwise",
    *("o", "@1", "^", "Sw<3,4,3>", "#ttg.", "<{", "}>", "?", "parent = #mma", "true", "-> (0)"),
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
            one = layout.from_cute(given, axes=("lane", "element"), dims=("index",))
            if isinstance(one, layout.LayoutChain):
                _ask_chain(one)
                return []
            found = [one]
            _refusable(partial(layout.from_cute, given, (16, 8)))
        case "notation" | "ttg":
            shape = (64, 64) if given.startswith("#") else None
            one = layout.read_layout(given, shape)
            if isinstance(one, layout.LayoutChain):
                _ask_chain(one)
                return []
            found = [one]
        case "f2":
            linear = LinearLayout.parse(given)
            assert LinearLayout.parse(str(linear)) == linear
            _ = linear.is_bijection, linear.rank, linear.shape
            return [one for one in [_refusable(partial(layout.to_layout, linear))] if one]
        case _:
            found = [layout.from_formula(given)]
    return found


def _ask_chain(one: layout.LayoutChain) -> None:
    _refusable(one.array)
    _refusable(partial(layout.difference, one, one))
    again = _refusable(partial(layout.read_layout, str(one)))
    assert again is None or again.parts == one.parts, f"{one} reads as {again}"


def ask(one: Layout) -> None:
    """The questions: each may be refused, with a reason."""
    assert Layout.parse(str(one)) == one
    origin = tuple(0 for _ in one.dims)
    for question in (
        *(one.simplified, one.formula, one.table, one.array, one.is_bijection, one.replication),
        *(partial(layout.to_cute, one), partial(layout.to_linear, one)),
        *(partial(layout.inverse, one), partial(layout.right_inverse, one)),
        *(partial(layout.left_inverse, one), partial(layout.complement, one, one.shape)),
        *(partial(layout.logical_product, one, one), partial(layout.sources, one, one)),
        *(partial(layout.subtile, one, origin, one.shape), partial(one.inverse, *origin)),
        *(partial(layout.write_layout, one, n) for n in ("f2", "ttg", "linear", "cute")),
        *(partial(layout.coalesce, one), partial(layout.recast, one, 8, 16)),
        *(partial(layout.recast, one, 16, 8), partial(layout.difference, one, one.simplified())),
        *(partial(layout.partial_right_inverse, one), partial(layout.partial_left_inverse, one)),
        partial(layout.reshape, one, axes={"slot": one.size(one.names[0]) if one.names else 1}),
        partial(layout.max_common_vector, one, one),
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
    if None in points:
        return False
    held = sorted(point for point in points if point is not None)
    sides = [range(min(along), max(along) + 1) for along in zip(*held, strict=True)]
    return held == sorted(product(*sides))


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
