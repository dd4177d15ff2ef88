"""Floating-point instructions against rationals, bit by bit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from . import floats
from .conftest import Evaluate
from .floats import FORMATS, Format

SETTINGS = settings(
    max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def patterns(form: Format) -> st.SearchStrategy[int]:
    """Bit patterns: any, zeros, ones, subnormals, extremes, infinities, NaN, and near one."""
    top = 1 << (form.width - 1)
    infinity = ((1 << form.exponent) - 1) << form.fraction
    one = form.bias << form.fraction
    plain = [0, 1, 2, (1 << form.fraction) - 1, 1 << form.fraction, infinity - 1, infinity]
    plain += [infinity + 1, one, one + 1, one - 1, one + (1 << form.fraction)]
    near = st.integers(
        one - (30 << form.fraction) if form.exponent > 5 else 0, one + (2 << form.fraction)
    )
    magnitude = st.sampled_from(plain) | st.integers(0, top - 1) | near

    def build(m: int, negative: bool) -> int:
        return m | top if negative else m

    return st.builds(build, magnitude, st.booleans())


def rows(form: Format, count: int) -> st.SearchStrategy[list[tuple[int, ...]]]:
    return st.lists(st.tuples(*[patterns(form)] * count), min_size=32, max_size=96)


def columns(values: list[tuple[int, ...]], form: Format) -> list[npt.NDArray[np.unsignedinteger]]:
    return [np.array([v[i] for v in values], f"u{form.width // 8}") for i in range(len(values[0]))]


def same(got: int, wanted: int, form: Format) -> bool:
    """Equal bits; f64 NaN keep their payload, so any will do there."""
    if form is floats.F64 and form.read(wanted)[0] == floats.NAN:
        return form.read(got)[0] == floats.NAN
    return got == wanted


ARITY = {"add": 2, "sub": 2, "mul": 2, "fma": 3, "div": 2, "sqrt": 1, "rcp": 1}
CASES = [
    *((n, "f32", m) for n in ARITY for m in ("rn", "rz", "rm", "rp")),
    *((n, "f64", m) for n in ARITY for m in ("rn", "rz", "rm", "rp")),
    *((n, k, "rn") for n in ("add", "sub", "mul", "fma") for k in ("f16", "bf16")),
]


@pytest.mark.parametrize(("name", "kind", "mode"), CASES)
@SETTINGS
@given(data=st.data())
def test_rounds_once(
    name: str, kind: str, mode: str, data: st.DataObject, evaluate: Evaluate
) -> None:
    form = FORMATS[kind]
    values = data.draw(rows(form, ARITY[name]))
    got = evaluate(f"{name}.{mode}.{kind}", columns(values, form), form.width)
    for bits, result in zip(values, got, strict=True):
        exact = floats.apply(name, [form.read(b) for b in bits], mode)
        wanted = form.write(exact, mode)
        assert same(int(result), wanted, form), (
            name,
            mode,
            [hex(b) for b in bits],
            hex(int(result)),
            hex(wanted),
        )


@pytest.mark.parametrize("kind", ["f16x2", "bf16x2"])
@SETTINGS
@given(data=st.data())
def test_packed_is_both_halves(kind: str, data: st.DataObject, evaluate: Evaluate) -> None:
    form = FORMATS[kind[:-2]]
    values = data.draw(rows(form, 6))
    packed = [
        np.array([v[2 * i] | v[2 * i + 1] << 16 for v in values], np.uint32) for i in range(3)
    ]
    got = evaluate(f"fma.rn.{kind}", packed, 32)
    for bits, result in zip(values, got, strict=True):
        for half in range(2):
            exact = floats.apply("fma", [form.read(bits[2 * i + half]) for i in range(3)], "rn")
            assert int(result) >> (16 * half) & 0xFFFF == form.write(exact, "rn")


@SETTINGS
@given(data=st.data())
def test_flush_and_saturate(data: st.DataObject, evaluate: Evaluate) -> None:
    form = floats.F32
    values = data.draw(rows(form, 2))

    def flush(bits: int) -> int:
        return bits & 0x80000000 if bits & 0x7F800000 == 0 else bits

    flushed = evaluate("mul.rn.ftz.f32", columns(values, form), 32)
    clamped = evaluate("mul.rn.sat.f32", columns(values, form), 32)
    for (a, b), f, c in zip(values, flushed, clamped, strict=True):
        exact = floats.multiply(form.read(flush(a)), form.read(flush(b)))
        assert int(f) == flush(form.write(exact, "rn"))
        kind, sign, magnitude = form.read(
            form.write(floats.multiply(form.read(a), form.read(b)), "rn")
        )
        if kind == floats.NAN or sign:
            assert int(c) == 0
        elif kind == floats.INF or magnitude >= 1:
            assert int(c) == 0x3F800000
        else:
            assert int(c) == form.write((kind, sign, magnitude), "rn")


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("nan", ["", ".NaN"])
@SETTINGS
@given(data=st.data())
def test_minimum_and_maximum(kind: str, nan: str, data: st.DataObject, evaluate: Evaluate) -> None:
    if kind == "f64" and nan:
        return  # no such instruction
    form = FORMATS[kind]
    values = data.draw(rows(form, 2))
    low, high = (
        evaluate(f"{n}{nan}.{kind}", columns(values, form), form.width) for n in ("min", "max")
    )

    def order(bits: int) -> tuple[int, int]:
        sign = bits >> (form.width - 1)
        magnitude = bits & ((1 << (form.width - 1)) - 1)
        return (-sign, -magnitude if sign else magnitude)

    for (a, b), least, most in zip(values, low, high, strict=True):
        nans = [form.read(x)[0] == floats.NAN for x in (a, b)]
        if all(nans) or (nan and any(nans)):
            assert same(int(least), form.nan, form)
            assert same(int(most), form.nan, form)
        elif any(nans):
            number = b if nans[0] else a
            assert int(least) == int(most) == number
        else:
            assert int(least) == min(a, b, key=order)
            assert int(most) == max(a, b, key=order)


Function = Callable[["npt.NDArray[np.float64]"], "npt.NDArray[np.float64]"]
APPROXIMATE: dict[str, tuple[Function, float]] = {
    "rcp.approx.f32": (lambda x: 1 / x, 2**-23),
    "sqrt.approx.f32": (np.sqrt, 2**-22),
    "rsqrt.approx.f32": (lambda x: 1 / np.sqrt(x), 2**-22),
    "ex2.approx.f32": (np.exp2, 2**-22),
    "tanh.approx.f32": (np.tanh, 2**-10.9),
}


@pytest.mark.parametrize("mnemonic", APPROXIMATE)
def test_approximations_are_within_their_bounds(mnemonic: str, evaluate: Evaluate) -> None:
    """Bounds of PTX ISA 9.2, section 9.7.3."""
    function, bound = APPROXIMATE[mnemonic]
    x = np.random.default_rng(2).uniform(0.01, 50, 1024).astype(np.float32)
    got = evaluate(mnemonic, [x.view(np.uint32)], 32).view(np.float32).astype(np.float64)
    exact = function(x.astype(np.float64))
    assert (np.abs(got - exact) <= bound * np.abs(exact)).all()


@pytest.mark.parametrize("mnemonic", ["lg2.approx.f32", "sin.approx.f32", "cos.approx.f32"])
def test_absolute_bounds(mnemonic: str, evaluate: Evaluate) -> None:
    x = np.random.default_rng(3).uniform(0.5, 2, 1024).astype(np.float32)
    function = {"lg2": np.log2, "sin": np.sin, "cos": np.cos}[mnemonic[:3]]
    got = evaluate(mnemonic, [x.view(np.uint32)], 32).view(np.float32)
    assert (np.abs(got - function(x.astype(np.float64))) <= 2**-20.5).all()
