"""Open questions about arithmetic: small inputs, and what each possible answer gives.

What public sources leave open, or say only once (docs/arithmetic.md), is asked here with a sum of
products each, for which the emulator's model and other models give different bits, so that one run
on a GPU decides. All rows of A and all columns of B are alike: every element of D is the answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fragir import isa
from fragir.errors import FragirError
from fragir.isa import Instruction
from fragir.isa.emit import emit_ptx, parameters
from fragir.isa.query import View
from fragir.isa.registry import per_table
from fragir.isa.targets import number
from fragir.isa.versions import module_version
from fragir.validation.probes import Runner, code_image
from fragir.validation.products import Codes, Words, pack, unpack

#: An element: a number that its type has exactly, or `Code` bits.
Number = float


@dataclass(frozen=True, slots=True)
class Code:
    """An element by its bits, such as a NaN."""

    bits: int


Element = Number | Code


@dataclass(frozen=True)
class Question:
    """One question to a tensor-core instruction.

    `terms`: column k of A and B (of a sparse A: k-th kept column) -> (a, b); the others are zero.
    `answers`: what it would mean -> the bits of every element of D. `numbers`: the compute
    capabilities it is about, as in sm_90. `scales`: exponents of A's scales, for each block.
    """

    name: str
    asks: str
    mnemonic: str
    terms: dict[int, tuple[Element, Element]]
    c: Element
    answers: dict[str, int]
    numbers: tuple[int, ...]
    scales: tuple[int, ...] = ()


@dataclass(frozen=True)
class ScalarQuestion:
    """One question to another instruction: a line that writes `%r0`, its registers' bits."""

    name: str
    asks: str
    line: str
    operands: dict[str, int]
    answers: dict[str, int]
    numbers: tuple[int, ...]


_FORMATS = {"e4m3": (4, 3), "e5m2": (5, 2), "e2m1": (2, 1)}


def code_of(kind: str, element: Element) -> int:
    """The bits of a number in a type; FragirError where the type does not have it."""
    if isinstance(element, Code):
        return element.bits
    if kind in ("s8", "s32"):
        return int(element) & (0xFF if kind == "s8" else 0xFFFFFFFF)
    if kind == "f64":
        return int(np.array(element).view(np.uint64))
    if kind in ("f32", "tf32", "bf16"):
        single = np.array(element, np.float32)
        bits = int(single.view(np.uint32))
        if float(single) == element and (kind != "bf16" or not bits & 0xFFFF):
            return bits >> 16 if kind == "bf16" else bits
    elif kind == "f16":
        half = np.array(element, np.float16)
        if float(half) == element:
            return int(half.view(np.uint16))
    else:
        exponents, fractions = _FORMATS[kind]
        bias = (1 << (exponents - 1)) - 1
        sign = int(np.signbit(element)) << (exponents + fractions)
        for code in range(1 << (exponents + fractions)):
            field, part = code >> fractions, code & ((1 << fractions) - 1)
            significand = part + (1 << fractions if field else 0)
            if significand * 2.0 ** (max(field, 1) - bias - fractions) == abs(element):
                return code | sign
    raise FragirError(f"{kind} has no {element}")


def bits32(value: float) -> int:
    return int(np.array(value, np.float32).view(np.uint32))


def bits16(value: float) -> int:
    return int(np.array(value, np.float16).view(np.uint16))


AMPERE, HOPPER, BLACKWELL, RTX = (80, 86, 87, 88, 89), (90,), (100, 103, 107, 110), (120, 121)
NEW = (*HOPPER, *BLACKWELL, *RTX)
ALL = (*AMPERE, *NEW)

_MMA = "mma.sync.aligned."
F32 = _MMA + "m16n8k16.row.col.f32.f16.f16.f32"
F16 = _MMA + "m16n8k16.row.col.f16.f16.f16.f16"
BF16 = _MMA + "m16n8k16.row.col.f32.bf16.bf16.f32"
TF32 = _MMA + "m16n8k8.row.col.f32.tf32.tf32.f32"
F64 = _MMA + "m16n8k4.row.col.f64.f64.f64.f64"
S8 = _MMA + "m16n8k32.row.col.satfinite.s32.s8.s8.s32"
FP8 = _MMA + "m16n8k32.row.col.f32.e4m3.e4m3.f32"
SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
SPARSE_TF32 = "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32"
WGMMA = "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3"
WGMMA_F16 = "wgmma.mma_async.sync.aligned.m64n8k32.f16.e4m3.e4m3"
WGMMA_HALF = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"
WGMMA_TF32 = "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32"
WGMMA_SPARSE = "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16"
MXF4 = _MMA + "m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue8m0"

Terms = dict[int, tuple[Element, Element]]


def _cancelling_terms(big: float, at: tuple[int, int], small: float, others: range) -> Terms:
    """+big and -big at two columns, `small` at the others: lost where all is one step."""
    terms: Terms = {k: (small, 1.0) for k in others if k not in at}
    terms[at[0]], terms[at[1]] = (big, 1.0), (-big, 1.0)
    return terms


def half_precision() -> Iterator[Question]:
    """F under f16 results, truncation, exponents, zeros and specials of the 16-bit types."""
    one, up = bits16(1.0), bits16(1.0 + 2.0**-10)
    tie = {0: (1.0, 1.0), 1: (2.0**-11, 1.0)}
    for e, kept in ((-24, "24"), (-25, "25"), (-26, "26")):
        terms: Terms = {**tie, 2: (2.0**-13, 2.0 ** (e + 13))}
        answers = {f"F is at least {kept}": up, f"F is below {kept}": one}
        yield Question(f"F16F{e}", "F under f16 results", F16, terms, 0.0, answers, ALL)
    terms = {0: (1.0, 1.0), 1: (3 * 2.0**-11, 1.0), 2: (-(2.0**-13), 2.0**-13)}
    answers = {"magnitudes are cut": bits16(1 + 2.0**-9), "towards minus infinity": up}
    yield Question("F16RD", "truncation of negative terms", F16, terms, 0.0, answers, ALL)
    answers = {"none": one, "sticky": up}
    terms = {**tie, 2: (2.0**-13, 2.0**-13)}
    yield Question("F16STK", "a sticky bit below F = 25", F16, terms, 0.0, answers, NEW)
    for e in (-46, -47):
        # F = 25 and a floor of -21: the last place is 2^-46.
        terms = {0: (2.0**-13, 2.0**-12), 1: (2.0**-23, 2.0 ** (e + 23))}
        answers = {"kept": 1, "cut": 0}
        yield Question(
            f"FLOOR16{e}", f"is 2^{e} kept beside the tie 2^-25", F16, terms, 0.0, answers, NEW
        )
    for e in (-158, -159):
        terms = {0: (2.0**-75, 2.0**-74), 1: (-(2.0**-79), 2.0 ** (e + 79))}
        answers = {f"2^{e} is kept": 0, f"2^{e} is cut": 1}
        yield Question(f"FLOOR32{e}", "e_floor of f32 results", BF16, terms, 0.0, answers, NEW)
    answers = {"no": bits32(2.0**-30), "yes": 0}
    yield Question(
        "ZEROEXP", "does 0 * 2^127 raise E", BF16, {0: (0.0, 2.0**127)}, 2.0**-30, answers, ALL
    )
    terms = {0: (1.5, 1.5), 1: (-1.5, 1.5), 2: (2.0**-13, 2.0**-12)}
    answers = {"no": bits32(2.0**-25), "yes": 0}
    yield Question("NORM", "are products normalised", F32, terms, 0.0, answers, NEW)
    zeros: Terms = {k: (-0.0, 1.0) for k in range(16)}
    signs = {"+0": 0, "-0": 1 << 31}
    yield Question("NEGZERO", "the zero of -0 everywhere", F32, zeros, -0.0, signs, ALL)
    terms = {0: (-(2.0**-75), 2.0**-75)}
    yield Question("UNDER32", "the zero of -2^-150", BF16, terms, 0.0, signs, ALL)
    terms = {0: (-(2.0**-13), 2.0**-13)}
    answers = {"+0": 0, "-0": 1 << 15}
    yield Question("UNDER16", "the zero of -2^-26 as f16", F16, terms, 0.0, answers, ALL)
    answers = {"0x7fffffff": 0x7FFFFFFF, "payload kept": 0x7FC12345, "0x7fc00000": 0x7FC00000}
    yield Question("NAN", "which NaN", F32, {}, Code(0x7FC12345), answers, ALL)
    terms = {0: (Code(0x7C00), 0.0)}
    yield Question("INFZERO", "Inf * 0", F32, terms, 0.0, answers, ALL)
    terms = {0: (Code(0x7C00), 1.0), 1: (3.0, 1.0)}
    answers = {"Inf": 0x7F800000, "NaN": 0x7FFFFFFF}
    yield Question("INF", "Inf beside numbers", F32, terms, 1.0, answers, ALL)
    answers = {"Inf": 0x7F800000, "largest": 0x7F7FFFFF}
    terms = {0: (2.0**127, 1.0)}
    yield Question("OVF", "overflow towards zero", BF16, terms, 2.0**127, answers, ALL)
    terms = {0: (2.0**127, 2.0**127), 1: (-(2.0**127), 2.0**127)}
    answers = {"wide exponents": 0, "NaN": 0x7FFFFFFF, "exact": bits32(1.0)}
    yield Question("OVFW", "do products overflow", BF16, terms, 1.0, answers, ALL)
    for value in (15.0, 16.0):
        terms = {0: (65504.0, 1.0), 1: (value, 1.0)}
        answers = {"65504": 0x7BFF, "Inf": 0x7C00}
        yield Question(f"OVF16+{value:.0f}", "overflow of f16", F16, terms, 0.0, answers, ALL)
    answers = {"kept": 1, "flushed": 0}
    yield Question("SUBC", "subnormal C", F32, {}, 2.0**-149, answers, ALL)
    answers = {"kept": bits32(2.0**-24), "flushed": 0}
    yield Question("SUBA", "subnormal A", F32, {0: (2.0**-24, 1.0)}, 0.0, answers, ALL)


def steps() -> Iterator[Question]:
    """How many products are one step, dense and sparse."""
    one = {"one step": 0}
    for name, at in (("STEP16", (0, 1)), ("STEP16-B", (8, 9))):
        others = range(8, 16) if at[0] == 0 else range(8)
        terms = _cancelling_terms(2.0**13, at, 2.0**-13, others)
        answers = {**one, "two steps, ascending k": bits32(2.0**-10)}
        if at[0]:
            answers = {**one, "two steps, descending k": bits32(2.0**-10)}
        yield Question(name, "products a step, f16", F32, terms, 0.0, answers, ALL)
        yield Question(f"W{name}", "the same of wgmma", WGMMA_HALF, terms, 0.0, answers, HOPPER)
    terms = _cancelling_terms(2.0**13, (0, 1), 2.0**-13, range(4, 8))
    answers = {**one, "two steps, ascending k": bits32(2.0**-11)}
    yield Question("STEP8-TF32", "products a step, tf32", TF32, terms, 0.0, answers, ALL)
    yield Question("WSTEP8-TF32", "the same of wgmma", WGMMA_TF32, terms, 0.0, answers, HOPPER)
    for j in range(1, 16):
        terms = _cancelling_terms(2.0**13, (0, j), 2.0**-13, range(16))
        # With +M and -M in different steps everything small is lost too.
        answers = {**one, "8 kept columns a step": bits32(2.0**-10)} if j < 8 else one
        for name, mnemonic, numbers in (("SP", SPARSE, ALL), ("WSP", WGMMA_SPARSE, HOPPER)):
            yield Question(
                f"{name}-0-{j}", "steps of sparse f16", mnemonic, terms, 0.0, answers, numbers
            )
    for j in range(1, 8):
        terms = _cancelling_terms(2.0**13, (0, j), 2.0**-13, range(8))
        answers = {**one, "4 kept columns a step": bits32(2.0**-11)} if j < 4 else one
        yield Question(f"SPT-0-{j}", "steps of sparse tf32", SPARSE_TF32, terms, 0.0, answers, NEW)


def eight_bit() -> Iterator[Question]:
    """fp8 of Hopper: its own instruction (wgmma), and mma.sync, which is emulated."""
    answers = {"13 bits": 0x3FFFFC00, "unchanged": 0x3FFFFFFF, "13 bits, nearest": 0x40000000}
    c = Code(0x3FFFFFFF)
    yield Question("FP8C", "C beside zero products", WGMMA, {}, c, answers, HOPPER)
    small = (2.0**-7, 2.0**-7)
    terms: Terms = {0: (1.0, 1.0), 1: small, 2: small}
    answers = {"F is 13": bits32(1.0), "F is above 13": bits32(1 + 2.0**-13)}
    yield Question("FP8F-14", "F of fp8", WGMMA, terms, 0.0, answers, HOPPER)
    terms = {0: (1.0, 1.0), 1: (2.0**-7, 2.0**-6)}
    answers = {"F is at least 13": bits32(1 + 2.0**-13), "F is below 13": bits32(1.0)}
    yield Question("FP8F-13", "F of fp8", WGMMA, terms, 0.0, answers, HOPPER)
    terms = {0: (1.0, 1.0), 1: (1.0, 1.0), 2: (1.5 * 2.0**-6, 2.0**-6)}
    answers = {
        "cut to 13 bits": bits32(2 + 2.0**-12),
        "rounded to 13 bits": bits32(2 + 2.0**-11),
        "f32": bits32(2 + 3 * 2.0**-13),
    }
    yield Question("FP8OUT", "how fp8 results are rounded", WGMMA, terms, 0.0, answers, HOPPER)
    for name, others in (("FP8STEP2", range(16, 32)), ("FP8STEP2-B", range(2, 16))):
        terms = _cancelling_terms(256.0, (0, 1), 2.0**-7, others)
        answers = {"one step of 32": 0}
        if name == "FP8STEP2":
            answers["16 + 16"] = bits32(16 * 2.0**-7)
        else:
            answers["not one of the first 16"] = bits32(14 * 2.0**-7)
        yield Question(name, "products a step, fp8", WGMMA, terms, 0.0, answers, HOPPER)
    terms = {0: (1.0, 1.0), 1: (2.0**-6, 2.0**-5), 2: small}
    answers = {"F is 13": bits16(1.0), "F is above 13": bits16(1 + 2.0**-10)}
    yield Question("FP8F16-14", "F of fp8 with f16", WGMMA_F16, terms, 0.0, answers, HOPPER)
    terms = {0: (1.0, 1.0), 1: (2.0**-6, 2.0**-5), 2: (2.0**-7, 2.0**-6)}
    answers = {"F is at least 13": bits16(1 + 2.0**-10), "F is below 13": bits16(1.0)}
    yield Question("FP8F16-13", "F of fp8 with f16", WGMMA_F16, terms, 0.0, answers, HOPPER)
    terms = {0: (256.0, 256.0), 2: (2.0**-4, 2.0**-4), 3: (2.0**-4, 2.0**-5)}
    answers = {"chained (ptxas 12.8)": bits32(2.0**16), "added (12.4)": bits32(2.0**16 + 2.0**-7)}
    numbers = (*HOPPER, *BLACKWELL)
    yield Question("FP8SYNC", "how fp8 mma.sync is emulated", FP8, terms, 0.0, answers, numbers)


def others() -> Iterator[Question]:
    """tf32's low bits, f64, clamped integers, fp4."""
    answers = {"ignored": bits32(1.0), "rounded": 0x3F802000}
    terms: Terms = {0: (Code(0x3F801FFF), 1.0)}
    yield Question("TF32LOW", "tf32's low bits", TF32, terms, 0.0, answers, ALL)
    answers = {"Inf": 0x7F800000, "NaN": 0x7FFFFFFF}
    terms = {0: (Code(0x7F800001), 1.0)}
    yield Question("TF32NAN", "a NaN of low bits alone", TF32, terms, 0.0, answers, ALL)
    answers = {"0": 0, "kept": 0x1FFF}
    yield Question("TF32SUB", "a low subnormal", TF32, {0: (Code(0x1FFF), 1.0)}, 0.0, answers, ALL)

    def double(value: float) -> int:
        return int(np.array(value).view(np.uint64))

    numbers = (*HOPPER, *BLACKWELL, *RTX)
    tiny = 2.0**-53
    terms = {0: (1.0, 1.0), 1: (tiny, 1.0), 2: (tiny, 1.0), 3: (-1.0, 1.0)}
    answers = {"ascending k": double(0.0), "descending k, or exact": double(2.0**-52)}
    yield Question("F64-ORDER", "the order of f64", F64, terms, 0.0, answers, numbers)
    terms = {0: (tiny, 1.0), 1: (tiny, 1.0), 2: (1.0, 1.0), 3: (-1.0, 1.0)}
    answers = {"ascending k, or exact": double(2.0**-52), "descending k": double(0.0)}
    yield Question("F64-ORDER-B", "the same upwards", F64, terms, 0.0, answers, numbers)
    terms = {0: (1 + 2.0**-30, 1 - 2.0**-30)}
    answers = {"fused": double(-(2.0**-60)), "product rounded": double(0.0)}
    yield Question("F64-FMA", "are products of f64 exact", F64, terms, -1.0, answers, numbers)
    answers = {
        "0x7ff8000000000000": 0x7FF8 << 48,
        "payload kept": 0x7FF8000000012345,
        "0xfff8000000000000": 0xFFF8 << 48,
        "0x7fffffffffffffff": (1 << 63) - 1,
    }
    nan = Code(0x7FF8000000012345)
    yield Question("F64-NAN", "which NaN of f64", F64, {}, nan, answers, numbers)
    terms = {0: (100.0, 1.0), 31: (-100.0, 1.0)}
    top = (1 << 31) - 1
    answers = {"once, at the end": top - 10, "before": top - 100}
    yield Question("SAT", "when .satfinite clamps", S8, terms, float(top - 10), answers, ALL)
    for f in (34, 35, 36, 37):
        # Groups of 16: +1, 2^-f, -1; the small one is left where F is at least f.
        terms = {0: (1.0, 1.0), 16: (1.0, 1.0), 32: (-1.0, 1.0)}
        answers = {f"F is at least {f}": bits32(2.0**-f), f"F is below {f}": 0}
        yield Question(f"MXF4-{f}", "F of fp4 kinds", MXF4, terms, 0.0, answers, RTX, (0, -f, 0, 0))


def scalars() -> Iterator[ScalarQuestion]:
    """Instructions of single lanes whose bits the ISA leaves open."""
    operands = {"h1": 0x7FF7, "h2": 0x3C00, "h3": 0x3C00}
    line = "fma.rn.oob.f16 %h0, %h1, %h2, %h3; cvt.u32.u16 %r0, %h0"
    answers = {"yes": 0, "no": 0x7FFF}
    yield ScalarQuestion("OOB", "is 0x7ff7 the NaN of fma.oob", line, operands, answers, NEW)
    operands = {"h1": 0x3C00, "h2": 0x3C00, "h3": 0x7FF7}
    yield ScalarQuestion("OOB-C", "does fma.oob look at c", line, operands, answers, NEW)
    line = "cvt.rn.satfinite.s2f6x2.f32 %h0, %r1, %r2; cvt.u32.u16 %r0, %h0"
    operands = {"r1": bits32(-2.0), "r2": bits32(-5.0)}
    answers = {"-127/64": 0x8181, "-2": 0x8080}
    yield ScalarQuestion("S2F6", "the least s2f6", line, operands, answers, (*BLACKWELL, *RTX))
    line = "div.approx.f32 %r0, %r1, %r2"
    operands = {"r1": bits32(4.0), "r2": bits32(2.0**127)}
    answers = {"0, as the ISA says": 0, "the quotient": bits32(2.0**-125)}
    yield ScalarQuestion("DIV", "div.approx by 2^127", line, operands, answers, ALL)
    # Which byte of rbits rounds which value: 1.25 goes up to 1.5 from half of its range on.
    line = "cvt.rs.satfinite.e2m1x4.f32 %h0, {%r1, %r1, %r1, %r1}, %r2; cvt.u32.u16 %r0, %h0"
    for byte in range(4):
        operands = {"r1": bits32(1.25), "r2": 0xFF << (8 * byte)}
        answers = {f"result {place}": 0x2222 + (1 << 4 * place) for place in range(4)}
        yield ScalarQuestion(
            f"RS4-{byte}", f"which e2m1 takes byte {byte}", line, operands, answers, (100, 103, 107)
        )
    # And in which order of its bits: half a step goes up with the highest bit.
    line = "cvt.rs.satfinite.e4m3x4.f32 %r0, {%r1, %r1, %r1, %r1}, %r2"
    operands = {"r1": bits32(1.0 + 2.0**-4), "r2": 0x80808080}
    answers = {"all straight": 0x39393939, "odd ones reversed": 0x38393839}
    yield ScalarQuestion(
        "RS8", "is a byte read backwards", line, operands, answers, (100, 103, 107)
    )


def questions() -> tuple[Question, ...]:
    """All questions to tensor cores."""
    return (*half_precision(), *steps(), *eight_bit(), *others())


# -- answers ---------------------------------------------------------------------------------------
# Asks the open questions of `questions` on an emulator or a GPU.


@dataclass(frozen=True)
class Answer:
    """What a machine gave. `meaning`: of the answers that were expected, or None."""

    name: str
    asks: str
    bits: int
    meaning: str | None

    @property
    def text(self) -> str:
        return self.meaning or f"something else: {self.bits:#x}"


@per_table
def instructions(target: str) -> dict[str, Instruction]:
    """What the table has on a target, by mnemonic."""
    return {each.mnemonic: each for each in isa.instructions(target=target)}


def ask(target: str, run: Runner) -> list[Answer]:
    """The answers to every question that `target` (`sm_90a`) has the instructions for."""
    machine = number(target)
    by_instruction: dict[str, list[Question]] = defaultdict(list)
    for question in questions():
        if machine in question.numbers and question.mnemonic in instructions(target):
            by_instruction[question.mnemonic].append(question)
    found = [
        answer
        for mnemonic, asked in by_instruction.items()
        for answer in _ask(instructions(target)[mnemonic], asked, target, run)
    ]
    return found + [_ask_scalar(q, target, run) for q in scalars() if machine in q.numbers]


def _ask(instruction: Instruction, asked: list[Question], target: str, run: Runner) -> list[Answer]:
    """One launch, one case for each question."""
    names = parameters(instruction)
    chunk = instruction.operands["e"].chunk if "e" in instruction.operands else 0
    words: dict[str, Words] = {}
    for name in names:
        operand = instruction.operands[name]
        if name == "d":
            dtype = np.uint64 if operand.registers.type.endswith("64") else np.uint32
            lanes = View.of(instruction, "d").lanes
            words[name] = np.zeros((len(asked), lanes, operand.registers.count), dtype)
            continue
        codes = np.zeros((len(asked), *operand.shape), np.uint64)
        for case, question in enumerate(asked):
            _fill(codes[case], name, operand.element, question, chunk)
        if operand.registers.cls == "descriptor":
            words[name] = code_image(operand, codes.swapaxes(1, 2) if name == "b" else codes)
        else:
            words[name] = pack(View.of(instruction, name), codes, 4 if name == "e" else 0)
    ptx = emit_ptx(instruction, target, (instruction.variants or ("registers",))[0])
    run(ptx, target, len(asked), instruction.lanes, [words[name] for name in names])
    results = unpack(View.of(instruction, "d"), words["d"]).reshape(len(asked), -1)
    return [_answer(q, each) for q, each in zip(asked, results, strict=True)]


def _fill(codes: Codes, name: str, element: str, question: Question, chunk: int) -> None:
    """One operand of one question: [row, column] (B: [k, column]).

    `chunk`: columns of A that one nibble of metadata describes, 0 where A is dense.
    """
    match name:
        case "a":
            for k, (a, _) in question.terms.items():
                codes[:, k] = code_of(element, a)
        case "b":
            # A sparse A keeps the first two (or the first) of each chunk; its metadata says so.
            kept = chunk // 2
            for k, (_, b) in question.terms.items():
                at = k // kept * chunk + k % kept if chunk else k
                codes[at] = code_of(element, b)
        case "c":
            codes[...] = code_of(element, question.c)
        case "e":
            codes[...] = 4
        case "sfa":
            codes[...] = [127 + e for e in question.scales]
        case "sfb":
            codes[...] = 127
        case _:
            raise FragirError(f"no question has an operand {name}")


def _answer(question: Question | ScalarQuestion, results: Codes) -> Answer:
    bits = int(results[0])
    meaning = next((text for text, value in question.answers.items() if value == bits), None)
    if (results != results[0]).any():
        raise FragirError(f"{question.name}: the elements of D differ although all are alike")
    return Answer(question.name, question.asks, bits, meaning)


def _ask_scalar(question: ScalarQuestion, target: str, run: Runner) -> Answer:
    widths = {"h": 16, "r": 32}
    loads = "".join(
        f"\tmov.b{widths[name[0]]} %{name}, {value};\n" for name, value in question.operands.items()
    )
    opcodes = [part.split()[0] for part in question.line.split("; ")]
    ptx = (
        f".version {module_version(opcodes, target)}\n.target {target}\n.address_size 64\n"
        ".visible .entry probe(.param .u64 out)\n{\n"
        "\t.reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %q;\n"
        f"{loads}\t{question.line};\n"
        "\tld.param.u64 %q, [out]; st.global.b32 [%q], %r0;\n\tret;\n}\n"
    )
    out = np.zeros(1, np.uint32)
    run(ptx, target, 1, 1, [out])
    return _answer(question, out.astype(np.uint64))
