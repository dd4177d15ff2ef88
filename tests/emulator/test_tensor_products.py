"""tcgen05.mma of every kind against exact arithmetic, element by element through tcgen05.ld."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fragir.emulator import EmulationError
from fragir.emulator.tensor_cores.tcgen05 import (
    RULES,
    ProductForm,
    read_product,
    zeroed_columns,
)
from fragir.errors import FragirError

from .tensor_products import Case, execute, make_trial
from .test_arithmetic import read
from .test_tensor_model import How, addends, chain, grouped, inputs

_MX8: dict[str, Any] = {"scale": "ue8m0", "vector": "scale_vec::1X"}
_MX4: dict[str, Any] = {"scale": "ue8m0", "vector": "scale_vec::2X"}
_NV4: dict[str, Any] = {"scale": "ue4m3", "vector": "scale_vec::4X"}
CASES = [
    Case("f16", "f16", "f16", 128, 128),
    Case("f16", "bf16", "bf16", 64, 8),
    Case("f16", "f16", "f16", 128, 64, d="f16", swizzle=(0, 4)),
    Case("f16", "f16", "f16", 128, 64, tensor_a=True),
    Case("f16", "f16", "f16", 128, 64, major=("mn", "mn"), swizzle=(0, 6)),
    Case("f16", "f16", "f16", 32, 128, ws=True, tensor_a=True),
    Case("f16", "f16", "f16", 64, 64, ws=True, tensor_a=True, sparse=True),
    Case("f16", "f16", "f16", 256, 64, group=2),
    Case("f16", "bf16", "bf16", 128, 64, group=2),
    Case("f16", "f16", "f16", 128, 64, group=2, sparse=True),
    Case("f16", "f16", "f16", 128, 64, negate=(True, False), shift=3),
    Case("f16", "f16", "f16", 128, 64, masked=True, accumulates=False),
    Case("f16", "f16", "f16", 256, 64, masked=True, group=2),
    Case("tf32", "tf32", "tf32", 128, 32),
    Case("tf32", "tf32", "tf32", 128, 64, major=("mn", "mn"), swizzle=(1, 1)),
    Case("tf32", "tf32", "tf32", 64, 64, sparse=True),
    Case("f8f6f4", "e4m3", "e5m2", 128, 64),
    Case("f8f6f4", "e2m1", "e3m2", 64, 16),
    Case("f8f6f4", "e2m1", "e2m3", 128, 48, d="f16", tensor_a=True),
    Case("f8f6f4", "e4m3", "e2m1", 128, 32, group=2, tensor_a=True),
    Case("f8f6f4", "e4m3", "e4m3", 64, 64, sparse=True),
    Case("i8", "s8", "u8", 128, 32, d="s32"),
    Case("i8", "s8", "s8", 128, 32, d="s32", major=("mn", "mn"), swizzle=(2, 4)),
    Case("i8", "u8", "s8", 128, 64, d="s32", sparse=True, tensor_a=True),
    Case("mxf8f6f4", "e4m3", "e5m2", 128, 64, first=(1, 3), **_MX8),
    Case("mxf8f6f4", "e2m1", "e3m2", 128, 256, **_MX8),
    Case("mxf8f6f4", "e4m3", "e4m3", 128, 128, group=2, **_MX8),
    Case("mxf8f6f4", "e4m3", "e4m3", 128, 64, sparse=True, **_MX8),
    Case("mxf4", "e2m1", "e2m1", 128, 64, first=(2, 0), **_MX4),
    Case("mxf4", "e2m1", "e2m1", 128, 64, sparse=True, **_MX4),
    Case("mxf4", "e2m1", "e2m1", 128, 64, k96=True, scale="ue8m0", vector="block32"),
    Case("mxf4nvf4", "e2m1", "e2m1", 128, 160, **_NV4),
    Case("mxf4nvf4", "e2m1", "e2m1", 256, 64, group=2, scale="ue4m3", vector="block16"),
]
#: Those that are run with checks, too.
CHECKED = CASES[::6]


def _name(case: Case) -> str:
    words = [case.kind, case.a, case.b, f"{case.m}x{case.n}", f"c{case.group}"]
    words += [name for name in ("sparse", "ws", "tensor_a", "masked", "k96") if getattr(case, name)]
    return "-".join(words)


def check_case(case: Case, seed: int, one_hot: bool, **options: Any) -> list[Any]:
    """Runs a case, compares D, and gives what was found."""
    trial = make_trial(case, seed, one_hot)
    found, report = trial.run(target="sm_103a" if case.k96 else "sm_100a", **options)
    wrong = np.argwhere(found != trial.expected)
    assert not len(wrong), (case, wrong[0], len(wrong))
    return report.findings


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_random_operands(case: Case) -> None:
    check_case(case, 1, one_hot=False)


@pytest.mark.parametrize("case", CASES[::3], ids=_name)
def test_one_element(case: Case) -> None:
    """A row of D is a row of B."""
    check_case(case, 2, one_hot=True)


@pytest.mark.parametrize("case", CHECKED, ids=_name)
def test_checks_are_silent(case: Case) -> None:
    assert not check_case(case, 3, one_hot=False, check=True)


def test_nothing_else_is_written() -> None:
    """Only the words of D change."""
    trial = make_trial(Case("f16", "f16", "f16", 64, 32))
    after, _ = execute(trial.instruction, trial.image, trial.before, trial.words)
    changed = np.argwhere((after != trial.before)[0])
    assert changed[:, 1].max() < 32
    assert set((changed[:, 0] % 32 // 16).tolist()) == {0}


# -- bits ------------------------------------------------------------------------------------------

#: By kind: the type of A and B, that of D, and the parameters of the published model.
_PUBLISHED = {
    "f16": ("f16", "f32", How(25, -133, 16, "RZ-f32")),
    "bf16": ("bf16", "f32", How(25, -133, 16, "RZ-f32")),
    "half": ("f16", "f16", How(25, -21, 16, "RNE-f16")),
    "tf32": ("tf32", "f32", How(25, -133, 8, "RZ-f32")),
    "e4m3": ("e4m3", "f32", How(25, -133, 32, "RZ-f32")),
    "e5m2": ("e5m2", "f16", How(25, -21, 32, "RNE-f16")),
}
_CODES = {"f16": 0, "bf16": 1, "tf32": 2, "e4m3": 0, "e5m2": 1}


@pytest.mark.parametrize("kind", ["raw", "near", "zeros", "tiny", "special", "floor"])
@pytest.mark.parametrize("name", _PUBLISHED)
def test_bits(name: str, kind: str) -> None:
    """Whatever the operands' bits are: a chain of fused steps, in exact rationals."""
    element, d, by = _PUBLISHED[name]
    words = {"f16": "f16", "bf16": "f16", "tf32": "tf32"}.get(element, "f8f6f4")
    form = ProductForm.of(("tcgen05", "mma", "cta_group::1", f"kind::{words}"))
    word = (d == "f32") << 4 | _CODES[element] << 7 | _CODES[element] << 10 | 2 << 17 | 4 << 24
    product = read_product(form, word, "sm_100a")
    rng = np.random.default_rng(sum(map(ord, name + kind)))
    a = inputs(element, (product.k, product.m), kind, rng).astype(np.uint32)
    b = inputs(element, (product.k, product.n), kind, rng).astype(np.uint32)
    c = addends(d, (product.m, product.n), kind, rng)
    found = product.multiply(a, b, c)
    for _ in range(8):
        i, j = int(rng.integers(product.m)), int(rng.integers(product.n))
        column, row = a[:, i].tolist(), b[:, j].tolist()
        assert found[i, j] == chain((element, element), column, row, int(c[i, j]), by)


@pytest.mark.parametrize("kind", ["raw", "near"])
def test_bits_of_block_scales(kind: str) -> None:
    """Groups of 16 products, scaled, with 35 bits (MMA-Sim)."""
    form = ProductForm.of(("kind::mxf4nvf4", "cta_group::1", "block_scale", "scale_vec::4X"))
    product = read_product(form, 1 << 7 | 1 << 10 | 1 << 17 | 1 << 27, "sm_100a")
    rng = np.random.default_rng(7)
    a, b = (inputs("e2m1", (64, size), kind, rng).astype(np.uint32) for size in (128, 8))
    sa, sb = (rng.integers(0x20, 0x58, (size, 4)).astype(np.uint32) for size in (128, 8))
    c = addends("f32", (128, 8), kind, rng)
    found = product.multiply(a, b, c, None, (sa, sb))
    for _ in range(8):
        i, j = int(rng.integers(128)), int(rng.integers(8))
        pairs = [
            (read("e2m1", int(x)), read("e2m1", int(y)))
            for x, y in zip(a[:, i], b[:, j], strict=True)
        ]
        addend = read("f32", int(c[i, j]))
        assert found[i, j] == grouped(pairs, sa[i].tolist(), sb[j].tolist(), addend, "ue4m3")


def test_integers_saturate_once() -> None:
    form = ProductForm.of(("kind::i8", "cta_group::1"))
    word = 2 << 4 | 1 << 7 | 1 << 10 | 1 << 17 | 4 << 24
    a = np.full((32, 64), 100, np.uint32)
    b = np.full((32, 8), 100, np.uint32)
    c = np.full((64, 8), 0x7FFFFF00, np.uint32)
    wrapped = read_product(form, word, "sm_100a").multiply(a, b, c)
    clamped = read_product(form, word | 1 << 3, "sm_100a").multiply(a, b, c)
    assert (clamped == 0x7FFFFFFF).all()
    assert (wrapped == (0x7FFFFF00 + 320000)).all()


# -- descriptors -----------------------------------------------------------------------------------

_F16 = 1 << 4 | 128 // 8 << 17 | 128 // 16 << 24
_MX = 128 // 8 << 17 | 1 << 27 | 1 << 23
BAD = [
    ("kind::f16", _F16 & ~(31 << 24) | 3 << 24, "M is 48"),
    ("kind::f16", _F16 & ~(63 << 17), "N is 0"),
    ("kind::f16", _F16 | 1 << 2, "sparse"),
    ("kind::f16", _F16 | 1 << 3, "mean nothing"),
    ("kind::f16", _F16 | 1 << 29, "mean nothing"),
    ("kind::f16", _F16 | 1 << 30, "mean nothing"),
    ("kind::f16", _F16 & ~(3 << 4) | 1 << 7 | 1 << 10, "bf16"),
    ("kind::f16", _F16 | 1 << 7, "must be the same"),
    ("kind::f16", _F16 | 2 << 7, "no type of A"),
    ("kind::tf32", _F16, "no type of A"),
    ("kind::tf32", _F16 & ~(3 << 4) | 2 << 7 | 2 << 10, "no type of D"),
    ("kind::f8f6f4", _F16 | 2 << 10, "no type of B"),
    ("kind::f8f6f4", _F16 | 5 << 7 | 1 << 15, "MN-major"),
    ("kind::i8", _F16, "no type of D"),
    ("kind::i8", 2 << 4 | 40 // 8 << 17 | 8 << 24, "N is 40"),
    ("kind::i8", 2 << 4 | 32 // 8 << 17 | 8 << 24 | 1 << 13, "negated"),
    ("kind::mxf8f6f4.block_scale", _MX | 1 << 24, "mean nothing"),
    ("kind::mxf8f6f4.block_scale", _MX & ~(1 << 23), "ue4m3"),
    ("kind::mxf4.block_scale", _MX, "no type of A"),
    ("kind::mxf4.block_scale", _MX | 1 << 7 | 1 << 10 | 1 << 29, "byte 1"),
    ("kind::mxf4.block_scale", _MX | 1 << 7 | 1 << 10 | 1 << 31, "K = 96"),
]


@pytest.mark.parametrize(("words", "word", "why"), BAD)
def test_descriptors_that_mean_nothing(words: str, word: int, why: str) -> None:
    form = ProductForm.of((*words.split("."), "cta_group::1"))
    with pytest.raises(FragirError, match=why):
        read_product(form, word, "sm_100a")


def test_a_bad_descriptor_stops_the_run() -> None:
    trial = make_trial(Case("f16", "f16", "f16", 128, 64))
    trial.words[4] = 0x06200010
    with pytest.raises(EmulationError, match="M is 96") as caught:
        trial.run()
    assert (caught.value.kind, caught.value.lane) == ("operand", 0)
    assert caught.value.line


@pytest.mark.parametrize(
    ("field", "text"), [(3 << 61, "swizzle mode 3"), (2 << 61, "must be 1"), (1 << 54, "reserved")]
)
def test_matrix_descriptors(field: int, text: str) -> None:
    """A swizzle that is none, no version, reserved bits."""
    trial = make_trial(Case("f16", "f16", "f16", 128, 64))
    words = trial.words.view(np.uint64)
    version = 0 if text == "must be 1" else 1 << 46
    keep = int(words[1]) & 0x3FFF_3FFF_3FFF
    words[1] = keep | field | version
    with pytest.raises(EmulationError, match=text):
        trial.run()


# -- columns that are zero -------------------------------------------------------------------------


def _spans(n: int, use: int, skip: int, start: int, zero_first: bool) -> npt.NDArray[np.bool_]:
    """Column by column."""
    found = np.zeros(n, np.bool_)
    zero, left = zero_first, (skip if zero_first else use) + 1 - start
    for column in range(n):
        if not left:
            zero = not zero
            left = (skip if zero else use) + 1
        found[column] = zero
        left -= 1
    return found


@pytest.mark.parametrize("zero_first", [False, True])
@pytest.mark.parametrize(("use", "skip", "start"), [(0, 0, 0), (3, 1, 2), (7, 15, 5), (31, 3, 1)])
def test_zero_column_mask(use: int, skip: int, start: int, zero_first: bool) -> None:
    start = min(start, skip if zero_first else use)
    mask = 1 << 39 | skip << 40 | use << 48
    for part in range(4):
        mask |= start << 8 * part | int(zero_first) << 32 + part
    found = zeroed_columns(mask, 32, 128)
    assert (found.reshape(4, 32) == _spans(32, use, skip, start, zero_first)).all()
    assert not zeroed_columns(mask & ~(1 << 39), 32, 128).any()


def test_zeroed_columns_leave_c() -> None:
    case = Case("f16", "f16", "f16", 128, 64, ws=True)
    trial = make_trial(case)
    trial.words.view(np.uint64)[4] = 1 << 39 | 7 << 40 | 7 << 48
    text = "mov.b64 a, {m0, m1};" + trial.instruction.replace("idesc, 1;", "idesc, 1, a;")
    after, _ = execute(text, trial.image, trial.before, trial.words)
    d, c = after[0, :, :64], trial.before[0, :, :64]
    zero = np.arange(64) % 16 >= 8
    assert (d[:, zero] == c[:, zero]).all()
    assert (d[:, ~zero] == trial.expected[:, ~zero]).all()


# -- rules -----------------------------------------------------------------------------------------


def test_what_is_assumed_is_said() -> None:
    """A result that rests on a rule that nobody has measured says so; others do not."""
    assert {name for name, rule in RULES.items() if not rule.source} == {
        *("sparse", "k96", "scale-d", "ws", "shift"),
    }
    _, plain = make_trial(CASES[0]).run()
    _, sparse = make_trial(CASES[9]).run()
    _, scaled = make_trial(CASES[10]).run()
    assert not plain.notes
    assert [RULES["sparse"].text in note for note in sparse.notes] == [True]
    assert [RULES["scale-d"].text in note for note in scaled.notes] == [True]
