"""What a row's text computes is what ptxas computes: its constant folder judges every form.

A task is an opcode with its words, some lanes of random bits and of edges. Each lane is a statement
of constants, whose result is compared with ours; where it is another, a store says so. ptxas folds
the statement and the comparison: a store that is left without a guard is a lane where ours is
wrong, one with a guard a statement that ptxas does not fold. Those that it never folds are in
`NOT_FOLDED`, with who judges them instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from math import isfinite
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from fragir.emulator.numbers.types import FORMATS, width_of
from fragir.emulator.values.arrays import definition
from fragir.emulator.values.c import opcodes_of_line
from fragir.emulator.values.language import (
    BOOL,
    FLOATS,
    PACKED,
    Computation,
    type_of,
    value_of,
    walk,
)
from fragir.errors import FragirError
from fragir.ptx.opcodes.row import Opcode
from fragir.ptx.opcodes.syntax import Line, Words
from fragir.ptx.opcodes.table import OPCODES
from fragir.sweeps import Plan, Result, Sweep, Task, sample
from fragir.toolchain.ptxas import assemble
from fragir.toolchain.sass import disassemble

#: Together they have every row with a text.
TARGETS = ("sm_90a", "sm_120a", "sm_100a")
LANES = 500
#: Packed types of which ptxas folds the elements alone.
HALVES = ("u16x2", "s16x2")
#: Lanes of a form that are shown.
MOST = 3
#: Rows that ptxas never folds, and what judges them instead.
_INTEGERS = "Python's integers: tests/emulator/test_integer.py, test_integer_values.py"
_PACKS = "Python's integers: tests/emulator/test_convert_values.py"
_FRACTIONS = "rationals: tests/emulator/test_scalar_values.py, test_floating.py"
_NEAR = "f64, and the bounds of the ISA: tests/emulator/test_approximations.py"
NOT_FOLDED: dict[str, str] = {
    **dict.fromkeys("mad.hi madc.hi div rem sad lop3 prmt dp4a dp2a.lo dp2a.hi".split(), _INTEGERS),
    **dict.fromkeys("bmsk szext bfi fns lop3.and lop3.or".split(), _INTEGERS),
    "cvt.pack": _PACKS,
    **dict.fromkeys("fma mad copysign".split(), _FRACTIONS),
    **dict.fromkeys("div.full rcp sqrt rsqrt sin cos lg2 ex2 tanh".split(), _NEAR),
}
#: Rows of which it folds some forms, and what judges the others.
FOLDED_IN_PART: dict[str, str] = dict.fromkeys(
    "add sub mul min max neg abs set setp testp cvt".split(), f"{_FRACTIONS}; {_INTEGERS}"
)
#: For conversions between these it wants registers of 8 bits, which no test of ours has.
_NARROW = re.compile(r"bf16\.[us]8|[us]8\.bf16")
#: The ISA leaves open which NaN these give, and what these give for a divisor of zero.
_ANY_NAN = frozenset(("neg", "abs", "cvt"))
_NO_ZERO = frozenset(("div", "rem"))
#: ptxas 13.5 folds 0f80000020 + 0f03FD8C18 and 0f4C6C34FC + 0fC0000000, half way between two
#: numbers, to the odd one of them; so it does not judge such sums, and none of subnormal terms.
_SUMS = frozenset(("add", "sub"))
#: With .ftz it makes zero of 0f3F7FFFFF * 0f00800000, which rounds to the smallest normal number:
#: it flushes what is too small before it rounds. What machines do is not known; ours rounds first.
#: Of 64 bits ptxas 13.5 does not take position and length modulo 256, as the ISA says it does, in
#: its machine code either.
_FIELDS = {"bfe": ("b", "c"), "bfi": ("c", "e")}
_HEAD = """.version 9.2
.target {target}
.address_size 64
.visible .entry k(.param .u64 out)
{{
.reg .b64 %o;
.reg .b16 %b;
ld.param.u64 %o, [out];
"""
#: Behind all lanes, so that none of them is what an exit jumps over.
_LAST = "\nst.volatile.global.u32 [%o+-4], 1;\nret;\n}\n"
_STORE = re.compile(
    r"^\s*/\*\w+\*/\s+(@!?U?P\w+\s+)?STG\S*\s[^;]*?\[R\d+\S*?(?:\+(-?0x[0-9a-f]+))?\]", re.MULTILINE
)


class Form:
    """An opcode with its words, as its row has it, and what it computes."""

    def __init__(self, row: Opcode, line: Line, words: Words, count: int, text: str = "") -> None:
        assert isinstance(row.decode, str)
        self.row, self.line, self.words, self.count = row, line, words, count
        self.what = value_of(text or row.decode, line, words, count, row.known)

    @property
    def name(self) -> str:
        return ".".join(self.words)

    @property
    def near(self) -> bool:
        """Whether it is an approximation, of which ptxas has its own."""
        return any(n.op == "approx" for n in walk(self.what.results["d"]))

    @property
    def halves(self) -> bool:
        """Whether its two results are predicates of the two elements of its operands."""
        return self.what.elements == 2 and self.what.results["d"].type == BOOL

    @property
    def pair(self) -> bool:
        """Whether it is written with its second result."""
        return bool(self.line.operands[0].second) and (self.what.elements == 1 or self.halves)

    @property
    def results(self) -> list[str]:
        """Those that the statement has."""
        cc = "cc" in self.words
        return [n for n in self.what.results if n == "d" or (cc if n == "cc" else self.pair)]


def forms(rows: Iterable[Opcode] = ()) -> Iterator[Form]:
    """All forms of rows with a text, with as many operands as they may have."""
    for row in rows or OPCODES.rows:
        for line in row.box if isinstance(row.decode, str) else ():
            if line.missing:
                continue
            for words in opcodes_of_line(row, line):
                yield Form(row, line, words, line.counts(words)[-1])


def edges(width: int) -> list[int]:
    """Numbers, and bits of floating-point numbers, at which something changes."""
    top = (1 << width) - 1
    found = {0, 1, 2, 3, 7, 8, 15, 16, 24, 31, 32, 33, 63, 64, 65, 255, 256}
    found |= {top, top - 1, top >> 1, (top >> 1) + 1, (top >> 1) - 1}
    for fraction, exponent in {16: ((10, 5), (7, 8)), 32: ((23, 8),), 64: ((52, 11),)}.get(
        width, ()
    ):
        one, all_ones = ((1 << exponent - 1) - 1) << fraction, ((1 << exponent) - 1) << fraction
        for bits in (1 << fraction, one, one + (1 << fraction), all_ones):
            found |= {bits - 1, bits, bits + 1}
    found |= {bits | 1 << width - 1 for bits in list(found)}
    return sorted(bits & top for bits in found)


def lanes(width: int, count: int, random: Random) -> npt.NDArray[Any]:
    """Bits of operands: half of them edges, half random, of few and of many bits."""
    dtype = np.dtype(np.bool_) if width == 1 else np.dtype(f"u{width // 8}")
    if width == 1:
        return np.array([random.random() < 0.5 for _ in range(count)], dtype)
    ends = edges(width)
    found = [
        random.choice(ends)
        if random.random() < 0.5
        else random.getrandbits(random.randint(1, width))
        for _ in range(count)
    ]
    return np.array(found, dtype)


class Question:
    """Some lanes of a form: operands, and the results that its text gives."""

    def __init__(self, form: Form, count: int, random: Random) -> None:
        self.form, self.lanes = form, count
        what = form.what
        self.immediates = tuple(random.getrandbits(8) for _ in what.immediates)
        self.given = {
            name: lanes(1 if operand.type == BOOL else _width(operand.kind), count, random)
            for name, operand in what.operands.items()
        }
        names = ["d"] if form.halves else form.results
        function = definition(what, tuple(names), self.immediates)
        rows = [
            values.reshape(1, -1).view(_seen(what, name)) for name, values in self.given.items()
        ]
        with np.errstate(all="ignore"):
            found = function(*rows)
        results: Any = found if len(names) > 1 else (found,)
        if form.halves:
            names, results = ["d", "q"], np.moveaxis(found.reshape(count, 2), 1, 0)
        self.results: dict[str, npt.NDArray[Any]] = {
            name: np.broadcast_to(r, (1, count)).reshape(-1)
            for name, r in zip(names, results, strict=True)
        }

    def shown(self, at: int) -> str:
        """A lane for people."""
        given = ", ".join(f"{n} = {int(v[at]):#x}" for n, v in self.given.items())
        results = ", ".join(f"{n} = {int(v[at]):#x}" for n, v in self.results.items())
        return f"{self.form.name}: {given} -> {results}, says the text"

    def statements(self, at: int, first: int) -> list[str]:
        """A lane as PTX: stores of what is not as it should be, from a number on."""
        form, what = self.form, self.form.what
        made: list[str] = []
        places: dict[int, str] = {
            place: str(value)
            for place, value in zip(what.immediates.values(), self.immediates, strict=True)
        }
        declared: list[str] = []
        for name, operand in what.operands.items():
            value = int(self.given[name][at])
            if name == "cc":
                made.append(f"add.cc.u32 %t{at}, {0xFFFFFFFF if value else 0}, 1;")
                declared.append(f".reg .b32 %t{at};")
                continue
            width = 1 if operand.type == BOOL else _width(operand.kind)
            register = f"%x{at}_{operand.place}"
            declared.append(f".reg .{_class(width)} {register};")
            made.append(
                f"setp.ne.u32 {register}, {value}, 0;"
                if width == 1
                else f"mov.b{max(width, 16)} {register}, {value:#x};"
            )
            places[operand.place] = register
        made.sort(key=lambda text: text.startswith("add.cc"))  # nothing between carry and use
        kind = what.kinds["d"]
        out, other, width = f"%y{at}", f"%s{at}", _width(kind)
        declared.append(f".reg .{_class(width)} {out}; .reg .pred {other};")
        given = [places[i] for i in sorted(places)]
        into = f"{out}|{other}" if form.pair else out
        if what.packed in HALVES and not {"sat", "relu"} & {*form.words}:  # which are no scalar's
            declared += self._by_halves(at, out, given, made)
        else:
            made.append(f"{form.name} {into}, {', '.join(given)};")
        if "cc" in self.results:
            declared.append(f".reg .b32 %z{at};")
            made.append(f"addc.u32 %z{at}, 0, 0;")
        for number, (name, values) in enumerate(self.results.items(), first):
            predicate, value = f"%q{at}_{number}", int(values[at])
            declared.append(f".reg .pred {predicate};")
            if name == "cc":
                made.append(f"setp.ne.u32 {predicate}, %z{at}, {value};")
            elif name == "d" and width > 1:
                size = max(width, 16)
                wanted = value & (1 << size) - 1
                made.append(f"setp.ne.b{size} {predicate}, {out}, {wanted:#x};")
            else:
                opcode = "not" if value else "mov"
                made.append(f"{opcode}.pred {predicate}, {out if name == 'd' else other};")
            made.append(f"@{predicate} st.global.u32 [%o+{4 * number}], 1;")
        return ["{", *declared, *made, "}"]

    def _by_halves(self, at: int, out: str, given: Sequence[str], made: list[str]) -> list[str]:
        """Of two integers, which ptxas does not fold, each by itself; what is declared for it."""
        name = ".".join(
            w.removesuffix("x2") if w == self.form.what.packed else w for w in self.form.words
        )
        parts = [[f"%h{at}_{i}_{half}" for half in range(2)] for i in range(len(given) + 1)]
        for register, (low, high) in zip(given, parts[1:], strict=True):
            made.append(f"mov.b32 {{{low}, {high}}}, {register};")
        for half in range(2):
            made.append(f"{name} {', '.join(part[half] for part in parts)};")
        made.append(f"mov.b32 {out}, {{{parts[0][0]}, {parts[0][1]}}};")
        return [f".reg .b16 {', '.join(part)};" for part in parts]

    def _is_least(self, at: int) -> bool:
        """Whether the smallest normal number is in a result."""
        return 0x800000 in (self.results["d"][at : at + 1].view("u4") & 0x7FFFFFFF)

    def judged(self, at: int) -> bool:
        """Whether the ISA says what a lane gives, and ptxas follows it."""
        name, what = self.form.row.name, self.form.what
        given = {operand: int(values[at]) for operand, values in self.given.items()}
        if name in _NO_ZERO and given["b"] == 0:
            return False
        if name in _FIELDS and what.kinds["d"].endswith("64"):
            return all(given[operand] < 256 for operand in _FIELDS[name])
        single = what.results["d"].type == "f32"
        if single and "ftz" in self.form.words and self._is_least(at):
            return False
        if name in _SUMS and single:
            pairs = zip(*(values[at : at + 1].view("u4") for values in self.given.values()))
            for terms in map(np.array, pairs):
                small = (terms & 0x7FFFFFFF) - 1 < 0x7FFFFF
                if small.any() or _is_half_way(terms.view(np.float32).tolist()):
                    return False
            return True
        if name not in _ANY_NAN or what.results["d"].type not in FLOATS:
            return True
        return not any(_is_nan(what, operand, bits) for operand, bits in given.items())


def _is_half_way(terms: Sequence[float]) -> bool:
    """Whether a sum, or a difference, has one bit more than an f32 holds."""
    if not all(map(isfinite, terms)):
        return False
    first, second = map(Fraction, terms)
    odd = (abs(each.numerator) for each in (first + second, first - second))
    return any((n // (n & -n or 1)).bit_length() == 25 for n in odd)


def _is_nan(what: Computation, name: str, bits: int) -> bool:
    form = FORMATS.get(what.operands[name].type)
    if form is None:
        return False
    size = form.fraction + form.exponent
    parts = [bits >> at & (1 << size) - 1 for at in range(0, 64, size + 1)]
    return any(part > ((1 << form.exponent) - 1) << form.fraction for part in parts)


def _class(width: int) -> str:
    """The registers of so many bits: those of 8 are in 16."""
    return "pred" if width == 1 else f"b{max(width, 16)}"


def _width(kind: str) -> int:
    return 1 if kind == "pred" else width_of(kind)


def _seen(what: Computation, name: str) -> Any:
    """The dtype in which a function takes an operand; floating-point numbers are bits."""
    from fragir.emulator.values.arrays import dtype

    operand = what.operands[name]
    if operand.kind in PACKED or type_of(operand.kind) != operand.type:
        return np.dtype(f"u{_width(operand.kind) // 8}") if operand.type != BOOL else np.bool_
    return dtype(operand.type)


def _places(target: str, body: str) -> tuple[set[int], set[int]]:
    """Numbers of stores that are left: without a guard, and with one. FragirError from ptxas."""
    text = _HEAD.format(target=target) + body + _LAST
    code = disassemble(assemble(text, target, cache=False).cubin)
    certain, unsure = set[int](), set[int]()
    for guard, offset in _STORE.findall(code):
        (unsure if guard else certain).add(int(offset or "0", 16) // 4)
    return certain, unsure


def taken_by(form: Form) -> str | None:
    """The first target for which ptxas assembles a form."""
    question = Question(form, 1, Random(0))
    for target in TARGETS:
        try:
            _places(target, "\n".join(question.statements(0, 0)))
        except FragirError:
            continue
        return target
    return None


def _alone(question: Question, at: int, target: str) -> bool:
    """Whether a lane is wrong in a kernel of its own: among others a branch may be its guard."""
    return bool(_places(target, "\n".join(question.statements(at, 0)))[0] - {-1})


def judge(questions: Sequence[Question], target: str) -> list[tuple[int, list[str]]]:
    """Of each question: how many lanes are folded, and those that are wrong, all in one kernel."""
    body: list[str] = []
    spans: list[tuple[int, int]] = []
    number = 0
    for question in questions:
        count, results = question.lanes, len(question.results)
        spans.append((number, results))
        for at in range(count):
            body += question.statements(at, number + at * results)
        number += count * results
    wrong, unsure = _places(target, "\n".join(body))
    told: list[tuple[int, list[str]]] = []
    for question, (first, results) in zip(questions, spans, strict=True):
        folded, bad = 0, list[str]()
        for at in range(question.lanes):
            own = {first + at * results + i for i in range(results)}
            folded += not own & unsure
            if (
                own & wrong
                and question.judged(at)
                and len(bad) < MOST
                and _alone(question, at, target)
            ):
                bad.append(question.shown(at))
        told.append((folded, bad))
    return told


def of_form(form: Form, count: int, random: Random) -> Result:
    target = taken_by(form)
    if target is None and _NARROW.search(form.name):
        return {"target": "", "folded": 0, "findings": []}
    if target is None:
        return {"target": "", "folded": 0, "findings": [f"ptxas takes {form.name} nowhere"]}
    ((folded, wrong),) = judge([Question(form, count, random)], target)
    wrong = [] if form.near else wrong
    findings = [f"ptxas gives another result: {text}" for text in wrong]
    if not folded and form.row.name not in NOT_FOLDED | FOLDED_IN_PART:
        findings.append(f"ptxas does not fold {form.name}, and NOT_FOLDED does not say who judges")
    return {"target": target, "folded": folded, "findings": findings}


def tasks(plan: Plan) -> Sequence[Any]:
    only = str(plan.parameters.get("only") or "")
    names = dict.fromkeys(f.name for f in forms())
    return sample([n for n in names if not only or re.fullmatch(only, n)], plan)


@cache
def _by_name() -> dict[str, Form]:
    return {form.name: form for form in forms()}


def run(task: Task) -> Result:
    return of_form(_by_name()[task.what], task.parameters["lanes"], task.random())


SWEEP = Sweep(tasks, run, {"lanes": LANES, "only": ""}, seconds=120.0)
