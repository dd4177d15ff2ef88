"""How far the functions of passes/writer/sequences are from the true values, on all of f32.

    python benchmarks/functions.py [NAME ...] [--step 1] [--nudge 0]

Each sequence is translated from its PTX to C, instruction by instruction, compiled and run on every
f32 (`--step 13`: on every 13th; functions of two numbers on 2^32 / step random pairs) beside the
f64 function of the C library. `--nudge 1` and `-1` move the results of approximate instructions by
what the PTX ISA allows in that direction. It prints the largest error relative to the true value,
in units of 2^-24 (half an ulp of 1), and where; of subnormal results in units of 2^-149. Needs gcc
and a CPU with fma.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from pathlib import Path

from fragir.passes.writer.sequences import sequence
from fragir.passes.writer.sequences.sequence import Sequence, Step, steps

#: Function -> C's name, and from where to where its arguments are odd (half of them suffice).
UNARY = {
    "math.erf": ("erf", True), "math.expm1": ("expm1", False), "math.sinh": ("sinh", True),
    "math.cosh": ("cosh", True), "math.cbrt": ("cbrt", True), "math.log1p": ("log1p", False),
    "math.asinh": ("asinh", True), "math.acosh": ("acosh", True), "math.atanh": ("atanh", True),
    "math.tan": ("tan", True), "math.atan": ("atan", True), "math.asin": ("asin", True),
    "math.acos": ("acos", False),
}  # fmt: skip
BINARY = {"math.powf": "pow", "math.atan2": "atan2"}

_PROLOGUE = r"""
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef uint32_t u;
static inline float F(u x) { float f; memcpy(&f, &x, 4); return f; }
static inline u B(float f) { u x; memcpy(&x, &f, 4); return x; }
static int nudge;
static inline float near(double v, int ulps) {
  float f = (float)v;
  return nudge && isfinite(f) && f != 0 ? F(B(f) + (f > 0 ? 1 : -1) * nudge * ulps) : f;
}
static inline float ftz(float f) { return fabsf(f) < 0x1p-126f ? copysignf(0, f) : f; }
static inline float lg2(float x) {
  double v = log2(x);
  return v == 0 || !isfinite(v) ? (float)v
    : (float)(v + nudge * 0x1p-22 * (x > 0.5f && x < 2 ? 1 : fabs(v)));
}
static inline float add_rz(float x, float y) {
  double s = (double)x + y; float f = (float)s;
  return fabs((double)f) > fabs(s) ? F(B(f) - 1) : f;
}
"""
_C = {
    "abs.f32": "B(fabsf({f0}))", "neg.f32": "{u0} ^ 0x80000000u",
    "copysign.f32": "B(copysignf({f1}, {f0}))",
    "add.rn.f32": "B({f0} + {f1})", "sub.rn.f32": "B({f0} - {f1})", "mul.rn.f32": "B({f0} * {f1})",
    "div.rn.f32": "B({f0} / {f1})", "fma.rn.f32": "B(fmaf({f0}, {f1}, {f2}))",
    "add.rz.f32": "B(add_rz({f0}, {f1}))",
    "max.f32": "B(fmaxf({f0}, {f1}))", "min.f32": "B(fminf({f0}, {f1}))",
    "div.full.f32": "B(near((double){f0} / {f1}, 2))",
    "rcp.approx.ftz.f32": "B(ftz(near(1.0 / ftz({f0}), 1)))",
    "sqrt.approx.ftz.f32": "B(ftz(near(sqrt(ftz({f0})), 1)))",
    "ex2.approx.f32": "B(near(exp2({f0}), 2))",
    "ex2.approx.ftz.f32": "B(ftz(near(exp2(ftz({f0})), 2)))",
    "lg2.approx.f32": "B(lg2({f0}))",
    "cvt.rni.f32.f32": "B(rintf({f0}))", "cvt.rzi.f32.f32": "B(truncf({f0}))",
    "cvt.rni.s32.f32": "(u)(int)rintf({f0})", "cvt.rn.f32.s32": "B((float)(int)({u0}))",
    "add.s32": "{u0} + {u1}", "sub.s32": "{u0} - {u1}", "and.b32": "{u0} & {u1}",
    "shl.b32": "{u0} << {u1}", "shr.s32": "(u)((int)({u0}) >> {u1})",
    "mov.b32": "{u0}", "selp.f32": "{u2} ? {u0} : {u1}",
}  # fmt: skip
_RELATIONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}


def _word(name: str) -> str:
    if name.startswith("0f"):
        return f"0x{name[2:]}u"
    return (
        f"{name}u" if name.startswith("0x") else name if name[0] in "-0123456789" else f"r_{name}"
    )


def statement(step: Step) -> str:
    """One instruction in C."""
    if step.label:
        return f"{step.label}:;"
    guard = step.guard.replace("!", "!r_") if step.guard.startswith("!") else f"r_{step.guard}"
    condition = f"if ({guard}) " if step.guard else ""
    if step.opcode == "bra":
        return f"{condition}goto {step.operands[0]};"
    target, *sources = (_word(name) for name in step.operands)
    words = {f"u{i}": source for i, source in enumerate(sources)}
    words |= {f"f{i}": f"F({source})" for i, source in enumerate(sources)}
    if step.opcode.startswith("setp"):
        _, relation, *join, type_ = step.opcode.split(".")
        x, y = ("{f0}", "{f1}") if type_ == "f32" else ("(int)({u0})", "(int)({u1})")
        text = {
            "nan": f"isunordered({x}, {y})", "geu": f"!({x} < {y})", "neu": f"!({x} == {y})",
            "ne": f"({x} < {y} || {x} > {y})" if type_ == "f32" else f"{x} != {y}",
        }.get(relation) or f"{x} {_RELATIONS[relation]} {y}"  # fmt: skip
        if join:
            text = f"({text}) {'&&' if join == ['and'] else '||'} {{u2}}"
    else:
        text = _C[step.opcode]
    return f"{condition}{target} = {text.format(**words)};"


def translated(each: Sequence) -> str:
    """A sequence as a function of one or two floats."""
    body = steps(each.text)
    names = dict.fromkeys(name for step in body if not step.label for name in step.local)
    operands = each.operands.split()
    lines = [f"u r_{name} = 0;" for name in names if name not in operands]
    arguments = ", ".join(f"u r_{name}" for name in operands)
    text = "\n  ".join([*lines, *(statement(step) for step in body), "return F(r_d);"])
    return f"static inline float f({arguments}) {{\n  {text}\n}}\n"


_JUDGE = r"""
static double worst, tiny; static u at, at_y, tiny_at;
static inline void judge(u x, u y, float found, double v) {
  if (isnan(v) || isinf((float)v) || isinf(found) || isnan(found)) {
    if (isnan(v) != !!isnan(found) || (!isnan(v) && found != (float)v
        && !(isinf(found) && fabs(v) > 0x1.fffff0p127)
        && !(isinf((float)v) && fabsf(found) > 0x1.fffff0p127f)))
      { static int told; if (told++ < 8)
        printf("  special: f(%a, %a) = %a, not %a\n", F(x), F(y), found, v); }
    return;
  }
  double e = fabs(found - v);
  if (fabs(v) < 0x1p-126) { if (e > tiny) tiny = e, tiny_at = x; return; }
  if (e > worst * fabs(v)) worst = e / fabs(v), at = x, at_y = y;
}
int main(int c, char **v) {
  nudge = atoi(v[2]); uint64_t step = atoi(v[1]);
  LOOP
  printf("%.3f at %a, %a; subnormal %.2f at %a\n", worst * 0x1p24, F(at), F(at_y),
         tiny * 0x1p149, F(tiny_at));
}
"""
_ONE = "for (uint64_t i = 0; i < LIMIT; i += step) judge(i, 0, f(i), FUNCTION((double)F(i)));"
_TWO = """uint64_t s = 88172645463325252ull;
  for (uint64_t i = 0; i < (1ull << 32); i += step) {
    s ^= s << 13; s ^= s >> 7; s ^= s << 17;
    u x = s, y = s >> 32; PAIR
    judge(x, y, f(x, y), FUNCTION((double)F(x), (double)F(y)));
  }"""
# pow of random bits is 0 or infinite: half of the exponents are such that it is neither
_PAIRS = {
    "math.powf": "if (i & 1) y = B((float)(((int)(y >> 8) / 0x1p23 - 1) * 150"
    " / (fabs(log2(fabs(F(x)))) + 1e-9)));",
}
LIMITED = {"math.tan": "B(100000.0f)", "math.acosh": "(1ull << 31)"}


def program(name: str) -> str:
    """The C program that judges one function."""
    each = sequence(name, "f32")
    assert each is not None
    if name in BINARY:
        loop = _TWO.replace("FUNCTION", BINARY[name]).replace("PAIR", _PAIRS.get(name, ""))
    else:
        function, odd = UNARY[name]
        limit = LIMITED.get(name, "(1ull << 31)" if odd else "(1ull << 32)")
        loop = _ONE.replace("FUNCTION", function).replace("LIMIT", limit)
    return _PROLOGUE + translated(each) + re.sub("LOOP", lambda _: loop, _JUDGE)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", default=[*UNARY, *BINARY])
    parser.add_argument("--step", type=int, default=1)
    parser.add_argument("--nudge", type=int, default=0, choices=(-1, 0, 1))
    options = parser.parse_args()
    for name in options.names:
        with tempfile.TemporaryDirectory() as folder:
            source, binary = Path(folder) / "f.c", Path(folder) / "f"
            source.write_text(program(name))
            flags = ["-O2", "-mfma", "-ffp-contract=off", "-fno-builtin-rint", "-Wno-overflow"]
            subprocess.run(["gcc", *flags, "-o", binary, source, "-lm"], check=True)
            command = [binary, str(options.step), str(options.nudge)]
            found = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        print(f"{name}: {found}", end="", flush=True)


if __name__ == "__main__":
    main()
