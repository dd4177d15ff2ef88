"""Where elements lie: the ISA's formulas, fragments of registers, the metadata of sparse matrices.

The formulas (`maps_data.py`) are a small language: definitions `name = expression`, where a
definition may have alternatives, each with the condition under which it holds:

    row =      groupID            for ai where  0 <= i < 2 || 4 <= i < 6
               groupID + 8        Otherwise

`%laneid` is the lane (in wgmma's formulas the thread of the warpgroup is `tid`), `i` the element.
Conditions are `if ...`, `for ai where ...`, `for a0 and a1`, `otherwise`, alone or one after the
other; a range may be written `i = {0,..,7}` or listed.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fragir.emulator.numbers.types import U32, Array, distinct
from fragir.emulator.tensor_cores import maps_data
from fragir.emulator.tensor_cores.forms import RegisterWords
from fragir.errors import FragirError

Ints: TypeAlias = npt.NDArray[np.int64]
_Array: TypeAlias = Array


@dataclass(frozen=True, slots=True)
class Alternative:
    """One right-hand side and the conditions (all must hold) under which it is the value."""

    expression: ast.expr
    conditions: tuple[ast.expr, ...]


@dataclass(frozen=True)
class Formula:
    """One operand's map as the ISA writes it.

    `section`: where in the PTX ISA. `elements`: elements a lane holds. `figure`: true where the
    page has only a figure and the formula is ours. `errata`: the corrections made to the text.
    """

    section: str
    shape: str
    types: tuple[str, ...]
    operand: str
    elements: int
    text: str
    figure: bool = False
    errata: tuple[tuple[str, str], ...] = ()
    definitions: Mapping[str, tuple[Alternative, ...]] = field(
        repr=False, default_factory=dict[str, tuple[Alternative, ...]]
    )

    def evaluate(self, name: str, lanes: int = 32, **constants: int) -> Ints:
        """The value of `name` (`row`, `col`, ...) for every element and lane: `[elements, lanes]`.

        Raises FragirError where a name is not defined or no alternative covers an element.
        """
        lane = np.arange(lanes, dtype=np.int64)[None, :]
        element = np.arange(self.elements, dtype=np.int64)[:, None]
        known = {"laneid": lane, "tid": lane, "i": element}
        known |= {key: np.asarray(value, np.int64) for key, value in constants.items()}
        value = _Evaluator(self, known).name(name)
        return np.broadcast_to(value, (self.elements, lanes)).astype(np.int64)

    def has(self, name: str) -> bool:
        return name in self.definitions


class _Evaluator:
    """Evaluates names of one formula over arrays of elements and lanes."""

    def __init__(self, formula: Formula, known: Mapping[str, Ints]) -> None:
        self.formula = formula
        self.known = known

    def error(self, what: str) -> FragirError:
        at = f"{self.formula.shape} operand {self.formula.operand} (PTX ISA {self.formula.section})"
        return FragirError(f"in the fragment formula of {at}: {what}")

    def name(self, name: str) -> _Array:
        if name in self.known:
            return self.known[name]
        if name not in self.formula.definitions:
            raise self.error(f"`{name}` is not defined")
        value: _Array = np.zeros((1, 1), np.int64)
        open_: _Array = np.ones((1, 1), np.bool_)
        for alternative in self.formula.definitions[name]:
            holds = open_
            for condition in alternative.conditions:
                holds = holds & self.value(condition)
            value = np.where(holds, self.value(alternative.expression), value)
            open_ = open_ & ~holds
        if open_.any():
            raise self.error(f"no alternative of `{name}` holds for every element")
        return value

    def value(self, node: ast.expr) -> _Array:
        match node:
            case ast.Constant(value=int(number)):
                return np.asarray(number, np.int64)
            case ast.Name(id=name):
                return self.name(name)
            case ast.Set(elts=elements):
                return np.array([int(self.value(each)) for each in elements], np.int64)
            case ast.BinOp(left=left, op=op, right=right):
                return self.binary(op, self.value(left), self.value(right))
            case ast.BoolOp(op=op, values=values):
                parts = [self.value(each) for each in values]
                join = np.logical_or if isinstance(op, ast.Or) else np.logical_and
                result = parts[0]
                for part in parts[1:]:
                    result = join(result, part)
                return result
            case ast.Compare(left=left, ops=ops, comparators=comparators):
                result = np.asarray(True)
                before = self.value(left)
                for op, right in zip(ops, comparators, strict=True):
                    after = self.value(right)
                    result = result & self.compare(op, before, after)
                    before = after
                return result
            case _:
                raise self.error(f"cannot evaluate `{ast.unparse(node)}`")

    def binary(self, op: ast.operator, left: _Array, right: _Array) -> _Array:
        match op:
            case ast.Add():
                return left + right
            case ast.Sub():
                return left - right
            case ast.Mult():
                return left * right
            case ast.Mod():
                return left % right
            case ast.FloorDiv():
                return left // right
            case ast.RShift():
                return left >> right
            case ast.LShift():
                return left << right
            case ast.BitAnd():
                return left & right
            case _:
                raise self.error(f"unknown operator {type(op).__name__}")

    def compare(self, op: ast.cmpop, left: _Array, right: _Array) -> _Array:
        match op:
            case ast.Lt():
                return left < right
            case ast.LtE():
                return left <= right
            case ast.Gt():
                return left > right
            case ast.GtE():
                return left >= right
            case ast.Eq() | ast.In():
                return np.isin(left, right) if right.ndim == 1 else left == right
            case _:
                raise self.error(f"unknown comparison {type(op).__name__}")


_HEADING = re.compile(r"\[([\d.]+)( figure)?\] (\S+) ([^:]+) : (\S+) (\d+)")
_DEFINITION = re.compile(r"\s*(?:where\s+)?([A-Za-z_]\w*)\s*=(?!=)\s*(.*)")
_CONDITION = re.compile(r"\b(for|if|otherwise)\b", re.IGNORECASE)
_RANGE = re.compile(r"\{\s*(\d+)\s*,\s*\.{2,3}\s*,\s*(\d+)\s*\}")


def _expression(text: str) -> ast.expr:
    text = text.replace("%laneid", "laneid").replace("||", " or ").replace("&&", " and ")
    text = _RANGE.sub(
        lambda m: "{" + ",".join(map(str, range(int(m[1]), int(m[2]) + 1))) + "}", text
    )
    text = re.sub(r"(?<![<>=!])=(?!=)", "==", text)
    return ast.parse(text.strip(), mode="eval").body


def _conditions(text: str) -> tuple[ast.expr, ...]:
    """`for ai where i < 4 if %laneid < 16` -> the conditions that must all hold."""
    result: list[ast.expr] = []
    for clause in re.split(r"(?=\b(?:for|if|otherwise)\b)", text, flags=re.IGNORECASE):
        word, _, rest = clause.strip().partition(" ")
        match word.lower():
            case "" | "otherwise":
                continue
            case "if":
                result.append(_expression(rest))
            case _:  # for ai where ..., for a0 and a1
                names, where, condition = rest.partition("where")
                if where:
                    result.append(_expression(condition))
                else:
                    numbers = re.findall(r"[abcd](\d+)", names)
                    result.append(_expression("i in {" + ",".join(numbers) + "}"))
    return tuple(result)


def _read(heading: re.Match[str], lines: list[str]) -> Formula:
    errata: list[tuple[str, str]] = []
    while lines and lines[0].startswith("erratum:"):
        wrong, right = lines.pop(0).removeprefix("erratum:").split("=>")
        errata.append((wrong.strip(), right.strip()))
    definitions: dict[str, tuple[Alternative, ...]] = {}
    name = ""
    for line in lines:
        found = _DEFINITION.match(line)
        if found:
            name, line = found[1], found[2]
        head = _CONDITION.search(line)
        value = line[: head.start()].strip() if head else line.strip()
        value = next((right for wrong, right in errata if value == wrong), value)
        tail = line[head.start() :] if head else ""
        alternative = Alternative(_expression(value), _conditions(tail))
        definitions[name] = (*definitions.get(name, ()), alternative)
    return Formula(
        section=heading[1],
        figure=bool(heading[2]),
        shape=heading[3],
        types=tuple(heading[4].split()),
        operand=heading[5],
        elements=int(heading[6]),
        text="\n".join(lines),
        errata=tuple(errata),
        definitions=definitions,
    )


@cache
def formulas(part: str) -> tuple[Formula, ...]:
    """Every formula of one part of the data: `DENSE`, `SPARSE`, `WGMMA` or `MATRIX`."""
    text: str = getattr(maps_data, part)
    result: list[Formula] = []
    for block in re.split(r"\n(?=\[)", text.strip()):
        first, *lines = [line for line in block.splitlines() if line.strip()]
        heading = _HEADING.fullmatch(first)
        if heading is None:
            raise FragirError(f"not a heading of a fragment formula: {first}")
        result.append(_read(heading, lines))
    return tuple(result)


@cache
def formula(part: str, shape: str, type_: str, operand: str) -> Formula:
    """The formula of one operand; raises FragirError where the ISA has none."""
    for each in formulas(part):
        if each.shape == shape and type_ in each.types and each.operand == operand:
            return each
    raise FragirError(f"the PTX ISA has no {part.lower()} fragment {shape} {type_} {operand}")


# -- fragments -------------------------------------------------------------------------------------
# From registers `[n, W, lanes]` to matrix elements `[..., W]` and back.

Codes = npt.NDArray[np.unsignedinteger]


class Fragment:
    """Where each element of a matrix lies in the registers of a warp (or warpgroup).

    `coordinates`: one array `[elements, lanes]` per dimension; `extents`: the matrix's extents,
    in the same order. `bits`: of one element; elements fill a register from its low bits up.
    Raises FragirError where the coordinates do not name every element exactly once.
    """

    def __init__(
        self, coordinates: Sequence[Ints], extents: tuple[int, ...], bits: int, width: int = 32
    ) -> None:
        elements, self.lanes = coordinates[0].shape
        self.extents = extents
        self.width = width
        self.per = width // bits if bits < width else 1
        self.count = -(-elements // self.per)
        self.mask = (1 << bits) - 1
        self.bits = bits
        place = np.ravel_multi_index(tuple(coordinates), extents)  # [elements, lanes]
        size = math.prod(extents)
        if place.size != size or distinct(place).size != size:
            raise FragirError(f"a fragment of extents {extents} is no one-to-one map")
        element, lane = np.indices(place.shape)
        self.word = np.empty(size, np.intp)  # which word (register * lanes + lane) holds it
        self.word[place] = element // self.per * self.lanes + lane
        dtype = np.uint64 if width == 64 else np.uint32
        self.shift = np.empty(size, dtype)
        self.shift[place] = element % self.per * bits
        # Where the parts of a word come from: [per][count * lanes].
        parts = place.reshape(self.count, self.per, self.lanes).transpose(1, 0, 2)
        self.parts = [np.ascontiguousarray(part).reshape(-1) for part in parts]

    def load(self, registers: RegisterWords) -> Codes:
        """Registers `[count, W, lanes]` -> elements' bits `[*extents, W]`."""
        count, warps, lanes = registers.shape
        words = registers.transpose(0, 2, 1).reshape(count * lanes, warps)
        codes = words[self.word]
        if self.per > 1:
            codes >>= self.shift[:, None]
            codes &= codes.dtype.type(self.mask)
        return codes.reshape(*self.extents, warps)

    def store(self, codes: Codes) -> RegisterWords:
        """Elements' bits `[*extents, W]` -> registers `[count, W, lanes]`."""
        warps = codes.shape[-1]
        flat = codes.reshape(-1, warps)
        words = flat[self.parts[0]]
        for number, part in enumerate(self.parts[1:], 1):
            words |= flat[part] << words.dtype.type(number * self.bits)
        return np.ascontiguousarray(words.reshape(self.count, self.lanes, warps).transpose(0, 2, 1))


def fragment(
    formula: Formula,
    names: Sequence[str],
    extents: tuple[int, ...],
    bits: int,
    *,
    width: int = 32,
    lanes: int = 32,
    elements: int | None = None,
) -> Fragment:
    """The fragment whose dimensions are the formula's `names`, e.g. `("col", "row")`.

    `elements`: only so many of the formula's elements (wgmma accumulators of smaller N).
    """
    return Fragment(
        [formula.evaluate(name, lanes)[:elements] for name in names], extents, bits, width
    )


def packed_column(formula: Formula, per: int) -> Ints:
    """Column among the kept elements of a sparse A, from the ISA's `firstcol`: `[elements, 32]`.

    A register's elements are the kept ones, in order, of columns firstcol to lastcol, and half of
    all columns are kept.
    """
    first = formula.evaluate("firstcol")
    return first // 2 + np.arange(formula.elements)[:, None] % per


# -- sparsity --------------------------------------------------------------------------------------
# Which columns of the full A the kept elements stand for.


@dataclass(frozen=True, slots=True)
class Granularity:
    """`chunk` adjacent columns keep `kept` groups of `group` adjacent elements.

    Per chunk the metadata is one nibble: bits 1:0 and 3:2 are the indices of the first and second
    kept group (PTX ISA 9.7.14.6.1).
    """

    chunk: int
    kept: int
    group: int


@cache
def granularity(element: str, packed: bool) -> Granularity:
    """`packed`: two or more 4-bit elements a byte (s4, u4, and e2m1 of mxf4 kinds)."""
    if element == "tf32":
        return Granularity(2, 1, 1)
    if packed:
        return Granularity(8, 2, 2)
    return Granularity(4, 2, 1)


class Metadata:
    """Reads the metadata register of an instruction: `formula` is its `e` entry."""

    def __init__(
        self, formula: Formula, how: Granularity, rows: int, columns: int, lanes: int = 32
    ) -> None:
        self.formula, self.how, self.rows, self.lanes = formula, how, rows, lanes
        self.chunks = columns // how.chunk
        self.kept = columns // 2
        #: Of so many instructions the lanes' registers hold the nibbles, 8 a register.
        self.selectors = 8 * lanes // (rows * self.chunks)
        self.places: dict[int, tuple[Ints, Ints]] = {}

    def place(self, selector: int) -> tuple[Ints, Ints]:
        """Lane and nibble of each [row, chunk]."""
        if selector not in self.places:
            row, chunk, selected = (
                self.formula.evaluate(name, self.lanes, F=selector)
                for name in ("row", "chunk", "selected")
            )
            nibble, lane = np.nonzero(selected)
            at = (row[nibble, lane], chunk[nibble, lane])
            lanes = np.full((self.rows, self.chunks), -1, np.int64)
            nibbles = np.zeros((self.rows, self.chunks), np.int64)
            lanes[at], nibbles[at] = lane, nibble
            assert (lanes >= 0).all(), "a chunk without metadata"
            self.places[selector] = lanes, nibbles
        return self.places[selector]

    def columns(self, e: U32, selector: int) -> Ints:
        """Metadata `[W, lanes]` -> the full column of every kept element: `[K/2, rows, W]`."""
        lane, nibble = self.place(selector)
        index = e[:, lane].astype(np.int64) >> (4 * nibble) & 0xF  # [W, rows, chunks]
        base = np.arange(self.chunks) * self.how.chunk
        # A 1:2 chunk's nibble (0b0100 or 0b1110) spans two 2-bit columns: the index is bit 1.
        choices = (
            [index >> 1 & 1]
            if self.how.kept == 1
            else [(index & 3) * self.how.group, (index >> 2) * self.how.group]
        )
        kept = np.stack(
            [base + choice + part for choice in choices for part in range(self.how.group)], -1
        )  # [W, rows, chunks, kept * group]
        return np.moveaxis(kept.reshape(*kept.shape[:2], self.kept), (0, 1, 2), (2, 1, 0))
