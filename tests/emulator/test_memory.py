"""Loads and stores of every width, atomics of every type: against numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from fragir.emulator import EmulationError, run
from fragir.emulator.instructions.alu import of2
from fragir.emulator.numbers.types import where
from tests.emulator.kernels import launch, random_bytes

R = [f"%r{i}" for i in range(8)]
WIDE: list[tuple[str, list[str], int]] = [
    ("b128", ["%q0"], 16),
    ("v2.b64", ["%rd1", "%rd2"], 16),
    ("v8.b32", R, 32),
    ("v8.f32", [f"%f{i}" for i in range(8)], 32),
    ("v4.b64", ["%rd1", "%rd2", "%rd3", "%rd4"], 32),
    ("v4.f64", ["%g1", "%g2", "%g3", "%g4"], 32),
    ("v4.u8", R[:4], 4),
]


def braces(names: list[str]) -> str:
    return names[0] if len(names) == 1 else "{" + ", ".join(names) + "}"


@pytest.mark.parametrize(("kind", "names", "size"), WIDE)
@pytest.mark.parametrize("check", [False, True])
def test_wide_accesses_move_their_bytes(
    kind: str, names: list[str], size: int, check: bool
) -> None:
    data = random_bytes()
    regs = braces(names)
    out, report = launch(
        f"ld.global.{kind} {regs}, [%in]; st.global.{kind} [%out+32], {regs};", data, check=check
    )
    assert (out[:, 32 : 32 + size] == data[:, :size]).all()
    assert not out[:, 32 + size :].any()
    assert not out[:, :32].any()
    assert report.findings == []
    assert report.statistics.loaded["global"] >= 32 * size


@pytest.mark.parametrize("space", ["shared", "local"])
def test_128_bits_through_shared_and_local_memory(space: str) -> None:
    data = random_bytes()
    out, report = launch(
        f"""
        .{space} .align 16 .b8 place[1024];
        mov.u64 %rd0, place; mad.wide.u32 %rd0, %tid, {16 if space == "shared" else 0}, %rd0;
        ld.global.nc.L2::cache_hint.b128 %q0, [%in], %rd1; st.{space}.b128 [%rd0], %q0;
        ld.{space}.b128 %q1, [%rd0]; mov.b128 %q2, %q1; mov.b128 {{%rd2, %rd3}}, %q2;
        mov.b128 %q3, {{%rd3, %rd2}}; st.global.b128 [%out], %q3;
        mov.b128 {{%r0, %r1, %r2, %r3}}, %q1; st.global.v4.b32 [%out+16], {{%r0, %r1, %r2, %r3}};
        mov.b128 %q3, {{%r3, %r2, %r1, %r0}}; st.relaxed.gpu.global.b128 [%out+32], %q3;
        """.replace("ld.global.nc", "mov.u64 %rd1, 0; ld.global.nc"),
        data,
        check=True,
    )
    words = data[:, :16].copy().view(np.uint32)
    assert (
        out[:, :16].copy().view(np.uint64) == data[:, :16].copy().view(np.uint64)[:, ::-1]
    ).all()
    assert (out[:, 16:32] == data[:, :16]).all()
    assert (out[:, 32:48].copy().view(np.uint32) == words[:, ::-1]).all()
    assert report.findings == []


def test_undefined_halves_of_128_bits_are_found() -> None:
    """Only the upper half was never written: it is reported where it reaches global memory."""
    text = "mov.u64 %rd1, 5; mov.b128 %q0, {{%rd1, {}}}; st.global.b128 [%out], %q0;"
    _, good = launch(text.format("%rd1"), check=True)
    _, bad = launch(text.format("%rd2"), check=True)
    assert good.findings == []
    assert [f.kind for f in bad.findings] == ["uninitialised"]
    assert "%q0" in bad.findings[0].message


def test_sinks_leave_elements_alone() -> None:
    data = random_bytes()
    out, _ = launch(
        """
        ld.global.v8.f32 {%f0, _, %f2, %f3, _, %f5, %f6, %f7}, [%in];
        st.global.v8.f32 [%out], {%f0, _, %f2, %f3, _, %f5, %f6, %f7};
        """,
        data,
    )
    expected = data[:, :32].copy().view(np.uint32)
    expected[:, [1, 4]] = 0
    assert (out[:, :32].copy().view(np.uint32) == expected).all()


def test_a_register_of_128_bits_is_no_other() -> None:
    with pytest.raises(EmulationError, match=r"a \.b128 register cannot be used as \.u32"):
        launch("add.u32 %r0, %q0, 1;")
    with pytest.raises(EmulationError, match=r"a \.b64 register cannot be used as \.b128"):
        launch("st.global.b128 [%out], %rd0;")


@pytest.mark.parametrize("wide", ["v8.b32 {%r0,%r1,%r2,%r3,%r4,%r5,%r6,%r7}", "b128 %q0"])
def test_wide_accesses_are_aligned(wide: str) -> None:
    size = 32 if wide[0] == "v" else 16
    with pytest.raises(EmulationError, match=f"an access of {size} bytes needs an address"):
        launch(f"ld.global.{wide}, [%in+8];")


# -- atomics ---------------------------------------------------------------------------------------

INTEGERS: list[tuple[str, str, Callable[..., Any]]] = [
    ("add", "u32", np.add),
    ("add", "s32", np.add),
    ("add", "u64", np.add),
    ("min", "s32", np.minimum),
    ("max", "s64", np.maximum),
    ("min", "u64", np.minimum),
    ("max", "u32", np.maximum),
    ("and", "b64", np.bitwise_and),
    ("or", "b32", np.bitwise_or),
    ("xor", "b64", np.bitwise_xor),
    ("exch", "b32", of2(lambda a, b: b)),
    ("inc", "u32", of2(lambda a, b: where(a >= b, 0, a + 1))),
    ("dec", "u32", of2(lambda a, b: where((a == 0) | (a > b), b, a - 1))),
]


def atom(
    kind: str,
    operation: str,
    old: npt.NDArray[Any],
    value: npt.NDArray[Any],
    space: str,
    extra: str,
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """(what atom returned, what is in memory) where every lane has its own place."""
    size = old.itemsize
    count = old.shape[1] if old.ndim > 1 else 1
    width = size * count
    bits = 8 * size
    prefix = {16: "%h", 32: "%r", 64: "%rd"}[bits]
    registers = {k: [f"{prefix}{8 * k + i}" for i in range(count)] for k in (0, 1)}
    names = {k: braces(of) for k, of in registers.items()}
    vector = f".v{count}" if count > 1 else ""
    # ptxas loads eight elements of 16 bits from constants and parameters alone: two loads of four
    parts = [(0, count)] if count < 8 else [(0, 4), (4, 8)]
    each = (f".v{parts[0][1]}" if count > 1 else "") + f".b{bits}"

    def moved(what: str, k: int, where: str, offset: int = 0) -> str:
        return "".join(
            f"{what}{each} {braces(registers[k][a:b])}, [{where}+{offset + a * size}];"
            if what.startswith("ld")
            else f"{what}{each} [{where}+{offset + a * size}], {braces(registers[k][a:b])};"
            for a, b in parts
        )

    data = np.zeros((32, 64), np.uint8)
    data[:, :width] = old.reshape(32, -1).view(np.uint8)
    data[:, 32 : 32 + width] = value.reshape(32, -1).view(np.uint8)
    where = "%rd7"
    move = "add.u64 %rd7, %out, 0;"
    if space == "shared":
        where, move = "%rd7", "mov.u64 %rd7, sh; mad.wide.u32 %rd7, %tid, 16, %rd7;"
    out, _ = launch(
        f"""
        .shared .align 16 .b8 sh[512];
        {move} {moved("ld.global", 0, "%in")} {moved(f"st.{space}", 0, where)}
        {moved("ld.global", 1, "%in", 32)}
        atom.{space}.{operation}{extra}{vector}.{kind} {names[0]}, [{where}], {names[1]};
        {moved("st.global", 0, "%out", 32)}
        {moved(f"ld.{space}", 1, where)} {moved("st.global", 1, "%out")}
        """,
        data,
    )
    return (
        np.ascontiguousarray(out[:, 32 : 32 + width]).view(old.dtype).reshape(old.shape),
        np.ascontiguousarray(out[:, :width]).view(old.dtype).reshape(old.shape),
    )


@pytest.mark.parametrize(("operation", "kind", "function"), INTEGERS)
@pytest.mark.parametrize("space", ["global", "shared"])
def test_integer_atomics(operation: str, kind: str, function: Any, space: str) -> None:
    dtype = np.dtype(f"{'i' if kind[0] == 's' else 'u'}{int(kind[1:]) // 8}")
    rng = np.random.default_rng(7)
    old, value = (
        rng.integers(0, 256, (32, dtype.itemsize), dtype=np.uint8).view(dtype).reshape(32)
        for _ in range(2)
    )
    value[::2] = np.roll(old, 1)[::2]
    if operation in ("inc", "dec"):
        old[:8], value[:8] = [0, 1, 5, 5, 6, 7, 2**32 - 1, 3], [0, 1, 5, 6, 5, 7, 1, 2**32 - 1]
    before, after = atom(kind, operation, old, value, space, "")
    assert (before == old).all()
    assert (after == function(old, value)).all()


HALVES: list[tuple[str, Any, int]] = [
    ("f16", np.float16, 1),
    ("bf16", ml_dtypes.bfloat16, 1),
    ("f16x2", np.float16, 2),
    ("bf16x2", ml_dtypes.bfloat16, 2),
]


CASES = [
    (*half, count, operation)
    for half in HALVES
    for count in (1, 2, 4, 8)
    for operation in ("add", "min", "max")
    if (count == 1 and operation == "add") or (1 < count <= 8 // half[2])
]


@pytest.mark.parametrize(("kind", "form", "packed", "count", "operation"), CASES)
def test_atomics_of_halves(kind: str, form: Any, packed: int, count: int, operation: str) -> None:
    rng = np.random.default_rng(3)
    old, value = (
        rng.normal(size=(32, count * packed)).astype(np.float32).astype(form) for _ in range(2)
    )
    old[0, 0] = value[0, 0] = np.array(6e-8 if form is np.float16 else 9e-41).astype(form)
    unit = np.dtype(f"u{2 * packed}")
    raw = [np.ascontiguousarray(x).view(unit).reshape(32, count) for x in (old, value)]
    if count == 1:
        raw = [x.reshape(32) for x in raw]
    before, after = atom(kind, operation, raw[0], raw[1], "global", ".noftz")
    function = {"add": np.add, "min": np.minimum, "max": np.maximum}[operation]
    wide = function(old.astype(np.float32), value.astype(np.float32)).astype(form)
    assert (before == raw[0]).all()
    assert (after.reshape(32, -1).view(form) == wide).all()
    assert float(after.reshape(32, -1).view(form)[0, 0]) != 0


@pytest.mark.parametrize("space", ["global", "shared"])
def test_f32_sums_flush_in_global_memory_only(space: str) -> None:
    """PTX ISA 9.2, section 9.7.13.12: atom.add.f32 on global memory flushes subnormals."""
    old = np.full(32, 1e-40, np.float32)
    value = np.linspace(-1, 1, 32, dtype=np.float32)
    value[0] = 2e-40
    before, after = atom("f32", "add", old.view(np.uint32), value.view(np.uint32), space, "")
    assert (before.view(np.float32) == old).all()
    sums = old + value
    if space == "global":
        assert after.view(np.float32)[0] == 0
    else:
        assert after.view(np.float32)[0] == np.float32(1e-40) + np.float32(2e-40)
    assert (after.view(np.float32)[1:] == sums[1:]).all()


def test_vectors_of_f32_add_element_by_element() -> None:
    rng = np.random.default_rng(1)
    old, value = (rng.normal(size=(32, 4)).astype(np.float32) for _ in range(2))
    _, after = atom("f32", "add", old.view(np.uint32), value.view(np.uint32), "global", "")
    assert (after.view(np.float32) == old + value).all()


def test_compare_and_swap_of_16_and_128_bits() -> None:
    data = random_bytes()
    data[:, 32:48] = data[:, :16]
    data[::2, 40] ^= 1  # even lanes differ in the upper half only
    out, report = launch(
        """
        .shared .align 16 .b8 sh[512];
        mov.u64 %rd1, sh; mad.wide.u32 %rd1, %tid, 16, %rd1;
        ld.global.b128 %q0, [%in]; st.shared.b128 [%rd1], %q0;
        ld.global.b128 %q1, [%in+32]; ld.global.b128 %q2, [%in+16];
        atom.acq_rel.cta.shared::cta.cas.b128 %q3, [%rd1], %q1, %q2;
        st.global.b128 [%out], %q3; ld.shared.b128 %q3, [%rd1]; st.global.b128 [%out+16], %q3;
        atom.shared.exch.b128 %q3, [%rd1], %q1; st.global.b128 [%out+32], %q3;
        mov.b16 %h0, 7; mov.b16 %h1, 8; st.shared.b16 [%rd1], %h0;
        atom.shared.cas.b16 %h2, [%rd1], 7, %h1; ld.shared.b16 %h3, [%rd1];
        st.global.v2.b16 [%out+48], {%h2, %h3};
        """,
        data,
        check=True,
    )
    assert (out[:, :16] == data[:, :16]).all()
    swapped = data[:, 16:32].copy()
    swapped[::2] = data[::2, :16]
    assert (out[:, 16:32] == swapped).all()
    assert (out[:, 32:48] == swapped).all()
    assert (out[:, 48:52].copy().view(np.uint16) == [7, 8]).all()
    assert [f for f in report.findings if f.kind != "race"] == []


def test_lanes_take_turns_at_one_place() -> None:
    out, _ = launch(
        """
        .shared .align 16 .b8 sh[16];
        mov.u64 %rd1, 0; mov.u64 %rd2, 0; mov.b128 %q0, {%rd1, %rd2}; st.shared.b128 [sh], %q0;
        bar.sync 0; cvt.u64.u32 %rd1, %tid; add.u64 %rd1, %rd1, 1; mov.b128 %q1, {%rd1, %rd1};
        atom.shared.exch.b128 %q2, [sh], %q1; st.global.b128 [%out], %q2;
        """
    )
    seen = out[:, :16].copy().view(np.uint64)
    assert (seen[:, 0] == seen[:, 1]).all()
    assert (seen[:, 0] == np.arange(32)).all()


@pytest.mark.parametrize(
    "text",
    [
        "atom.global.add.noftz.f32 %f0, [%out], %f1;",
        "atom.global.add.f16 %h0, [%out], %h1;",
        "atom.global.cas.f32 %f0, [%out], %f1, %f2;",
        "atom.global.inc.s32 %r0, [%out], %r1;",
        "atom.global.and.u32 %r0, [%out], %r1;",
        "atom.shared.v2.f32.add {%f0, %f1}, [%out], {%f2, %f3};",
        "atom.global.add.u16 %h0, [%out], %h1;",
        "red.global.exch.b32 [%out], %r1;",
        "atom.global.add.v4.f16.noftz {%h0, %h1}, [%out], {%h2, %h3};",
    ],
)
def test_atomics_that_do_not_exist(text: str) -> None:
    with pytest.raises(
        EmulationError, match=r"there is no|takes 4 elements|gives 4 elements|is not emulated"
    ):
        launch(text)


# -- hints and addresses ---------------------------------------------------------------------------


def test_hints_change_nothing() -> None:
    out, _ = launch(
        """
        createpolicy.fractional.L2::evict_last.b64 %rd1, 0.5;
        prefetch.global.L2 [%out]; prefetchu.L1 [%out]; prefetch.global.L2::evict_last [%out+3];
        and.b64 %rd2, %out, -128; discard.global.L2 [%rd2], 128;
        applypriority.global.L2::evict_normal [%rd2], 128;
        mov.u32 %r0, 9; st.global.L2::cache_hint.u32 [%out], %r0, %rd1;
        ld.global.L1::evict_last.L2::cache_hint.L2::128B.u32 %r1, [%out], %rd1;
        st.global.wt.u32 [%out+4], %r1;
        """
    )
    assert (out[:, :8].copy().view(np.uint32) == 9).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("discard.global.L2 [%rd2], 64;", "the constant 128"),
        ("ld.global.L2::cache_hint.u32 %r0, [%out];", "takes 3 operands, not 2"),
        ("ld.global.u32 %r0, [%out], %rd1;", "takes 2 operands, not 3"),
        ("add.u64 %rd2, %out, 64; discard.global.L2 [%rd2], 128;", "128 bytes at offset 1984"),
    ],
)
def test_operands_of_hints_are_checked(text: str, message: str) -> None:
    with pytest.raises(EmulationError, match=message):
        launch(text)


def test_where_generic_addresses_lie() -> None:
    before = ".global .align 8 .b32 gl = 1; .const .align 8 .b32 cn = 2;"
    spaces = ["global", "const", "shared", "shared::cluster", "local", "param::entry"]
    tests = "".join(
        f"isspacep.{s} %p1, %rd1; selp.u32 %r1, 1, 0, %p1; shl.b32 %r1, %r1, {i}; "
        "or.b32 %r0, %r0, %r1;"
        for i, s in enumerate(spaces)
    )
    places = [("gl", "global"), ("cn", "const"), ("sh", "shared"), ("sh", "shared::cluster")]
    places += [("lo", "local"), ("in", "param")]
    text = "".join(
        f"mov.u64 %rd0, {name}; cvta.{space}.u64 %rd1, %rd0; mov.u32 %r0, 0; {tests}"
        f"st.global.u32 [%out+{4 * i}], %r0;"
        for i, (name, space) in enumerate(places)
    )
    out, _ = launch(".shared .b32 sh; .local .b32 lo; " + text, before=before)
    assert out[0, :24].view(np.uint32).tolist() == [1, 2, 12, 12, 16, 32]


def test_a_name_and_a_number_are_an_address_of_the_own_block() -> None:
    """Of each block of a cluster, whose shared memories lie one behind the other."""
    text = """.version 8.0\n.target sm_90\n.address_size 64
    .visible .entry k(.param .u64 out) .reqnctapercluster 2
    {
      .reg .b32 %r<4>; .reg .b64 %rd<4>;
      .shared .align 8 .b8 sh[64];
      ld.param.u64 %rd0, [out];
      mov.u32 %r0, sh+16;
      mov.u32 %r1, %ctaid.x;
      mul.wide.u32 %rd1, %r1, 4;
      add.u64 %rd0, %rd0, %rd1;
      getctarank.shared::cluster.u32 %r2, %r0;
      st.global.u32 [%rd0], %r2;
      ret;
    }"""
    out = np.full(4, 9, np.uint32)
    run(text, "k", grid=(4,), block=(1,), cluster=(2, 1, 1), arguments=[out])
    assert out.tolist() == [0, 1, 0, 1]
