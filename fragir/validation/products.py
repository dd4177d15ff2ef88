"""Exact products of small integer matrices, as the instructions form them; and what to multiply.

Everything here is int64 without overflow and knows no lanes and no bits. Arrays have the case as
their first axis.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fragir.isa import Instruction
from fragir.validation.codes import SIGNED, Ints

Matrices = dict[str, Ints]
MAXIMUM = 2**31 - 1

# Legal nibbles of metadata by chunk length: one kept element or pair of two, or two of four.
_NIBBLES = {2: (4, 14), 4: (4, 8, 9, 12, 13, 14), 8: (4, 8, 9, 12, 13, 14)}


def unpacked(a: Ints, e: Ints, chunk: int) -> Ints:
    """The full A of a packed one: nibbles name the kept columns (pairs) of each chunk."""
    cases, rows, kept = a.shape
    full = np.zeros((cases, rows, 2 * kept), np.int64)
    columns: Ints = np.arange(kept, dtype=np.int64)
    at: Ints = 2 * columns // chunk
    nibbles = e[:, :, at]
    inside: Ints
    if chunk == 2:
        inside = np.where(nibbles == 4, 0, 1)
    elif chunk == 4:
        inside = nibbles >> (2 * (columns % 2)) & 3
    else:
        inside = 2 * (nibbles >> (2 * (columns // 2 % 2)) & 3) + columns % 2
    np.put_along_axis(full, chunk * at + inside, a, axis=2)
    return full


def product(instruction: Instruction, m: Matrices) -> Ints:
    """A B + C of every case."""
    a, b, c = m["a"], m["b"], m["c"]
    if "e" in m:
        a = unpacked(a, m["e"], instruction.operands["e"].chunk)
    if "sfa" in m:
        a = a * np.repeat(m["sfa"], instruction.operands["sfa"].chunk, 2)
        b = b * np.repeat(m["sfb"], instruction.operands["sfb"].chunk, 1)
    if a.ndim == 4:
        return np.einsum("cikp,ckjp->cijp", a, b) + c
    if "xor" in instruction.form.flags:
        ones = a.sum(2)[:, :, None] + b.sum(1)[:, None, :]
        return ones - 2 * (a @ b) + c
    result = a @ b + c
    if "satfinite" in instruction.form.flags:
        return np.clip(result, -MAXIMUM - 1, MAXIMUM)
    return result


def zeros(instruction: Instruction, cases: int) -> Matrices:
    """Zero matrices, metadata that is legal, scales of one."""
    made: Matrices = {}
    for name, operand in instruction.operands.items():
        if name in ("d", "a-shared") or not operand.shape:
            continue
        value = {"e": 4, "sfa": 1, "sfb": 1}.get(name, 0)
        made[name] = np.full((cases, *operand.shape), value, np.int64)
    return made


def _values(element: str, most: int) -> tuple[int, int]:
    """Lowest and highest integer to draw."""
    if element == "b1":
        return 0, 1
    return (-most if element in SIGNED else 0), most


def random(instruction: Instruction, cases: int, seed: int) -> Matrices:
    """Integers small enough that every sum is exact; random metadata and scales.

    Of a saturating instruction every second case has C at the ends of its range.
    """
    rng = np.random.default_rng(seed)
    made = zeros(instruction, cases)
    for name in made:
        operand = instruction.operands[name]
        shape = made[name].shape
        if name == "e":
            made[name] = rng.choice(np.array(_NIBBLES[operand.chunk]), shape)
        elif name in ("sfa", "sfb"):
            made[name] = rng.integers(1, 3, shape)
        else:
            low, high = _values(operand.element, 2)
            made[name] = rng.integers(low, high + 1, shape)
    if "satfinite" in instruction.form.flags:
        ends = np.array([-MAXIMUM - 1, MAXIMUM - 1])
        made["c"][::2] = rng.choice(ends, made["c"][::2].shape)
    return made


Ones = tuple[Ints, Ints, Ints, int]


def one_hot(instruction: Instruction) -> Iterator[Ones]:
    """(i, k, j, product) of the ones in A and B, an array each, a case at a time.

    A has ones at the (i, k), B at the (k, j), so that D has them at the (i, j) and nowhere else.
    Together the cases touch every element of A, B and D. One warp's instructions have a single one;
    of wgmma's larger matrices several are done at once that share no row, column or k. Each of
    the four products of m8n8k4 has cases of its own.
    """
    m, n, *rest = instruction.operands["d"].shape
    k = instruction.operands["b"].shape[0]
    products = rest[0] if rest else 1
    together = min(m, n, k) if instruction.warps == 4 else 1
    sides = ((m, k), (n, k), (m, n))
    for side, (along, across) in enumerate(sides):
        for shift in range(across):
            for start in range(0, along, together):
                x = np.arange(start, min(start + together, along))
                y = (x + shift) % across
                other = (x + shift) % (n, m, k)[side]
                i, k_, j = ((x, y, other), (other, y, x), (x, other, y))[side]
                for product_ in range(products):
                    yield i, k_, j, product_


def one_hot_count(instruction: Instruction) -> int:
    """How many cases `one_hot` gives."""
    m, n, *rest = instruction.operands["d"].shape
    k = instruction.operands["b"].shape[0]
    products = rest[0] if rest else 1
    together = min(m, n, k) if instruction.warps == 4 else 1
    sides = ((m, k), (n, k), (m, n))
    return products * sum(-(-along // together) * across for along, across in sides)


def one_hot_matrices(instruction: Instruction, chosen: list[Ones]) -> Matrices:
    """The matrices of some cases of `one_hot`.

    A sparse A has its one where the metadata's first choice, 0 and 1 of four, puts it: only the
    columns that it keeps are reached, the others by the second choice, 2 and 3. b1 with xor counts
    differing bits, so there the expected D is not one-hot; A and B are.
    """
    made = zeros(instruction, len(chosen))
    a, b = made["a"], made["b"]
    for case, (i, k, j, product_) in enumerate(chosen):
        if "e" in made:
            chunk = instruction.operands["e"].chunk
            kept = chunk // 2
            upper = k % chunk >= kept
            made["e"][case, i[upper], k[upper] // chunk] = 14
            a[case, i, k // chunk * kept + k % kept] = 1
        elif a.ndim == 4:
            a[case, i, k, product_] = 1
            b[case, k, j, product_] = 1
            continue
        else:
            a[case, i, k] = 1
        b[case, k, j] = 1
    return made
