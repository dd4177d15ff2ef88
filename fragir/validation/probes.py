"""Probes of one instruction: its emitted kernel on matrices whose product is known exactly.

The table says where each element goes into registers or shared memory, the emulator or the GPU
computes, and the table says where each element of D comes out. A wrong row of the table, or a
wrong instruction, puts an element elsewhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice

import numpy as np

from fragir.errors import FragirError
from fragir.isa import Instruction, Operand
from fragir.isa.canonical import canonical
from fragir.isa.emit import emit_ptx, parameters
from fragir.isa.model import BITS
from fragir.isa.query import View
from fragir.validation import products
from fragir.validation.products import Codes, Ints, Matrices, Words, encode, pack, unpack

# Runs a kernel: PTX, target, blocks, threads a block, arguments, which are written in place.
Runner = Callable[[str, str, int, int, Sequence[Words]], None]
COPIES = ("ldmatrix", "stmatrix", "movmatrix")
_BATCH_BYTES = 1 << 24
_IMAGE = 512


@dataclass
class ProbeOutcome:
    """What the probes of one instruction gave: cases by kind, and how many differ."""

    ptx_hash: str
    cases: dict[str, int] = field(default_factory=dict[str, int])
    mismatches: int = 0
    first: str | None = None

    def count(self, kind: str, wrong: Sequence[bool], what: Callable[[int], str]) -> None:
        """Adds cases of a kind, of which some are `wrong`."""
        self.cases[kind] = self.cases.get(kind, 0) + len(wrong)
        bad = [i for i, differs in enumerate(wrong) if differs]
        self.mismatches += len(bad)
        if bad and self.first is None:
            self.first = f"{kind}: {what(bad[0])}"


def can_probe(instruction: Instruction) -> bool:
    """Whether the probes know the instruction: all but tensor memory's."""
    return not instruction.refused and not instruction.family.startswith("tcgen05")


def probe(
    instruction: Instruction,
    variant: str,
    target: str,
    run: Runner,
    *,
    against: Runner | None = None,
    cases: int = 32,
    seed: int = 0,
) -> ProbeOutcome:
    """All probes of an instruction on `run`: one-hot and random, against the exact product.

    `variant` is where A comes from. With `against` also registers full of random bits, whose
    results on `run` and `against` must agree to the bit.
    """
    ptx = emit_ptx(instruction, target, variant)
    outcome = ProbeOutcome(hashlib.sha256(ptx.encode()).hexdigest())
    bits = against is not None
    for launch in launches(instruction, variant, cases=cases, seed=seed, bits=bits):
        copies = [words.copy() for words in launch.arguments] if launch.judge is None else []
        run(ptx, target, launch.cases, instruction.lanes, launch.arguments)
        if launch.judge is not None:
            outcome.count(launch.kind, *launch.judge())
        elif against is not None:
            against(ptx, target, launch.cases, instruction.lanes, copies)
            outcome.count(
                launch.kind, *_judge_results(launch.arguments[launch.result], copies[launch.result])
            )
    return outcome


Judgement = tuple[Sequence[bool], Callable[[int], str]]
"""Which cases are wrong, and in words what is wrong with one of them."""


@dataclass(frozen=True)
class ProbeLaunch:
    """The arguments of one launch of a probe kernel, a block a case; the kernel writes `result`.

    `judge` says what is wrong then; without it two machines are to agree.
    """

    kind: str
    cases: int
    arguments: list[Words]
    result: int
    judge: Callable[[], Judgement] | None = None


def launches(
    instruction: Instruction,
    variant: str,
    *,
    cases: int,
    seed: int = 0,
    hot: int | None = None,
    bits: bool = True,
) -> Iterator[ProbeLaunch]:
    """The launches of a probe: `onehot`, `random` and, where asked for, `bits`.

    The last two have `cases` cases each.

    `hot`: the most cases of `onehot`, evenly spread over all that there are.
    """
    kernel = _Kernel(instruction, variant)
    if instruction.family in COPIES:
        yield _copy_launch(kernel, cases, seed)
    else:
        for chosen in _batches(instruction, hot):
            made = products.one_hot_matrices(instruction, chosen)
            yield _product_launch(kernel, "onehot", made)
        yield _product_launch(kernel, "random", products.random(instruction, cases, seed))
    if bits:
        yield _bits_launch(kernel, cases, seed)


def _batches(instruction: Instruction, most: int | None) -> Iterator[list[products.Ones]]:
    """The one-hot cases, or `most` of them, as many at a time as fit in memory."""
    d = instruction.operands["d"].registers
    size = 8 * instruction.lanes * d.count
    found = products.one_hot(instruction)
    if most is not None:
        found = islice(found, 0, None, max(1, -(-products.one_hot_count(instruction) // most)))
    while batch := list(islice(found, max(1, min(1024, _BATCH_BYTES // size)))):
        yield batch


@dataclass(frozen=True)
class _Kernel:
    """The probe kernel of an instruction."""

    instruction: Instruction
    variant: str

    @property
    def names(self) -> tuple[str, ...]:
        return parameters(self.instruction, self.variant)

    def view(self, name: str) -> View:
        return _view(self.instruction, name)


@cache
def _view(instruction: Instruction, name: str) -> View:
    return View.of(instruction, name)


def _product_launch(kernel: _Kernel, kind: str, matrices: Matrices) -> ProbeLaunch:
    """Matrices whose product is known exactly."""
    instruction = kernel.instruction
    cases = len(matrices["c"])
    arguments: list[Words] = []
    for name in kernel.names:
        operand = instruction.operands[name]
        if name == "d":
            view = kernel.view("d")
            dtype = np.uint64 if operand.registers.type.endswith("64") else np.uint32
            arguments.append(np.zeros((cases, view.lanes, operand.registers.count), dtype))
        elif operand.registers.cls == "descriptor":
            m = matrices["b" if name == "b" else "a"]
            arguments.append(image(operand, m.swapaxes(1, 2) if name == "b" else m))
        else:
            codes = encode(operand.element, matrices[name])
            arguments.append(pack(kernel.view(name), codes, 4 if name == "e" else 0))
    at = kernel.names.index("d")

    def judge() -> Judgement:
        result = unpack(kernel.view("d"), arguments[at])
        expected = encode(instruction.types.d, products.product(instruction, matrices))
        differ = (_unsigned_zero(result, instruction) != expected).reshape(cases, -1)

        def describe(case: int) -> str:
            index = np.unravel_index(int(np.argmax(differ[case])), expected.shape[1:])
            place = tuple(int(x) for x in index)
            found, wanted = (int(x[(case, *place)]) for x in (result, expected))
            return (
                f"D{place} is {found:#x}, not {wanted:#x} in case {case};"
                f" {int(differ[case].sum())} elements differ"
            )

        return differ.any(axis=1).tolist(), describe

    return ProbeLaunch(kind, cases, arguments, at, judge)


def _unsigned_zero(codes: Codes, instruction: Instruction) -> Codes:
    """-0 of a float as 0: integers do not say the sign of a zero, which rounding down changes."""
    sign = {"f16": 1 << 15, "f32": 1 << 31, "f64": 1 << 63}.get(instruction.types.d)
    return codes if sign is None else np.where(codes == np.uint64(sign), np.uint64(0), codes)


def image(operand: Operand, values: Ints) -> Words:
    """[case, byte]: a K-major matrix (mn, k) in shared memory without swizzle, as the table has it.

    As 32-bit words, which is how the probe kernel copies them.
    """
    return code_image(operand, encode(operand.element, values))


def code_image(operand: Operand, codes: Codes) -> Words:
    """The same from the elements' codes."""
    bits = BITS[operand.element]
    cases, rows, k = codes.shape
    if bits < 8:
        per = 8 // bits
        places = np.arange(per, dtype=np.uint64) * np.uint64(bits)
        grouped = codes.reshape(cases, rows, k // per, per) << places
        codes, k, bits = np.bitwise_or.reduce(grouped, axis=-1), k // per, 8
    layout = canonical("b8" if BITS[operand.element] < 8 else operand.element, "k", 0, rows, k)
    offsets = np.array([[layout.offset(r, c) for c in range(k)] for r in range(rows)])
    out = np.zeros((cases, rows * k * bits // 8), np.uint8)
    for byte in range(bits // 8):
        out[:, offsets + byte] = (codes >> np.uint64(8 * byte)).astype(np.uint8)
    return out.view(np.uint32)


# Matrix copies -----------------------------------------------------------------------------------


def _copy_launch(kernel: _Kernel, cases: int, seed: int) -> ProbeLaunch:
    """Random elements through ldmatrix, stmatrix or movmatrix, every one where the table says."""
    rng = np.random.default_rng(seed)
    instruction = kernel.instruction
    if instruction.family == "movmatrix":
        moved: Codes = rng.integers(0, 1 << 16, (cases, 8, 8)).astype(np.uint64)
        given, found = pack(kernel.view("a"), moved), np.zeros((cases, 32, 1), np.uint32)
        wanted: Words = moved
        arguments = [given if name == "a" else found for name in kernel.names]
        result = kernel.names.index("d")
    else:
        view = kernel.view("registers")
        bits = _stored_bits(instruction)
        codes: Codes = rng.integers(0, 1 << bits, (cases, *view.shape)).astype(np.uint64)
        memory = _rows(kernel, codes, bits).view(np.uint32)
        registers = pack(view, codes)
        given, wanted = memory, registers
        if instruction.family == "stmatrix":
            given, wanted = registers, memory
        found = np.zeros_like(wanted)
        arguments, result = [given, found], 1

    def judge() -> Judgement:
        held = unpack(kernel.view("d"), found) if instruction.family == "movmatrix" else found
        differ = (held != wanted).reshape(cases, -1)
        return differ.any(axis=1).tolist(), lambda case: f"case {case}"

    return ProbeLaunch("random", cases, arguments, result, judge)


def _stored_bits(instruction: Instruction) -> int:
    """Bits of an element in a row in memory."""
    packed = {"b8x16.b6x16_p32": 6, "b8x16.b4x16_p64": 4}
    element = instruction.types.a
    return packed.get(element, BITS[element])


def _rows(
    kernel: _Kernel, codes: Codes, bits: int
) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    """[case, byte] of shared memory: the row at a lane's address is 16 bytes, lane after lane."""
    cases, rows, cols, matrices = codes.shape
    memory = np.zeros((cases, _IMAGE), np.uint8)
    addresses = kernel.view("addresses")
    for row in range(rows):
        for matrix in range(matrices):
            start = 16 * addresses.holders((row, 0, matrix))[0].lane
            for col in range(cols):
                value = codes[:, row, col, matrix]
                byte, bit = divmod(col * bits, 8)
                shifted = value << np.uint64(bit)
                for extra in range(-(-(bit + bits) // 8)):
                    part = (shifted >> np.uint64(8 * extra)).astype(np.uint8)
                    memory[:, start + byte + extra] |= part
    return memory


# Bits --------------------------------------------------------------------------------------------


def _bits_launch(kernel: _Kernel, cases: int, seed: int) -> ProbeLaunch:
    """Random bits in every operand; two machines must agree on every bit of the result.

    Metadata is legal. Half of the cases have numbers of moderate size instead of raw bits, so that
    not every sum is a NaN.
    """
    instruction = kernel.instruction
    rng = np.random.default_rng(seed + 1)
    arguments: list[Words] = []
    result = 0
    for index, name in enumerate(kernel.names):
        if name == "shared":
            words = rng.integers(0, 1 << 32, (cases, _IMAGE // 4)).astype(np.uint32)
            result = index if instruction.family == "stmatrix" else result
            arguments.append(np.zeros_like(words) if instruction.family == "stmatrix" else words)
            continue
        operand = instruction.operands[name]
        if name in ("d", "registers") and instruction.family != "stmatrix":
            result = index
        arguments.append(_random_words(kernel, operand, cases, rng))
    arguments[result][...] = 0
    return ProbeLaunch("bits", cases, arguments, result)


def _judge_results(mine: Words, theirs: Words) -> Judgement:
    """Whether two machines agree on the result of each case."""
    cases = len(mine)
    differ = (mine != theirs).reshape(cases, -1)

    def describe(case: int) -> str:
        at = int(np.argmax(differ[case]))
        one, other = (int(x.reshape(cases, -1)[case, at]) for x in (mine, theirs))
        return f"word {at} of case {case} is {one:#x} on the GPU, {other:#x} on the emulator"

    return differ.any(axis=1).tolist(), describe


def _random_words(kernel: _Kernel, operand: Operand, cases: int, rng: np.random.Generator) -> Words:
    """Random contents of an operand, [case, lane, register] or [case, word of its image]."""
    registers = operand.registers
    dtype = np.uint64 if registers.type.endswith("64") else np.uint32
    if registers.cls == "descriptor":
        rows, cols = operand.shape
        size = rows * cols * BITS[operand.element] // 32
        shape, dtype = (cases, size), np.uint32
    else:
        shape = (cases, kernel.instruction.lanes, registers.count)
    if operand.name == "e":
        made = products.random(kernel.instruction, cases, int(rng.integers(1 << 30)))["e"]
        return pack(kernel.view("e"), encode("b4", made), 4)
    high = (1 << 64) - 1 if dtype == np.uint64 else (1 << 32) - 1
    words: Words = rng.integers(0, high, shape, dtype=dtype, endpoint=True)
    if operand.element in ("f32", "tf32", "f64"):
        numbers = rng.standard_normal(words[::2].shape)
        moderate = (
            numbers.view(np.uint64) if dtype == np.uint64 else numbers.astype("f4").view("u4")
        )
        words[::2] = moderate
    elif operand.element in ("f16", "bf16"):
        numbers = rng.standard_normal((*words[::2].shape, 2)).astype("f4")
        halves = (
            numbers.astype(np.float16).view(np.uint16)
            if operand.element == "f16"
            else (numbers.view(np.uint32) >> 16).astype(np.uint16)
        )
        words[::2] = np.ascontiguousarray(halves).view(np.uint32)[..., 0]
    elif operand.element in ("e4m3", "e5m2"):
        words[::2] &= dtype(0xBFBFBFBF)  # below 2 for e5m2: the second highest exponent bit is 0
    return words


def emulator_runner(
    ptx: str, target: str, blocks: int, threads: int, words: Sequence[Words]
) -> None:
    """Runs a probe kernel on the emulator."""
    from fragir.emulator import run

    run(ptx, "probe", grid=(blocks, 1, 1), block=(threads, 1, 1), arguments=words, target=target)


def gpu_runner(ptx: str, target: str, blocks: int, threads: int, words: Sequence[Words]) -> None:
    """Runs a probe kernel on the GPU."""
    from fragir.toolchain import driver, ptxas

    cubin = ptxas.assemble(ptx, target).cubin
    driver.launch(cubin, "probe", grid=(blocks,), block=(threads,), arguments=list(words))


def gpu_target(name: str) -> str:
    """The target to compile for on a GPU called `sm_90`: with its own features where it has any."""
    from fragir.isa.targets import TARGETS, with_features

    target = with_features(name)
    if target not in TARGETS:
        raise FragirError(f"the GPU is an {name}, which this version does not know")
    return target
