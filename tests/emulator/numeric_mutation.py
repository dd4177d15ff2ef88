"""Mutants of what kernels compute, and what sees them: a tolerance, or elements of two fields."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fragir.algebra import Values
from fragir.algebra.equality import equality
from fragir.cli.exact import FOLLOWED
from fragir.cli.trial import Trial
from fragir.emulator import EmulationError, follow, run
from fragir.reference.evaluation import evaluate_elements
from fragir.reference.formats import decode

Array = np.ndarray[Any, Any]
EXAMPLES = Path(__file__).parents[2] / "examples"
TRITON = Path(__file__).parents[1] / "foreign" / "triton_ptx"
LAUNCHES = json.loads((TRITON / "launches.json").read_text("utf-8"))
f16, f32 = np.float16, np.float32
#: What is usual for judging kernels.
TOLERANCE = 1e-2
_LIMIT = 3_000_000


@dataclass(frozen=True)
class Seen:
    """`close`: the numbers are within the tolerance; `same`: the functions are the same; None where
    that is not decided."""

    close: bool
    same: bool | None


@dataclass(frozen=True)
class NumericSubject:
    """A correct kernel; `look` runs a text in place of its own. EmulationError where it stops."""

    name: str
    text: str
    look: Callable[[str], Seen]


def seen(pairs: Sequence[tuple[Values, Values, Array]], opaque: bool) -> Seen:
    """Of outputs: what they are, what they ought to be, and where that is not known."""
    close, same, undecided = True, True, False
    for got, wanted, lost in pairs:
        close &= np.allclose(got.real, wanted.real, TOLERANCE, TOLERANCE, equal_nan=True)
        finite = np.isfinite(got.real) == np.isfinite(wanted.real)
        found = equality(got, wanted, lost, opaque)
        same &= not found.different and bool(finite.all())
        undecided |= bool(found.undecided)
    return Seen(bool(close), None if same and undecided else bool(same))


# -- subjects --------------------------------------------------------------------------------------


def _example(program: str, target: str, **sizes: int) -> NumericSubject:
    """One of ours: its meaning is the reference."""
    file, _, entry = program.partition(":")
    trial = Trial(
        (EXAMPLES / file).read_text("utf-8"), file, entry or None, target, "emulator", None
    )
    trial.compile()
    trial.prepare(sizes, {}, "normal", 0)
    trial.evaluate()
    rng = np.random.default_rng(1)
    arrays = trial.copies()
    inputs = [
        Values.random(decode(array, slot.element), rng)
        if slot.shape is not None and slot.element in FOLLOWED
        else None
        for slot, array in zip(trial.slots, arrays, strict=True)
    ]
    wanted = evaluate_elements(
        trial.function(), trial.inputs, inputs, target=target, grid=trial.blocks()
    )

    def look(text: str) -> Seen:
        results = trial.copies()
        known = [
            (array, slot.element, values)
            for array, slot, values in zip(results, trial.slots, inputs, strict=True)
            if values is not None
        ]
        followed = follow(known)
        object.__setattr__(trial.kernel, "ptx", text)
        trial.run_once(results, {"jobs": 1, "limit": _LIMIT, "checks": [followed]})
        pairs: list[tuple[Values, Values, Array]] = []
        for i in trial.expected:
            known_one = wanted[i]
            assert known_one is not None
            values, lost = known_one
            got = followed.output(results[i], trial.slots[i].element, values.shape)
            pairs.append((got, values, lost))
        return seen(pairs, bool(followed.opaque))

    return NumericSubject(f"{program} {target}", trial.kernel.ptx, look)


def _triton(
    name: str,
    arrays: Sequence[Array],
    forms: Sequence[str],
    output: Array,
    more: Sequence[object],
    grid: Sequence[int],
    reference: Callable[..., Values],
) -> NumericSubject:
    """A kernel of Triton's; scratch memory and the profiler's are its last arguments."""
    launch = LAUNCHES[name]
    rng = np.random.default_rng(1)
    values = [Values.random(a, rng) for a in arrays]
    wanted = reference(*values)

    def look(text: str) -> Seen:
        given, out = [a.copy() for a in arrays], output.copy()
        followed = follow(list(zip(given, forms, values, strict=True)))
        run(
            text,
            launch["entry"],
            arguments=[*given, out, *more, None, None],
            grid=grid,
            block=(32 * launch["warps"],),
            shared=launch["shared"],
            checks=[followed],
            limit=_LIMIT,
            jobs=1,
        )
        got = followed.output(out, "f32")
        return seen([(got, wanted, np.zeros(out.shape, bool))], bool(followed.opaque))

    return NumericSubject(name, (TRITON / f"{name}.ptx").read_text("utf-8"), look)


def _product(name: str, dtype: Any, form: str, tile: int) -> NumericSubject:
    rng = np.random.default_rng(0)
    m, n, k = 80, 48, 176
    a = rng.normal(size=(m, k)).astype(dtype)
    b = (rng.normal(size=(k, n)) * 0.02).astype(dtype)
    grid = (-(-n // tile), -(-m // tile))
    out = np.zeros((m, n), f32)
    return _triton(name, [a, b], [form, form], out, [m, n, k], grid, Values.__matmul__)


def _softmax_of(x: Values) -> Values:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _softmax() -> NumericSubject:
    x = np.random.default_rng(0).normal(size=(5, 250)).astype(f32)
    return _triton("softmax.sm_80", [x], ["f32"], np.zeros_like(x), [250], (5,), _softmax_of)


def _layer_norm() -> NumericSubject:
    rng = np.random.default_rng(0)
    x, w, b = (rng.normal(size=s).astype(f32) for s in ((5, 300), (300,), (300,)))

    def reference(x: Values, w: Values, b: Values) -> Values:
        away = x - x.mean(-1, keepdims=True)
        root = (away.square().mean(-1, keepdims=True) + float(f32(1e-5))).sqrt()
        return away / root * w + b

    more = [300, 1e-5]
    out = np.zeros_like(x)
    return _triton("layer_norm.sm_80", [x, w, b], ["f32"] * 3, out, more, (5,), reference)


def _attention(name: str, keys: int, depth: int, scale: float) -> NumericSubject:
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=s).astype(f16) for s in ((128, depth), (keys, depth), (keys, depth)))

    def reference(q: Values, k: Values, v: Values) -> Values:
        scores = (q @ k.T) * float(f32(scale))
        if "causal" in name:
            scores = scores.where(np.tri(128, keys, dtype=bool), -np.inf)
        weights = (scores - scores.max(-1, keepdims=True)).exp2()
        return weights / weights.sum(-1, keepdims=True) @ v

    out = np.zeros((128, depth), f32)
    return _triton(name, [q, k, v], ["f16"] * 3, out, [keys, scale], (2,), reference)


SUBJECTS: dict[str, Callable[[], NumericSubject]] = {
    "triton gemm sm_80": lambda: _product("gemm.sm_80", f16, "f16", 64),
    "triton gemm tf32": lambda: _product("gemm_tf32.sm_80", f32, "f32", 32),
    "triton gemm sm_90": lambda: _product("gemm.sm_90", f16, "f16", 64),
    "triton softmax": _softmax,
    "triton layer norm": _layer_norm,
    "triton attention sm_80": lambda: _attention("attention.sm_80", 100, 64, 0.18),
    "triton attention causal": lambda: _attention("attention_causal.sm_80", 128, 32, 0.25),
    "triton attention sm_90": lambda: _attention("attention.sm_90", 100, 64, 0.18),
    "gemm sm_80": lambda: _example("gemm.mlir", "sm_80", m=40, n=24, k=40),
    "gemm sm_90a": lambda: _example("gemm.mlir", "sm_90a", m=40, n=24, k=72),
    "split k": lambda: _example("products/split_k.mlir:split_k", "sm_80", m=20, n=24, k=300),
    "fp8": lambda: _example("mma_m16n8k32_fp8.mlir:e4m3_e5m2", "sm_90a"),
    "fp8 loop": lambda: _example(
        "quantised/fp8.mlir:fp8", "sm_90a", m=20, n=24, k=64, blocks=1, groups=20
    ),
    "mxfp8": lambda: _example("mma_block_scaled.mlir:mxf8", "sm_120a"),
    "sparse": lambda: _example("mma_sparse.mlir:f16", "sm_80"),
    "wgmma sparse": lambda: _example("wgmma_sparse.mlir", "sm_90a"),
    "wgmma ring": lambda: _example("wgmma_ring.mlir", "sm_90a"),
    "m8n8k4": lambda: _example("mma_m8n8k4_f16.mlir:col_row_f16_f32", "sm_80"),
    "f64": lambda: _example("mma_m8n8k4_f64.mlir", "sm_80"),
    "gelu": lambda: _example("elementwise/gelu.mlir:gelu_tanh", "sm_80", n=200),
    "rotary": lambda: _example("elementwise/rotary.mlir:halves", "sm_80", s=3, h=2, d=64),
    "rms norm": lambda: _example("rows/rms_norm.mlir:rms_norm", "sm_80", m=3, n=70),
    "softmax": lambda: _example("rows/softmax.mlir:softmax", "sm_80", m=3, n=70),
}


@cache
def subject_named(name: str) -> NumericSubject:
    return SUBJECTS[name]()


# -- mutants ---------------------------------------------------------------------------------------

_REGISTER = r"%[\w.]+"
_VECTOR = r"\{[^}]*\}"
_COMPARISONS = {"lt": "le", "le": "lt", "gt": "ge", "ge": "gt"}
_FLOAT = r"(?:f32|f16x2|bf16x2|f16|bf16|f64)"


def _near(bits: str) -> str:
    """A constant a tenth of a percent off, or that much more than nothing."""
    value = np.array(int(bits, 16), np.uint32).view(f32)
    other = np.float32(value * 1.001) if value else np.float32(1e-3)
    return f"{int(np.float32(other).view(np.uint32)):08X}"


def _changes(line: str) -> Iterator[tuple[str, str]]:
    """(what is done, the line then)."""
    if m := re.match(
        rf"(.*?\s)(add|sub|mul|div|max|min)(?:\.\w+)*\.({_FLOAT})\s+"
        rf"({_REGISTER}), ({_REGISTER}), .*;",
        line,
    ):
        width = {"f64": 64, "f16": 16, "bf16": 16}.get(m[3], 32)
        yield f"{m[2]} left out", f"{m[1]}mov.b{width} {m[4]}, {m[5]};"
    if m := re.match(
        rf"(.*?\s)fma(?:\.\w+)*\.({_FLOAT})\s+({_REGISTER}), ([^,]+), ([^,]+), ({_REGISTER});", line
    ):
        width = {"f64": 64, "f16": 16, "bf16": 16}.get(m[2], 32)
        yield "fma left out", f"{m[1]}mov.b{width} {m[3]}, {m[6]};"
    if m := re.match(
        rf"(.*?\s)(ex2|rsqrt|sqrt|rcp|tanh)\S*\.f32\s+({_REGISTER}), ({_REGISTER});", line
    ):
        yield f"{m[2]} left out", f"{m[1]}mov.b32 {m[3]}, {m[4]};"
    for m in re.finditer(r"0f([0-9A-F]{8})", line):
        if m[1][:3] not in ("FF8", "7F8", "7FC"):
            yield "a constant 0.1 % off", line[: m.start(1)] + _near(m[1]) + line[m.end(1) :]
    if m := re.search(r"setp\.(lt|gt|le|ge)\.([su]32|[su]64|f32)", line):
        changed = f"setp.{_COMPARISONS[m[1]]}.{m[2]}"
        yield "a comparison off by one", line.replace(m[0], changed)
    if m := re.search(r"(shfl\.sync\.\w+\.b32\s+[^,]+, [^,]+, )(\d+)", line):
        other = int(m[2]) // 2 if int(m[2]) > 1 else 2
        yield "another distance of a shuffle", line.replace(m[0], f"{m[1]}{other}")
    if m := re.search(
        rf"((?:mma|wmma)\S+\s+)({_VECTOR}),\s*({_VECTOR}),\s*({_VECTOR}),\s*({_VECTOR})", line
    ):
        a = [x.strip() for x in m[3].strip("{}").split(",")]
        if len(a) > 1 and a[0] != a[-1]:
            turned = "{" + ", ".join([*a[1:], a[0]]) + "}"
            yield "registers of A in another order", line.replace(m[3], turned, 1)
        b = [x.strip() for x in m[4].strip("{}").split(",")]
        if len(b) > 1 and b[0] != b[-1]:
            yield "registers of B turned", line.replace(m[4], "{" + ", ".join(b[::-1]) + "}", 1)
    if m := re.search(rf"selp\.(\w+)\s+({_REGISTER}), ([^,]+), ([^,]+), ", line):
        yield "a choice turned round", line.replace(f"{m[3]}, {m[4]},", f"{m[4]}, {m[3]},", 1)
    if m := re.search(rf"((?:ld|st)\.(?:global|shared)\S*\s[^\[]*\[{_REGISTER}\+)(\d+)\]", line):
        yield "another place", line.replace(m[0], f"{m[1]}{int(m[2]) * 2}]")
    if m := re.search(r"wgmma\S+ .*, (1), (1), 1", line):
        yield "a sign of wgmma", line[: m.start(1)] + "-1" + line[m.end(1) :]
    if m := re.search(r"(prmt\.b32\s+[^;]*, )(0x[0-9a-fA-F]+|\d+);", line):
        yield "bytes turned round", line.replace(m[0], f"{m[1]}{int(m[2], 0) ^ 0x22};")


@dataclass(frozen=True)
class NumericMutant:
    """`line` of the text, counted from 1; `what` was done to it."""

    line: int
    what: str
    text: str


def numeric_mutants(text: str) -> list[NumericMutant]:
    """All, in the order of the text."""
    lines = text.split("\n")
    return [
        NumericMutant(i + 1, what, "\n".join([*lines[:i], changed, *lines[i + 1 :]]))
        for i, line in enumerate(lines)
        for what, changed in _changes(line)
        if changed != line
    ]


def verdict(subject: NumericSubject, text: str) -> str:
    """What is seen of a text in place of a kernel's own."""
    try:
        with np.errstate(all="ignore"):
            found = subject.look(text)
    except EmulationError:
        return "stopped"
    if found.same is None:
        return "undecided, close" if found.close else "undecided, far"
    if found.close:
        return "equal" if found.same else "algebra only"
    return "tolerance only" if found.same else "both"
