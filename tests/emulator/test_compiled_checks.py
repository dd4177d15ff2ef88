"""The compiled core finds and remembers what numpy does: records, masks, logs, prices."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fragir.emulator import Hooks, Report, run
from fragir.emulator.checks import conflicts
from fragir.emulator.checks.conflicts import LANES, by_warp, passes_of, sectors_of
from fragir.emulator.checks.races import ledger, races, undisputed
from fragir.emulator.checks.races.races import Races
from fragir.emulator.machine.events import Access
from fragir.emulator.machine.lanes import active
from fragir.emulator.native import library

if library.quick() is None:
    pytest.skip("the compiled core is not in use", allow_module_level=True)

HEAD = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 other)
{
    .reg .pred %p<3>; .reg .b32 %r<16>; .reg .b64 %d<8>; .reg .b16 %h<4>;
    .shared .align 16 .b8 room[2048];
    ld.param.u64 %d1, [data]; ld.param.u64 %d2, [other];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r10, 1; mov.u32 %r11, 2; mov.u32 %r12, 3;
    mov.u32 %r13, 4; mov.u16 %h1, 7; cvt.u16.u32 %h1, %r1;
    mov.u32 %r9, %r1;
"""
SIZES = {1: "u8 {}, {}", 2: "u16 {}, {}", 4: "u32 {}, {}", 8: "v2.u32 {}, {}", 16: "v4.u32 {}, {}"}


def statement(rng: np.random.Generator, smallest: int) -> str:
    """One access of every lane, or of some, or a barrier."""
    kind = rng.choice(["barrier", "warp", "fence", *(5 * ["load"]), *(5 * ["store"]), "atomic"])
    if kind == "barrier":
        return "bar.sync 0;"
    if kind == "warp":
        return "bar.warp.sync -1;"
    if kind == "fence":
        return rng.choice(["fence.acq_rel.gpu;", "membar.cta;"])
    size = int(rng.choice([s for s in SIZES if s >= smallest]))
    space = rng.choice(["shared", "global"])
    scale, mask = int(rng.choice([0, 1, 1, 1, 2, 3, 33])), int(rng.choice([31, 63, 127]))
    text = f"mul.lo.u32 %r3, %r1, {scale}; add.u32 %r3, %r3, {rng.integers(0, 40)};"
    if rng.integers(3) == 0:
        text += "mad.lo.u32 %r3, %r2, 5, %r3;"
    if kind == "atomic":
        size = 4
    text += f"and.b32 %r3, %r3, {min(mask, 2047 // size)}; mul.lo.u32 %r3, %r3, {size};"
    if space == "shared":
        text += "mov.u32 %r4, room; add.u32 %r4, %r4, %r3;"
        at = "%r4"
    else:
        text += f"cvt.u64.u32 %d3, %r3; add.u64 %d3, %d3, %d{rng.integers(1, 3)};"
        at = "%d3"
    guard = ""
    if rng.integers(4) == 0:
        text += f"and.b32 %r5, %r1, {rng.integers(1, 64)}; setp.ne.u32 %p1, %r5, 0;"
        guard = "@%p1 "
    value = {1: "%h1", 2: "%h1", 4: "%r9", 8: "{%r9, %r10}", 16: "{%r9, %r10, %r11, %r12}"}[size]
    into = {1: "%h2", 2: "%h2", 4: "%r6", 8: "{%r6, %r7}", 16: "{%r6, %r7, %r8, %r14}"}[size]
    strong = "volatile." if size < 8 and rng.integers(6) == 0 else ""
    if kind == "load":
        return f"{text} {guard}ld.{strong}{space}.{SIZES[size].format(into, f'[{at}]')};"
    if kind == "store":
        return f"{text} {guard}st.{strong}{space}.{SIZES[size].format(f'[{at}]', value)};"
    scope = rng.choice(["gpu", "cta"])
    return f"{text} {guard}atom.relaxed.{scope}.{space}.add.u32 %r6, [{at}], 1;"


def program(seed: int) -> str:
    rng = np.random.default_rng(seed)
    smallest = int(rng.choice([1, 4, 4, 8]))
    lines = [statement(rng, smallest) for _ in range(24)]
    return HEAD + "\n".join(lines) + "\nret;\n}\n"


def state(check: Races) -> dict[str, Any]:
    """All that the check remembers at the end of a wave."""
    shared = check.shared_places
    found: dict[str, Any] = {
        "log": shared.log.everything(),
        "now": check.clocks.now,
        **{n: getattr(shared, n).copy() for n in ("written", "read", "read_time")},
        "masks": np.where(shared.read != 0, shared.masks, 0),
    }
    for index, book in check.global_places.ledgers.items():
        for kind in range(3):
            at, size = book.accessed_places(kind)
            rows = book.places(at, size)[:, 0]
            order = np.argsort(at)
            found[f"{index} {kind}"] = [
                size,
                *(
                    x[order].tolist()
                    for x in (at, book.records[kind][rows], book.owners[kind][rows])
                ),
            ]
    return found


def nothing(*_: object) -> None:
    """Instead of what the compiled core has."""


def both(text: str, monkeypatch: pytest.MonkeyPatch, **how: Any) -> tuple[int, int]:
    """Run with the compiled core and with numpy and compare: (findings, remarks)."""
    reports: list[Report] = []
    states: list[list[dict[str, Any]]] = []
    for numpy_alone in (False, True):
        kept: list[dict[str, Any]] = []

        def on_wave_end(self: Races, kept: list[dict[str, Any]] = kept) -> None:
            self.exits.finish()
            kept.append(state(self))

        with monkeypatch.context() as patched:
            patched.setattr(Races, "on_wave_end", on_wave_end)
            if numpy_alone:
                patched.setattr(races, "compiled_ledgers", nothing)
                patched.setattr(conflicts, "compiled_prices", nothing)
            data = [np.arange(4096, dtype=np.uint32), np.ones(4096, np.uint32)]
            reports.append(run(text, arguments=data, check=True, jobs=1, **how))
        states.append(kept)
    one, other = reports
    assert one.findings == other.findings
    assert one.remarks == other.remarks
    assert one.statistics.conflicts == other.statistics.conflicts
    assert len(states[0]) == len(states[1]) > 0
    for here, there in zip(*states, strict=True):
        assert here.keys() == there.keys()
        for name, value in here.items():
            if isinstance(value, np.ndarray):
                assert (value == there[name]).all(), name
            else:
                assert value == there[name], name
    return len(one.findings), len(one.remarks)


@pytest.mark.parametrize("seeds", [range(0, 12), range(12, 24)])
def test_random_programs(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    total = np.zeros(2, np.int64)
    for seed in seeds:
        total += both(program(seed), monkeypatch, grid=(2,), block=(96,))
        both(program(seed), monkeypatch, grid=(3,), block=(40,), resident=2)
    assert (total > 20).all()  # there was something to find


def test_pages_and_schedules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "SMALL", 0)
    for seed in range(30, 36):
        both(program(seed), monkeypatch, grid=(2,), block=(64,))
        both(program(seed), monkeypatch, grid=(2,), block=(64,), schedule=seed)


def test_blocks_of_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(40, 46):
        text = program(seed).replace("bar.sync 0;", "barrier.cluster.arrive; barrier.cluster.wait;")
        text = text.replace(
            "mov.u32 %r4, room;", "mov.u32 %r4, room; mapa.shared::cluster.u32 %r4, %r4, 0;"
        )
        text = text.replace(".shared.", ".shared::cluster.")
        both(text, monkeypatch, grid=(4,), block=(64,), cluster=(2,))


def test_the_core_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the others compare numpy with itself."""
    seen: list[int] = []
    plain = undisputed.CompiledLedgers.write

    def write(self: Any, *arguments: Any) -> int:
        seen.append(plain(self, *arguments))
        return seen[-1]

    monkeypatch.setattr(undisputed.CompiledLedgers, "write", write)
    both(program(2), monkeypatch, block=(64,))
    assert any(found != undisputed.BY_NUMPY for found in seen)


LOOP = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .pred %p<3>; .reg .b32 %r<8>; .reg .b64 %d<3>; .shared .align 4 .b8 room[256];
    mov.u32 %r1, %tid.x; mov.u32 %r2, 0; mov.u32 %r3, room; shl.b32 %r4, %r1, 2;
    add.u32 %r3, %r3, %r4; ld.param.u64 %d1, [out]; mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2;
L:  st.shared.u32 [%r3], %r2; bar.sync 0; ld.shared.u32 %r5, [%r3];
    add.u32 %r6, %r5, %r1; setp.gt.u32 %p2, %r6, 40; @%p2 st.global.u32 [%d1], %r6;
    add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 90; @%p1 bra L;
    ret;
}
"""


class Listener(Hooks):
    """Counts lanes that access memory, and lanes that come to a barrier."""

    seen: Counter[str]

    def __init__(self, machine: Any, program: Any) -> None:
        super().__init__(machine, program)
        self.seen = Counter()

    def on_access(self, access: Access) -> None:
        self.seen[f"{access.kind} {access.space}"] += access.lanes.size

    def on_barrier(self, kind: str, scope: str, number: int, lanes: Any) -> None:
        self.seen[kind] += len(lanes)


class Follower(Hooks):
    """Counts lanes that add, and lanes for which a branch is decided."""

    def __init__(self, machine: Any, program: Any) -> None:
        super().__init__(machine, program)
        self.seen: Counter[str] = Counter()

    def wrap(self, d: Any, group: Any, step: Any) -> Any:
        def run(sel: Any, mask: Any) -> None:
            self.seen["add"] += active(sel, mask, self.machine.warps).sum()
            step(sel, mask)

        return run if group[0].opcode[0] == "add" else step

    def wrap_terminator(self, d: Any, instruction: Any, terminator: Any) -> Any:
        def run(sel: Any, mask: Any) -> int | None:
            self.seen[instruction.opcode[0]] += active(sel, mask, self.machine.warps).sum()
            return terminator(sel, mask)

        return run if instruction.opcode[0] == "bra" else terminator


@pytest.mark.parametrize("kind", [Listener, Follower])
@pytest.mark.parametrize("check", [False, True])
def test_runs_of_instructions_hide_nothing(kind: type[Hooks], check: bool) -> None:
    """Neighbouring instructions run in one call, but for those that some check looks at."""
    made: list[Any] = []

    def make(machine: Any, program: Any) -> Hooks:
        made.append(kind(machine, program))
        return made[-1]

    out = np.zeros(64, np.uint32)
    run(LOOP, block=(64,), arguments=[out])  # the program is kept, and what was found about it
    report = run(LOOP, block=(64,), arguments=[out], checks=[make], check=check)
    turns, lanes = 90, 64
    stored = sum(turn + lane > 40 for turn in range(turns) for lane in range(lanes))
    wanted: dict[type[Hooks], dict[str, int]] = {
        Listener: {
            "load shared": turns * lanes,
            "store shared": turns * lanes,
            "store global": stored,
            "sync": turns * lanes,
            "release": turns * lanes,
        },
        Follower: {"add": (2 + 2 * turns) * lanes, "bra": turns * lanes},
    }
    expected = wanted[kind]
    found = dict(made[0].seen)
    assert {name: found[name] for name in expected} == expected
    assert report.findings == []
    if check:
        assert report.statistics.conflicts["passes"] == 2 * 2 * turns


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("shared", [True, False])
def test_prices(size: int, shared: bool) -> None:
    prices = conflicts.compiled_prices()
    assert prices is not None
    rng = np.random.default_rng(size)
    for spread in (4, 64, 5000):
        at = rng.integers(0, spread, 40 * LANES) * size
        lanes = np.arange(40 * LANES) + LANES * 3
        for _ in range(2):
            rows: npt.NDArray[np.int64] = by_warp(at, lanes)[0]
            paid, needed = (passes_of if shared else sectors_of)(rows, size)
            excess = paid - needed
            worst = int(excess.argmax())
            wanted = int(paid.sum()), int(needed.sum()), int(excess[worst])
            found = prices.total(at, lanes, size, shared)
            assert found is not None
            assert found[:3] == wanted
            if wanted[2]:
                assert found[3] == by_warp(at, lanes)[1][worst]
            keep = rng.random(len(at)) < 0.6  # some lanes only
            at, lanes = at[keep], lanes[keep]
        assert prices.total(at[::-1], lanes[::-1], size, shared) is None
