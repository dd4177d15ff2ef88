"""Every spelling of the scalar instructions that might exist; ptxas says which do.

Operands are registers `%h` (16 bits), `%r` (32), `%q` (64), `%p` (predicates), `%c` (8).
"""

from __future__ import annotations

import itertools
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fragir.toolchain.find import PTXAS, execute, find

FLOATS = {
    "f16": "h",
    "bf16": "h",
    "f16x2": "r",
    "bf16x2": "r",
    "f32": "r",
    "f64": "q",
    "f32x2": "q",
}
INTEGERS = {
    **{f"{k}{w}": r for w, r in ((16, "h"), (32, "r"), (64, "q")) for k in "usb"},
    **dict.fromkeys(("u16x2", "s16x2", "u8x4", "s8x4"), "r"),
    "pred": "p",
}
TYPES = FLOATS | INTEGERS
ROUNDINGS = ("", ".rn", ".rz", ".rm", ".rp")
FTZ, SAT = ("", ".ftz"), ("", ".sat")
COMPARISONS = "eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan".split()


def each(*groups: tuple[str, ...] | list[str]) -> Iterator[str]:
    """One of every group, joined."""
    return ("".join(parts) for parts in itertools.product(*groups))


def operands(*registers: str) -> str:
    return " " + ", ".join(f"%{r}{i}" for i, r in enumerate(registers))


def floating() -> Iterator[str]:
    two, three = ("add", "sub", "mul"), ("fma", "mad")
    for name, count in (*((n, 3) for n in two), *((n, 4) for n in three)):
        for words in each(ROUNDINGS, FTZ, ("", ".sat", ".relu"), ("", ".oob")):
            for kind, register in FLOATS.items():
                yield f"{name}{words}.{kind}" + operands(*[register] * count)
    for name, words in itertools.product(("add", "sub", "fma"), each(ROUNDINGS, SAT)):
        for kind in ("f16", "bf16"):
            middle = ["h"] * (2 if name == "fma" else 1)
            yield f"{name}{words}.f32.{kind}" + operands("r", *middle, "r")
    one = "rcp sqrt rsqrt ex2 lg2 sin cos tanh".split()
    for name in ("div", *one):
        for words in each((*ROUNDINGS, ".approx", ".full"), FTZ):
            for kind, register in FLOATS.items():
                yield f"{name}{words}.{kind}" + operands(*[register] * (2 if name in one else 3))
    for name, words in itertools.product(("neg", "abs"), each(FTZ)):
        for kind, register in TYPES.items():
            yield f"{name}{words}.{kind}" + operands(register, register)
    for kind, register in FLOATS.items():
        yield f"copysign.{kind}" + operands(*[register] * 3)
        for word in "finite infinite number notanumber normal subnormal".split():
            yield f"testp.{word}.{kind}" + operands("p", register)


def comparing() -> Iterator[str]:
    for name in ("min", "max"):
        for words in each(FTZ, ("", ".NaN"), ("", ".xorsign.abs", ".abs"), ("", ".relu")):
            for (kind, register), count in itertools.product(TYPES.items(), (3, 4)):
                yield f"{name}{words}.{kind}" + operands(*[register] * count)
    for word, ftz, (kind, register) in itertools.product(COMPARISONS, FTZ, TYPES.items()):
        a_b = f"%{register}1, %{register}2"
        yield f"setp.{word}{ftz}.{kind} %p0, {a_b}"
        yield f"setp.{word}{ftz}.{kind} %p0|%p1, {a_b}"
        yield f"setp.{word}.and{ftz}.{kind} %p0|%p1, {a_b}, !%p3"
        yield f"setp.{word}.xor{ftz}.{kind} %p0, {a_b}, %p3"
        for into in ("u32", "s32", "f32", "u16", "s16", "f16", "bf16", "f16x2", "bf16x2"):
            d = f"%{TYPES[into]}0"
            yield f"set.{word}{ftz}.{into}.{kind} {d}, {a_b}"
            yield f"set.{word}.or{ftz}.{into}.{kind} {d}, {a_b}, %p3"
    for kind, register in TYPES.items():
        yield f"selp.{kind}" + operands(register, register, register, "p")
        for by, ftz in itertools.product(("s32", "f32"), FTZ):
            yield f"slct{ftz}.{kind}.{by}" + operands(register, register, register, "r")


def integers() -> Iterator[str]:
    wider = {"h": "r", "r": "q"}
    binary = "add sub mul div rem and or xor addc subc mul24".split()
    unary = "not cnot popc clz brev bfind bfind.shiftamt".split()
    for name in (*binary, *unary, "sad", "mad", "madc", "mad24"):
        count = 3 if name in binary else 2 if name in unary else 4
        for words in each(("", ".lo", ".hi", ".wide"), SAT, ("", ".cc")):
            for kind, register in INTEGERS.items():
                given = [register] * count
                if name.startswith(("popc", "clz", "bfind")):
                    given[0] = "r"
                if ".wide" in words and register in wider:
                    given[0] = wider[register]
                    given[3:] = [given[0]] * (count - 3)
                yield f"{name}{words}.{kind}" + operands(*given)
    for kind, register in INTEGERS.items():
        for name in ("shl", "shr"):
            yield f"{name}.{kind}" + operands(register, register, "r")
        yield f"bfe.{kind}" + operands(register, register, "r", "r")
        yield f"bfi.{kind}" + operands(register, register, register, "r", "r")
        for mode in ("", ".clamp", ".wrap"):
            yield f"bmsk{mode}.{kind}" + operands("r", "r", "r")
            yield f"szext{mode}.{kind}" + operands("r", "r", "r")
            yield f"shf.l{mode}.{kind}" + operands("r", "r", "r", "r")
            yield f"shf.r{mode}.{kind}" + operands("r", "r", "r", "r")
    yield "fns.b32" + operands("r", "r", "r", "r")
    yield "lop3.b32 %r0, %r1, %r2, %r3, 0x1b"
    for word in ("and", "or"):
        yield f"lop3.{word}.b32 %r0|%p0, %r1, %r2, %r3, 0x1b, !%p1"
        yield f"lop3.{word}.b32 _|%p0, %r1, %r2, %r3, 0x1b, %p1"
    for mode in ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"):
        yield f"prmt.b32{mode}" + operands("r", "r", "r", "r")
    for a, b in itertools.product(("u32", "s32"), repeat=2):
        for name in ("dp4a", "dp2a.lo", "dp2a.hi"):
            yield f"{name}.{a}.{b}" + operands("r", "r", "r", "r")


#: Registers of cvt's types. A wider register may be used, so bytes are in 32-bit ones.
CONVERTED = {
    **{f"{k}{w}": r for w, r in ((8, "r"), (16, "h"), (32, "r"), (64, "q")) for k in "us"},
    **FLOATS,
    "tf32": "r",
    **dict.fromkeys(("e4m3x2", "e5m2x2", "e2m3x2", "e3m2x2", "ue8m0x2", "s2f6x2"), "h"),
    "e2m1x2": "c",
    **dict.fromkeys(("e4m3x4", "e5m2x4", "e2m3x4", "e3m2x4"), "r"),
    "e2m1x4": "h",
}


def conversions() -> Iterator[str]:
    scalar = [t for t in CONVERTED if "x" not in t]
    packed = [t for t in CONVERTED if "x" in t]
    modes = ("", ".rn", ".rz", ".rm", ".rp", ".rna", ".rni", ".rzi", ".rmi", ".rpi")
    ends = ("", ".sat", ".satfinite", ".relu", ".satfinite.relu")
    for words in each(modes, FTZ, ends):
        for into, kind in itertools.product(scalar, repeat=2):
            yield f"cvt{words}.{into}.{kind} %{CONVERTED[into]}0, %{CONVERTED[kind]}1"
    for words in each(("", ".rn", ".rz", ".rp", ".rs"), ends, ("", ".scaled::n2::ue8m0")):
        for into, kind in itertools.product(packed, (*packed, "f32")):
            a = "%r1, %r2" if kind == "f32" else f"%{CONVERTED[kind]}1"
            a = "{%r1, %r2, %r3, %r4}" if into.endswith("x4") else a
            last = ", %h2" if "scaled" in words else ", %r5" if ".rs" in words else ""
            yield f"cvt{words}.{into}.{kind} %{CONVERTED[into]}0, {a}{last}"
    for into, kind in itertools.product("u8 s8 u16 s16 u4 s4 u2 s2".split(), ("s32", "u32")):
        yield f"cvt.pack.sat.{into}.{kind} %r0, %r1, %r2"
        yield f"cvt.pack.sat.{into}.{kind}.b32 %r0, %r1, %r2, %r3"


def video() -> Iterator[str]:
    parts = ("", ".b0", ".b3", ".h1")
    kinds = [".u32", ".s32"]
    for name in "vadd vsub vabsdiff vmin vmax vshl.wrap vshr.clamp".split():
        head, _, mode = name.partition(".")
        for words in each(kinds, kinds, kinds if not mode else [".u32"], SAT):
            spelled = f"{head}{words}{'.' * bool(mode)}{mode}"
            for a, b in zip(parts, parts[::-1], strict=True):
                yield f"{spelled} %r0, %r1{a}, %r2{b}"
                yield f"{spelled}.max %r0, %r1{a}, %r2{b}, %r3"
                if a:
                    yield f"{spelled} %r0{a}, %r1{b}, %r2, %r3"
    for words in each(kinds, kinds, kinds, ("", ".po"), SAT, ("", ".shr7", ".shr15")):
        for a, b, c in itertools.product(("", "-"), repeat=3):
            yield f"vmad{words} %r0, {a}%r1.b1, {b}%r2.h0, {c}%r3"
    for words, comparison in itertools.product(each(kinds, kinds), COMPARISONS[:6]):
        yield f"vset{words}.{comparison} %r0, %r1.b2, %r2"
        yield f"vset{words}.{comparison}.add %r0, %r1, %r2.h1, %r3"
        for tail in ("%r0.h1, %r1.h30, %r2.h12, %r3", "%r0, %r1, %r2, %r3"):
            yield f"vset2{words}.{comparison} {tail}"
            yield f"vset2{words}.{comparison}.add {tail}"
        for tail in ("%r0.b310, %r1.b0246, %r2.b7531, %r3", "%r0, %r1, %r2, %r3"):
            yield f"vset4{words}.{comparison} {tail}"
            yield f"vset4{words}.{comparison}.add {tail}"
    for name in "vadd vsub vavrg vabsdiff vmin vmax".split():
        for words in each(kinds, kinds, kinds, ("", ".sat", ".add")):
            yield f"{name}2{words} %r0, %r1, %r2, %r3"
            yield f"{name}2{words} %r0.h1, %r1.h30, %r2.h12, %r3"
            yield f"{name}4{words} %r0.b310, %r1.b0246, %r2.b7531, %r3"


HEAD = """.version 9.2
.target {target}
.address_size 64
.visible .entry k()
{{
.reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %q<9>; .reg .pred %p<9>; .reg .b8 %c<9>;
"""


def kernel(lines: list[str], target: str, before: str = "") -> str:
    """A kernel of these instructions, one a line."""
    return HEAD.format(target=target) + before + "\n".join(f"{x};" for x in lines) + "\nret;\n}\n"


def accepted(lines: list[str], target: str) -> list[str]:
    """Those that ptxas assembles."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "k.ptx")
        path.write_text(kernel(lines, target), encoding="utf-8")
        command = [str(find(PTXAS).path), f"-arch={target}", "-O0", str(path), "-o", "/dev/null"]
        log = execute(command).stderr
    first = HEAD.count("\n") + 1
    bad = {int(n) - first for n in re.findall(r"line (\d+); error", log)}
    assert bad, "some of the spellings are made to be refused"
    return [line for at, line in enumerate(lines) if at not in bad]
