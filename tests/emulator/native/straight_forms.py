"""Every instruction that straight-line runs may have, and lanes full of hard values for them."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from fragir.emulator.launch.launch import Launch
from fragir.emulator.machine.straight_blocks import WARM
from fragir.ptx.reader import parse

INTEGERS = [f"{s}{n}" for n in (16, 32, 64) for s in "us"]
BITS = ["b16", "b32", "b64"]
ROUNDINGS = ["rn", "rz", "rm", "rp"]
ORDERED = "eq ne lt le gt ge".split()
FLOATS = [*(f"{w}u" for w in ORDERED), "num", "nan"]


def _dots(*words: str) -> str:
    return ".".join(w for w in words if w)


def _arithmetic() -> list[str]:
    forms = [
        f"{n}.{k} D, A, B" for n in ("add", "sub", "min", "max", "div", "rem") for k in INTEGERS
    ]
    forms += [f"{n}.{k} D, A, B" for n in ("add", "sub", "min", "max") for k in ("u16x2", "s16x2")]
    forms += [f"{n}.{k} D, A, B" for n in ("and", "or", "xor") for k in (*BITS, "pred")]
    forms += [f"not.{k} D, A" for k in (*BITS, "pred")]
    forms += [f"{n}.{k} D, A" for n in ("neg", "abs") for k in ("s16", "s32", "s64")]
    forms += [f"{n}.{h}.{k} D, A, B" for n, h in product(["mul"], ["lo", "hi"]) for k in INTEGERS]
    forms += [f"mad.{h}.{k} D, A, B, C" for h in ("lo", "hi") for k in INTEGERS]
    forms += [f"mul.wide.{k} W, A, B" for k in INTEGERS[:4]]
    forms += [f"mad.wide.{k} W, A, B, X" for k in INTEGERS[:4]]
    forms += [f"shl.{k} D, A, %r5" for k in BITS]
    forms += [f"shr.{k} D, A, %r5" for k in (*BITS, *INTEGERS)]
    forms += [f"shr.{k} D, A, 3" for k in INTEGERS]
    forms += [f"shf.{w}.{m}.b32 D, A, B, %r5" for w in "lr" for m in ("clamp", "wrap")]
    forms += [f"{n}.{k} %r0, A" for n in ("popc", "clz") for k in BITS[1:]]
    forms += [f"brev.{k} D, A" for k in BITS[1:]]
    forms += [f"bfe.{k} D, A, %r4, %r5" for k in INTEGERS[2:]]
    forms += [f"bfi.{k} D, A, B, %r4, %r5" for k in BITS[1:]]
    forms += ["prmt.b32 D, A, B, C", "prmt.b32 D, A, B, 0x3A51"]
    return forms + [f"lop3.b32 D, A, B, C, {t}" for t in (0x96, 0xE8, 0x1B, 0xCA, 0xFF)]


def _moves() -> list[str]:
    forms = [f"mov.{k} D, A" for k in (*BITS, "pred", "f32", "f64")]
    forms += [f"selp.{k} D, A, B, %p1" for k in (*BITS, "f32", "f64")]
    forms += ["mov.b32 %r0, {%h1, %h2}", "mov.b64 %d0, {%r1, %r2}", "mov.b32 {%h0, %h1}, %r1"]
    forms += [
        "mov.b64 {%r0, %r1}, %d1",
        "mov.b64 %d0, {%h1, %h2, %h3, %h4}",
        "mov.b32 {_, %h1}, %r1",
    ]
    forms += ["mov.b64 {%h0, %h1, %h2, %h3}, %d1", "mov.u32 %r0, %tid.x", "mov.u32 %r0, %laneid"]
    return [*forms, "cvta.to.shared.u64 %d0, %d1", "cvta.global.u64 %d0, %d1"]


def _floating() -> list[str]:
    forms: list[str] = []
    for name, count in (("add", 2), ("sub", 2), ("mul", 2), ("fma", 3), ("mad", 3)):
        operands = "D, A, B, C"[: 4 + 3 * (count - 1)]
        for rounding, ftz, sat in product(ROUNDINGS, ("", "ftz"), ("", "sat")):
            forms.append(f"{_dots(name, rounding, ftz, sat, 'f32')} {operands}")
        if name != "mad":
            for ftz, sat, kind in product(("", "ftz"), ("", "sat"), ("f16", "f16x2")):
                forms.append(f"{_dots(name, 'rn', ftz, sat, kind)} {operands}")
            forms += [f"{name}.rn.{k} {operands}" for k in ("bf16", "bf16x2")]
    forms += [f"fma.rn.relu.{k} D, A, B, C" for k in ("f16", "f16x2", "bf16", "bf16x2")]
    for ftz in ("", "ftz"):
        forms += [f"{_dots('div', how, ftz, 'f32')} D, A, B" for how in ("rn", "approx", "full")]
        forms += [
            f"{_dots(n, how, ftz, 'f32')} D, A" for n in ("rcp", "sqrt") for how in ("rn", "approx")
        ]
        forms.append(f"{_dots('rsqrt.approx', ftz, 'f32')} D, A")
        for name, nan, kind in product(("min", "max"), ("", "NaN"), ("f32", "f16", "f16x2")):
            forms.append(f"{_dots(name, ftz, nan, kind)} D, A, B")
        forms += [
            f"{_dots(n, ftz, k)} D, A" for n in ("neg", "abs") for k in ("f32", "f16", "f16x2")
        ]
    forms += [
        f"{_dots(n, nan, k)} D, A, B"
        for n in ("min", "max")
        for nan in ("", "NaN")
        for k in ("bf16", "bf16x2")
    ]
    return forms + [f"{n}.{k} D, A" for n in ("neg", "abs") for k in ("bf16", "bf16x2", "f64")]


def _comparisons() -> list[str]:
    forms = [f"setp.{w}.{k} %p0, A, B" for w in ORDERED[:2] for k in BITS]
    forms += [f"setp.{w}.{k} %p0, A, B" for w in ORDERED for k in INTEGERS]
    forms += [f"setp.{w}.{k} %p0, A, B" for w in ("lo", "ls", "hi", "hs") for k in INTEGERS[::2]]
    kinds = ("f32", "ftz.f32", "f64", "f16", "ftz.f16", "bf16")
    forms += [f"setp.{w}.{k} %p0, A, B" for w in (*ORDERED, *FLOATS) for k in kinds]
    forms += [f"setp.lt.{b}.s32 %p0|%p2, A, B, %p1" for b in ("and", "or", "xor")]
    return [*forms, "setp.ge.and.f32 %p0|%p2, A, B, !%p0", "setp.le.u64 %p0|%p2, A, B"]


def _conversions() -> list[str]:
    narrow = [*INTEGERS, "u8", "s8"]
    forms = [f"cvt.{a}.{b} D, A" for a in narrow for b in narrow if a != b]
    for kind in narrow:
        forms += [
            f"cvt.{m}.{f}.{kind} D, A" for m in ROUNDINGS for f in ("f32", "f16", "bf16", "f64")
        ]
        whole = ("rni", "rzi", "rmi", "rpi")
        forms += [f"cvt.{m}.{kind}.{f} D, A" for m in whole for f in ("f32", "f16", "bf16", "f64")]
        forms.append(f"cvt.rzi.ftz.{kind}.f32 D, A")
    forms += [f"cvt.{_dots(m, f)}.f32 D, A" for m in ROUNDINGS for f in ("f16", "bf16", "ftz.f16")]
    forms += [f"cvt.{m}.{z}f32.f64 D, A" for m in ROUNDINGS for z in ("", "ftz.")]
    forms += [
        f"cvt.{m}.{z}f32.f32 D, A" for m in ("rni", "rzi", "rmi", "rpi") for z in ("", "ftz.")
    ]
    forms += [
        "cvt.f32.f16 D, A",
        "cvt.ftz.f32.f16 D, A",
        "cvt.f32.bf16 D, A",
        "cvt.ftz.f32.f32 D, A",
    ]
    forms += ["cvt.f64.f32 D, A", "cvt.ftz.f64.f32 D, A", "cvt.f32.f32 D, A"]
    return forms + [f"cvt.{m}.{k}.f32 D, A, B" for m in ("rn", "rz") for k in ("f16x2", "bf16x2")]


_FILES = {8: "h", 16: "h", 32: "r", 64: "d", 1: "p"}


def _width(kind: str) -> int:
    if kind == "pred":
        return 1
    return 32 if "x2" in kind else int("".join(c for c in kind.replace("bf", "f") if c.isdigit()))


def _filled(form: str) -> str:
    """The letters of a form as registers: D by the first type, sources by the last."""
    opcode, _, operands = form.partition(" ")
    types = [
        w
        for w in opcode.split(".")[1:]
        if w == "pred"
        or (w[0] in "usbf" and w[-1].isdigit() and w not in ("f16x2",))
        or w.endswith("x2")
    ]
    into, kind = _width(types[0]), _width(types[-1])
    wide = {16: "r", 32: "d"}.get(kind, "")
    names = {"D": f"%{_FILES[into]}0", "W": f"%{wide}0", "X": f"%{wide}3"}
    names |= {letter: f"%{_FILES[kind]}{at}" for at, letter in enumerate("ABC", 1)}
    return f"{opcode} " + ", ".join(names.get(o, o) for o in operands.split(", "))


def _warps() -> list[str]:
    forms = [f"shfl.sync.{m}.b32 %r0|%p0, %r1, %r2, %r3, -1" for m in ("up", "down", "bfly", "idx")]
    forms += [
        "shfl.sync.bfly.b32 %r0, %r0, 16, 31, -1",
        "shfl.sync.down.b32 %r0|%p0, %r1, 3, 0x181f, -1",
    ]
    forms += ["shfl.sync.idx.b32 %r0|%p0, %r1, 5, 0x1f, 0xffffffff"]
    forms += [f"vote.sync.{m}.pred %p0, %p1, -1" for m in ("all", "any", "uni")]
    return [*forms, "vote.sync.ballot.b32 %r0, %p1, -1", "vote.sync.any.pred %p0, !%p0, -1"]


def forms() -> list[str]:
    """All of them, as statements on %h (16 bits), %r, %d (64 bits), %p."""
    every = [*_arithmetic(), *_moves(), *_floating(), *_comparisons(), *_conversions(), *_warps()]
    return [
        _filled(f) if "%" not in f.partition(" ")[2].split(",")[0] or "A" in f else f for f in every
    ]


def kernel(body: str) -> str:
    return f""".version 8.7
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 p)
{{ .reg .b16 %h<8>; .reg .b32 %r<8>; .reg .b64 %d<8>; .reg .pred %p<4>;
{body}
ret; }}
"""


class Machine:
    """A kernel that is decoded and encoded; its instructions are run one by one, both ways."""

    def __init__(self, body: str, warps: int) -> None:
        buffer = np.zeros(64, np.uint32)
        ones: tuple[int, int, int] = (1, 1, 1)
        self.launch = Launch(
            parse(kernel(body)),
            None,
            grid=(warps, 1, 1),
            block=(32, 1, 1),
            cluster=ones,
            arguments=[buffer],
            shared=0,
            target=None,
            seed=None,
            asynchrony="late",
            trace=None,
            resident=warps,
        )
        self.machine = self.launch.machine
        self.machine.start_wave(0, warps)
        scheduler = self.launch.scheduler
        scheduler.block(0).visits = WARM - 1
        getattr(scheduler, "_visit")(scheduler.block(0), 1)
        assert scheduler.straight is not None
        self.blocks, self.encoder = scheduler.straight, scheduler.straight.encoder

    def step(self, at: int) -> Any:
        return self.launch.scheduler.code.steps[at]

    def run(self, at: int) -> Any:
        """The run of one instruction; None where it has none."""
        codes = self.encoder.codes(at)
        if codes is None:
            return None
        return self.blocks.run_of([at], [self.step(at)], codes, [0] * len(codes))


def hard_bits(random: np.random.Generator, width: int, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Bits of registers: anything, small numbers, edges of integers, floats of every kind."""
    if width == 1:
        return random.random(shape) < 0.5
    if width == 8:
        return random.integers(0, 256, shape, np.uint8)
    kind = np.dtype(f"u{width // 8}")
    values = (
        random.integers(0, 1 << width, shape, kind, endpoint=False)
        if width < 64
        else random.integers(0, (1 << 64) - 1, shape, np.uint64, endpoint=True)
    )
    edges = [
        0,
        1,
        2,
        (1 << width) - 1,
        1 << (width - 1),
        (1 << (width - 1)) - 1,
        31,
        32,
        33,
        63,
        64,
    ]
    for fraction, exponent in {16: [(10, 5), (7, 8)], 32: [(23, 8)], 64: [(52, 11)]}[width]:
        top = ((1 << exponent) - 1) << fraction
        edges += [top, top | 1 << width - 1, top | 1, top - 1, 1 << fraction, (1 << fraction) - 1]
        edges += [(top >> 1) & ~((1 << fraction) - 1), top | 1 << fraction - 1]
        # Neighbouring exponents and few bits: sums cancel, roundings meet ties.
        sparse = random.integers(0, 1 << 8, shape).astype(np.uint64) << np.uint64(fraction - 7)
        near = (top >> fraction >> 1) + random.integers(-20, 40, shape)
        near = np.clip(near, 0, (1 << exponent) - 1).astype(np.uint64) << np.uint64(fraction)
        sign = random.integers(0, 2, shape).astype(np.uint64) << np.uint64(width - 1)
        wild = random.random(shape) < 0.3
        exact = (sparse & np.uint64((1 << fraction) - 1)) | near | sign
        full = (values.astype(np.uint64) & np.uint64((1 << fraction) - 1)) | near | sign
        values = np.where(wild, (exact if random.random() < 0.5 else full).astype(kind), values)
    special = np.array(edges, np.uint64).astype(kind)
    values = np.where(
        random.random(shape) < 0.15, special[random.integers(0, len(special), shape)], values
    )
    return np.where(
        random.random(shape) < 0.1, random.integers(0, 70, shape).astype(kind), values
    ).astype(kind)
