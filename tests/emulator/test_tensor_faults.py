"""Planted faults around tcgen05: each is found, and its twin without the fault is silent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fragir.emulator import EmulationError, Finding, TensorMap, run

from .tensor_kernels import PIECES, SHARED, gemm, gemm_arrays
from .tensor_products import ARRIVE, Case, execute, kernel, make_trial

#: What is found: (kind, severity), sorted.
Found = list[tuple[str, str]]


def _kinds(findings: list[Finding]) -> Found:
    return sorted({(one.kind, one.severity) for one in findings})


def _gemm(changed: dict[str, str], *, check: bool = True) -> tuple[Found, bool]:
    """What is found in the GEMM with some pieces changed, and whether its result is right."""
    a, b, c = gemm_arrays()
    maps = [TensorMap(x, (128, 64), swizzle=128) for x in (a, b)]
    sizes = c.shape[1], a.shape[1]
    try:
        report = run(
            gemm(**changed),
            "gemm",
            block=(128,),
            shared=SHARED,
            arguments=[*maps, c, *sizes],
            check=check,
        )
        found = _kinds(report.findings)
    except EmulationError as error:
        found = [(error.kind, "error")]
    return found, bool((c == a.astype(np.float32) @ b.T.astype(np.float32)).all())


_SECOND = PIECES["alloc"].replace("[hold]", "[hold+4]").replace("128", "64")
_FREE_SECOND = "ld.shared.b32 u, [hold+4]; " + PIECES["dealloc"].replace("taddr, 128", "u, 64")
_OTHER_PARITY = PIECES["finished"].replace("[done], 0", "[done], 1")
_RELAXED = PIECES["finished"].replace("try_wait.parity", "try_wait.parity.relaxed.cta")
_ALONE = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 taddr, 128;"

#: name -> (the kind and severity that is found, what is changed).
GEMM_FAULTS: dict[str, tuple[tuple[str, str], dict[str, str]]] = {
    "D is read at once": (("pending-tensor", "error"), {"finished": ""}),
    "the wait is for the wrong parity": (("pending-tensor", "error"), {"finished": _OTHER_PARITY}),
    "no commit behind the last product": (("deadlock", "error"), {"commit": ""}),
    "no commit that frees a stage": (("deadlock", "error"), {"release": ""}),
    "operands that are yet to come": (("pending-copy", "error"), {"loaded": ""}),
    "a stage that is still read": (("pending-source", "error"), {"free_stage": ""}),
    "columns that are never given back": (("tensor-memory", "error"), {"dealloc": ""}),
    "columns that are given back twice": (
        ("tensor-memory", "error"),
        {"dealloc": PIECES["dealloc"] * 2},
    ),
    "fewer columns are given back": (
        ("tensor-memory", "error"),
        {"dealloc": PIECES["dealloc"].replace("128", "64")},
    ),
    "alloc after relinquish": (
        ("tensor-memory", "error"),
        {"relinquish": PIECES["relinquish"] + _SECOND, "dealloc": PIECES["dealloc"] + _FREE_SECOND},
    ),
    "more columns than before": (
        ("tensor-memory", "error"),
        {
            "alloc": PIECES["alloc"] + _SECOND.replace("64", "256"),
            "dealloc": PIECES["dealloc"] + _FREE_SECOND.replace("u, 64", "u, 256"),
        },
    ),
    "columns beyond the allocation": (
        ("tensor-memory", "error"),
        {k: PIECES[k].replace("128", "64") for k in ("alloc", "dealloc")},
    ),
    "columns that have been given back": (
        ("tensor-memory", "error"),
        {"after": f"@!first bra KEPT; {_ALONE} KEPT: bar.sync 0;", "dealloc": ""},
    ),
    "the address is read too early": (("race", "error"), {"meet": ""}),
    "freed while others load": (("race", "error"), {"all_read": ""}),
    "a relaxed wait without a fence": (("race", "error"), {"finished": _RELAXED}),
    "D is added to before it is written": (
        ("uninitialised", "error"),
        {"products": PIECES["products"].replace("acc, k, 0", "acc, k, 1000")},
    ),
}
#: What is like a fault and is none.
GEMM_TWINS: dict[str, dict[str, str]] = {
    "the GEMM": {},
    "wait::ld is not needed where registers are used": {"wait_ld": ""},
    "wait::ld is not needed where registers are not used yet": {"store": "", "wait_ld": ""},
    "nobody has to relinquish": {"relinquish": ""},
    "two allocations": {
        "alloc": PIECES["alloc"] + _SECOND,
        "dealloc": PIECES["dealloc"] + _FREE_SECOND,
    },
    "a relaxed wait and a fence": {
        "finished": _RELAXED,
        "after": "tcgen05.fence::after_thread_sync;",
    },
    "fences everywhere": {
        "meet": "tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;",
        "after": "tcgen05.fence::after_thread_sync;",
    },
}


@pytest.mark.parametrize("name", GEMM_FAULTS)
def test_fault_in_a_gemm(name: str) -> None:
    wanted, changed = GEMM_FAULTS[name]
    found, _ = _gemm(changed)
    assert wanted in found, found


@pytest.mark.parametrize("name", GEMM_TWINS)
def test_gemm_without_fault(name: str) -> None:
    changed = GEMM_TWINS[name]
    found, right = _gemm(changed)
    assert not found
    assert right or "store" in changed


@pytest.mark.parametrize("asynchrony", ["late", "early", "random"])
def test_gemm_equals_numpy(asynchrony: Any) -> None:
    """Several tiles, sizes of several steps, whatever is done when."""
    a, b, c = gemm_arrays(256, 256, 320)
    maps = [TensorMap(x, (128, 64), swizzle=128) for x in (a, b)]
    run(
        gemm(),
        "gemm",
        grid=(2, 2),
        block=(128,),
        shared=SHARED,
        arguments=[*maps, c, 256, 320],
        asynchrony=asynchrony,
        schedule=3 if asynchrony == "random" else None,
    )
    assert (c == a.astype(np.float32) @ b.T.astype(np.float32)).all()


def test_without_checks() -> None:
    """What cannot go on stops, and what is against the rules of allocation is found at once."""
    assert _gemm({"finished": ""}, check=False)[0] == [("pending-tensor", "error")]
    assert _gemm({"dealloc": ""}, check=False)[0] == [("tensor-memory", "error")]
    assert _gemm({}, check=False) == ([], True)


def test_another_warps_lanes() -> None:
    """A letter, and the data of the warp's own lanes."""
    found, right = _gemm({"after": "mov.u32 warp, 0;"})
    assert found == [("tensor-memory", "letter")]
    assert right


# -- several instructions --------------------------------------------------------------------------

_CASE = Case("f16", "f16", "f16", 128, 64)
_MMA = make_trial(_CASE).instruction
_ARRIVE = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar+16];"
_DONE = f"""
    mbarrier.init.shared::cta.b64 [bar+16], 1; fence.mbarrier_init.release.cluster;
    {_ARRIVE}
AGAIN: mbarrier.try_wait.parity.shared::cta.b64 q, [bar+16], 0; @!q bra AGAIN;
"""
_NARROW = "xor.b32 idesc, idesc, 0x180000;"  # N 64 -> 32: 8 ^ 12 = 4
_FROM_D = _MMA.replace("da, db", "[td], db").replace("[td],", "[ta],", 1)
_CP = "tcgen05.cp.cta_group::1.32x128b.warpx4 [tsa], da;"
_SCALED = Case("mxf8f6f4", "e4m3", "e4m3", 128, 64, scale="ue8m0", vector="scale_vec::1X")
_MX = make_trial(_SCALED).instruction
_SHIFT = "tcgen05.shift.cta_group::1.down [td];"

#: name -> (kind, the case, the instructions of one thread).
FAULTS: dict[str, tuple[str, Case, str]] = {
    "products of two shapes in one D": ("race", _CASE, f"{_MMA} {_NARROW} {_MMA}"),
    "a product is A of the next": ("race", _CASE, f"{_MMA} {_FROM_D}"),
    "a product is overwritten by a copy": (
        "race",
        _CASE,
        f"{_MMA} {_CP.replace('[tsa]', '[td]')}",
    ),
    "a product is shifted": ("race", _CASE, f"{_MMA} {_SHIFT}"),
    "columns beyond tensor memory": (
        "out-of-bounds",
        _CASE,
        f"add.u32 td, td, 480; {_MMA}",
    ),
    "D does not begin at lane 0": ("tensor-memory", _CASE, f"add.u32 td, td, 0x100000; {_MMA}"),
    "operands beyond shared memory": (
        "out-of-bounds",
        _CASE,
        f"add.u64 db, db, 0x1800; {_MMA}",
    ),
}
TWINS: dict[str, tuple[Case, str]] = {
    "one D, one shape": (_CASE, f"{_MMA} {_MMA}"),
    "products of two shapes, one after the other": (_CASE, f"{_MMA} {_DONE} {_NARROW} {_MMA}"),
    "a product is A of the next, which waits": (_CASE, f"{_MMA} {_DONE} {_FROM_D}"),
    "a product is shifted, which waits": (_CASE, f"{_MMA} {_DONE} {_SHIFT}"),
    "scales are copied over those of the product before": (_SCALED, f"{_CP} {_MX} {_CP} {_MX}"),
    "D of layout F begins at lane 16": (
        Case("f16", "f16", "f16", 64, 64),
        "add.u32 td, td, 0x100000;" + make_trial(Case("f16", "f16", "f16", 64, 64)).instruction,
    ),
}


def _several(case: Case, text: str, **options: Any) -> Found:
    trial = make_trial(case)
    for block in trial.before:  # scales of 1, whatever is copied
        block[:, 320:512] = 0x7F7F7F7F if case.scale else block[:, 320:512]
    if case.scale:
        trial.image[:, :512] = 0x7F
    try:
        _, report = execute(text, trial.image, trial.before, trial.words, check=True, **options)
    except EmulationError as error:
        return [(error.kind, "error")]
    return _kinds(report.findings)


@pytest.mark.parametrize("name", FAULTS)
def test_fault(name: str) -> None:
    kind, case, text = FAULTS[name]
    found = _several(case, text)
    assert (kind, "error") in found, found


@pytest.mark.parametrize("name", TWINS)
def test_twin(name: str) -> None:
    assert not _several(*TWINS[name])


_SYNC = "barrier.cluster.arrive; barrier.cluster.wait;"
_PAIR = Case("f16", "f16", "f16", 256, 64, group=2)
_ISSUE = "    setp.eq.u32 p, rank, 0; and.pred yes, p, leader;"
#: The same of two blocks.
PAIR_FAULTS = {
    "the other block is not ready": ("race", f"{_SYNC}\n{_ISSUE}", _ISSUE),
    "the other block is not told": (
        "deadlock",
        f"{ARRIVE}.multicast::cluster.b64 [bar], both",
        f"{ARRIVE}.b64 [bar]",
    ),
    "the other block still reads": (
        "race",
        f"{_SYNC}\n    setp.ne.u32 p, warp, 0;\n    @p bra DONE;",
        "setp.ne.u32 p, warp, 0;\n    @p bra DONE;",
    ),
}
#: name -> (kind, what the kernel lacks, what is there instead).
KERNEL_FAULTS = {
    "stores that nobody has waited for": ("race", "tcgen05.wait::st.sync.aligned;", ""),
    "operands that the asynchronous proxy does not see": ("proxy-fence", "fence.proxy.async;", ""),
    "a D that is read too early": (
        "pending-tensor",
        "WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0;",
        "WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 1;",
    ),
    "a relaxed wait": ("race", "try_wait.parity.shared::cta", "try_wait.parity.relaxed.cta.shared"),
    "columns that others may load": (
        "race",
        "    bar.sync 0;\n    setp.ne.u32 p, warp, 0;\n    @p bra DONE;",
        "    setp.ne.u32 p, warp, 0;\n    @p bra DONE;",
    ),
}


@pytest.mark.parametrize("name", [*KERNEL_FAULTS, *PAIR_FAULTS])
def test_fault_of_the_kernel(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = _PAIR if name in PAIR_FAULTS else _CASE
    kind, old, new = {**KERNEL_FAULTS, **PAIR_FAULTS}[name]

    def changed(*arguments: Any, **options: Any) -> str:
        text = kernel(*arguments, **options)
        assert old in text
        return text.replace(old, new)

    monkeypatch.setattr("tests.emulator.tensor_products.kernel", changed)
    assert (kind, "error") in _several(case, make_trial(case).instruction)


# -- operands that mean nothing --------------------------------------------------------------------


def _operand(case: Case, column: int, word: int) -> Found:
    trial = make_trial(case)
    trial.before[0, 40, column] ^= np.uint32(word)
    _, report = trial.run()
    return _kinds(report.findings)


def test_copies_of_scales_that_differ() -> None:
    """Lane 40 holds a copy of row 8."""
    assert _operand(_SCALED, 320, 0x1) == [("operand", "error")]
    assert _operand(_SCALED, 320, 0x0) == []


def test_metadata_that_means_nothing() -> None:
    case = Case("f8f6f4", "e4m3", "e4m3", 128, 64, sparse=True)
    trial = make_trial(case)
    low = int(trial.before[0, 40, 300]) & 15
    assert _operand(case, 300, low) == [("operand", "error")]  # 0 means nothing
    assert _operand(case, 300, 0) == []


# -- a load that is not complete -------------------------------------------------------------------


def _reuse(between: str) -> Found:
    """A ld of one warp, and a product of another one over what it reads. `between`: what the
    first does before the barrier behind which the second issues."""
    text = f"""
    .reg .b32 r<4>;
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {{r0}}, [td];
    {between}
    """
    trial = make_trial(_CASE)
    plain = kernel(_MMA, pair=False)
    whole = plain.replace(
        "setp.eq.u32 p, rank, 0;",
        f"shl.b32 t, warp, 21; add.u32 td, taddr, t; {text} bar.sync 0; setp.eq.u32 p, rank, 0;",
    ).replace("setp.eq.u32 leader, tid, 0;", "setp.eq.u32 leader, tid, 32;")
    after = np.zeros_like(trial.before)
    report = run(
        whole,
        "k",
        block=(128,),
        shared=(96 << 10) + 64,
        arguments=[trial.image, trial.before, after, trial.words],
        check=True,
    )
    return _kinds(report.findings)


def test_overwritten_under_a_load() -> None:
    """wait::ld, or a use of the register, completes a load."""
    assert _reuse("") == [("race", "error")]
    assert _reuse("mov.u32 r1, 0;") == [("race", "error")]
    assert _reuse("tcgen05.wait::ld.sync.aligned;") == []
    assert _reuse("add.u32 r1, r0, 1;") == []
