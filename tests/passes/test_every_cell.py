"""Every operation of arith and math on every type: assembled, executed, held against the reference.

An operation is written as passes write it on a tile's fragment and on a scalar, with values and
with a constant. What there is no instruction for stands in `Cell.refused`, and is refused.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from xdsl.dialects import arith, func, math
from xdsl.dialects.builtin import (
    FloatAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    i64,
)
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from fragir import emulator
from fragir.compiler import emit
from fragir.dialects import frag, ptx
from fragir.dialects.elements import element_bits, element_name, element_type
from fragir.errors import FragirError
from fragir.passes.lowering.arithmetic import Arithmetic
from fragir.passes.lowering.elementwise import clone_region
from fragir.reference import compare, scalars
from fragir.reference.bounded import Bounded, exactly
from fragir.reference.formats import decode, encode, storage
from fragir.toolchain import ptxas

Array = npt.NDArray[Any]
WHOLE = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64}
REAL = {"f8E4M3FN": 8, "f8E5M2": 8, "f16": 16, "bf16": 16, "f32": 32, "f64": 64}
SIZES = WHOLE | REAL
STORED = {"i1": "i8", "index": "i32"}

INTEGERS = (
    "arith.addi arith.subi arith.muli arith.divui arith.divsi arith.floordivsi arith.ceildivsi "
    "arith.ceildivui arith.remui arith.remsi arith.minsi arith.maxsi arith.minui arith.maxui "
    "arith.andi arith.ori arith.xori arith.shli arith.shrui arith.shrsi math.ipowi"
).split()
EXTENDED = "arith.mului_extended arith.mulsi_extended arith.addui_extended".split()
COUNTED = "math.ctlz math.cttz math.ctpop math.absi".split()
FLOATS = (
    "arith.addf arith.subf arith.mulf arith.divf arith.minimumf arith.minnumf arith.maximumf "
    "arith.maxnumf math.copysign math.powf math.atan2"
).split()
EXACT = [f"math.{name}" for name in "absf floor ceil roundeven trunc round sqrt rsqrt".split()]
FUNCTIONS = [f"math.{name}" for name in (
    "acos acosh asin asinh atan atanh cbrt cos cosh erf exp2 expm1 exp log10 log1p log2 log sin "
    "sinh tan tanh"
).split()]  # fmt: skip
Sizes = tuple[Sequence[str], Sequence[str], Callable[[int, int], bool]]
CASTS: dict[str, Sizes] = {
    **dict.fromkeys(("arith.extsi", "arith.extui"), (list(WHOLE), list(WHOLE), operator.lt)),
    "arith.trunci": (list(WHOLE), list(WHOLE), operator.gt),
    "arith.extf": (list(REAL), list(REAL), operator.lt),
    "arith.truncf": (list(REAL), list(REAL), operator.gt),
    **dict.fromkeys(("arith.sitofp", "arith.uitofp"), (list(WHOLE), list(REAL), operator.ne)),
    **dict.fromkeys(("arith.fptosi", "arith.fptoui"), (list(REAL), list(WHOLE), operator.ne)),
    "arith.bitcast": (list(SIZES), list(SIZES), operator.eq),
}
LOGIC = {f"arith.{name}" for name in "addi subi xori muli andi minui maxsi ori maxui minsi".split()}
ON_F64 = {*FLOATS[:9], *EXACT, "arith.negf", "math.fma"}
REFUSALS = r"not supported|no instruction|is not c|is converted"
TARGETS = ("sm_80", "sm_90a")
CLASSES: dict[str, Any] = {op.name: op for d in (arith.Arith, math.Math) for op in d.operations}


@dataclass(frozen=True)
class Cell:
    """An operation on types, a comparison with its number."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    relation: int = -1

    def refused(self, target: str) -> bool:
        first = self.inputs[0]
        if self.name in (*CASTS, "arith.index_cast", "arith.select", "arith.cmpi"):
            if (
                target == "sm_80"
                and REAL.get(self.outputs[0]) == 8
                and self.name != "arith.bitcast"
            ):
                return self.name != "arith.select"
            return self.name.startswith("arith.fpto") and self.outputs == ("i1",)
        if self.name == "arith.cmpf":
            return REAL[first] == 8 and self.relation not in (0, 15)
        if first == "i1":
            return self.name not in LOGIC
        if self.name in EXTENDED:
            return first in ("i8", "i16")
        return REAL.get(first) == 8 or (first == "f64" and self.name not in ON_F64)


def cells() -> Iterator[Cell]:
    for t in (*WHOLE, "index"):
        yield from (Cell(name, (t, t), (t,)) for name in INTEGERS)
        yield from (Cell(name, (t,), (t,)) for name in COUNTED)
        yield from (Cell("arith.cmpi", (t, t), ("i1",), n) for n in range(10))
        yield from (Cell(name, (t, t), (t, t)) for name in EXTENDED[:2])
        if t != "index":  # which xDSL does not verify
            yield Cell(EXTENDED[2], (t, t), (t, "i1"))
    for t in REAL:
        yield from (Cell(name, (t, t), (t,)) for name in FLOATS)
        yield from (Cell(name, (t,), (t,)) for name in ("arith.negf", *EXACT, *FUNCTIONS))
        yield Cell("math.fma", (t, t, t), (t,))
        yield from (Cell("math.fpowi", (t, n), (t,)) for n in list(WHOLE)[1:])
        yield from (Cell("arith.cmpf", (t, t), ("i1",), n) for n in range(16))
    for t in (*WHOLE, "index", *REAL):
        yield Cell("arith.select", ("i1", t, t), (t,))
    for name, (first, second, fits) in CASTS.items():
        for a in first:
            for b in second:
                if a != b and (fits is operator.ne or fits(SIZES[a], SIZES[b])):
                    yield Cell(name, (a,), (b,))
    for t in WHOLE:
        yield from (Cell("arith.index_cast", (a,), (b,)) for a, b in ((t, "index"), ("index", t)))


CELLS = list(cells())
TYPES: dict[str, Any] = {
    **{t: IntegerType(n) for t, n in WHOLE.items()},
    "index": IndexType(),
    **dict(
        zip(REAL, map(element_type, ("e4m3", "e5m2", "f16", "bf16", "f32", "f64")), strict=True)
    ),
}


@cache
def region(cell: Cell, constant: bool) -> Block:
    """The operation on what memory holds; its last operand may be a constant."""
    block = Block(arg_types=[TYPES[STORED.get(t, t)] for t in cell.inputs])
    operands: list[SSAValue] = []
    for at, (argument, type_) in enumerate(zip(block.args, cell.inputs, strict=True)):
        value: SSAValue = argument
        if constant and at == len(cell.inputs) - 1:
            number = FloatAttr(1.5, TYPES[type_]) if type_ in REAL else IntegerAttr(1, TYPES[type_])
            value = added(block, arith.ConstantOp(number))
        elif type_ in STORED:
            value = added(block, created(_stored_as(type_)[0], [argument], [type_]))
        operands.append(value)
    op = created(cell.name, operands, cell.outputs, cell.relation)
    block.add_op(op)
    results: list[SSAValue] = list(op.results)
    for at, type_ in enumerate(cell.outputs):
        if type_ in STORED:
            cast = created(_stored_as(type_)[1], [results[at]], [STORED[type_]])
            results[at] = added(block, cast)
    block.add_op(frag.YieldOp(*results))
    return block


def _stored_as(type_: str) -> tuple[str, str]:
    if type_ == "i1":
        return "arith.trunci", "arith.extui"
    return "arith.index_cast", "arith.index_cast"


def added(block: Block, op: Operation) -> SSAValue:
    block.add_op(op)
    return op.results[0]


def created(
    name: str, operands: Sequence[SSAValue], results: Sequence[str], relation: int = -1
) -> Operation:
    properties: dict[str, Attribute] = {}
    if relation >= 0:
        properties["predicate"] = IntegerAttr(relation, i64)
    known = CLASSES[name].get_irdl_definition().properties
    if "fastmath" in known:
        properties["fastmath"] = arith.FastMathFlagsAttr(list[FastMathFlag]())
    if "overflowFlags" in known:
        properties["overflowFlags"] = arith.IntegerOverflowAttr("none")
    types = [TYPES[t] for t in results]
    return CLASSES[name].create(operands=operands, result_types=types, properties=properties)


class Program:
    """A kernel of one warp: cells read rows of %x, one for each type and operand, and write %y."""

    def __init__(self, name: str) -> None:
        pointer = ptx.GLOBAL
        self.block = Block(arg_types=[pointer, pointer])
        self.ar = Arithmetic(self.block)
        self.function = func.FuncOp(
            name, FunctionType.from_lists([pointer] * 2, []), Region(self.block)
        )
        self.function.attributes["ptx.ntid"] = IntegerAttr(32, i64)
        self.lane = self.ar.pure("lane", (), lambda: ptx.SpecialOp("tid.x"))
        self.rows: dict[tuple[str, int, int], int] = {}
        self.given = 0
        self.written: list[tuple[Cell, bool, int, int]] = []
        self.size = 0

    def add(self, cell: Cell, count: int, constant: bool) -> None:
        """On vectors of `count` elements; 0: on scalars."""
        block = region(cell, constant)
        values = [self._loaded(t, i, count) for i, t in enumerate(cell.inputs)]
        self.written.append((cell, constant, count, self.size))
        if count:
            results = clone_region(self.ar, block, values, count, lambda value: value)
        else:
            known: dict[SSAValue, SSAValue] = dict(zip(block.args, values, strict=True))
            for op in list(block.ops)[:-1]:
                self.ar.insert(copy := op.clone(known))
                known.update(zip(op.results, copy.results, strict=True))
            assert block.last_op is not None
            results = [known[x] for x in block.last_op.operands]
        for result in results:
            pointer = self._pointer(1, ptx.scalar_type(result.type), count)
            self.ar.insert(ptx.StoreOp(result, pointer, self.size))
            self.size += row_bytes(ptx.scalar_type(result.type), count)

    def _pointer(self, argument: int, type_: Attribute, count: int) -> SSAValue:
        size = row_bytes(type_, count) // 32
        return self.ar.offset(self.block.args[argument], self.lane, size)[0]

    def _loaded(self, name: str, operand: int, count: int) -> SSAValue:
        type_ = TYPES[STORED.get(name, name)]
        key = (STORED.get(name, name), operand, count)
        if key not in self.rows:
            self.rows[key] = self.given
            self.given += row_bytes(type_, count)
        held = ptx.vector_type(type_, count) if count else type_
        pointer = self._pointer(0, type_, count)
        return self.ar.pure(key, (pointer,), lambda: ptx.LoadOp(pointer, self.rows[key], held))

    def inputs(self) -> tuple[Array, dict[tuple[str, int, int], Array]]:
        """The bytes of %x, and the numbers of each row."""
        memory = np.zeros(self.given, np.uint8)
        values: dict[tuple[str, int, int], Array] = {}
        for (name, operand, count), start in self.rows.items():
            type_ = TYPES[name]
            array = numbers(element_name(type_), operand, 32 * max(count, 1))
            memory[start : start + array.nbytes] = array.view(np.uint8)
            values[name, operand, count] = decode(array, element_name(type_))
        return memory, values


def row_bytes(type_: Attribute, count: int) -> int:
    return 32 * max(count, 1) * element_bits(type_) // 8


def numbers(name: str, seed: int, count: int) -> Array:
    """Small and large numbers, edges among them, in storage."""
    rng = np.random.default_rng(seed)
    if name[0] == "s":
        bits = int(name[1:])
        top = (1 << bits - 1) - 1
        every = rng.integers(-top - 1, top, count, endpoint=True)
        few = rng.choice([0, 1, -1, 2, 3, 5, bits - 1, bits, bits + 1, -top - 1, top], count)
        return encode(np.where(rng.random(count) < 0.5, every, few), name)
    few = rng.choice([0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, np.inf, -np.inf, np.nan, 1e4], count)
    near = rng.standard_normal(count) * 3
    return encode(np.where(rng.random(count) < 0.25, few, near), name)


def meaning(block: Block, values: Sequence[Array]) -> list[Bounded]:
    known: Any = dict(zip(block.args, map(exactly, values), strict=True))
    for op in list(block.ops)[:-1]:
        if isinstance(op, arith.ConstantOp):
            scalars.constant(known, op)
        else:
            scalars.scalar(known, op)
    assert block.last_op is not None
    return [known[x] for x in block.last_op.operands]


def forms(cell: Cell) -> Iterator[tuple[int, bool]]:
    """Elements of a vector, 0 for scalars, and whether an operand is constant."""
    count = 2 if 64 in (SIZES.get(t, 0) for t in (*cell.inputs, *cell.outputs)) else 4
    if cell.name in (*FUNCTIONS, "math.powf", "math.atan2", "math.fpowi", "math.ipowi"):
        # long, and halves go by way of f32: test_functions has more
        yield 0, False
        if cell.outputs != ("f16",):
            yield 1, False
        return
    yield count, False
    yield 0, False
    if len(cell.inputs) > 1 and "cmp" not in cell.name:
        yield count, True


@pytest.mark.parametrize("target", TARGETS)
def test_every_operation_on_every_type(target: str) -> None:
    programs = {t: Program(f"of_{t}") for t in (*SIZES, "index")}
    for cell in CELLS:
        # what other types become is the same text on all targets
        newer = {"bf16", "f8E4M3FN", "f8E5M2"} & {*cell.inputs, *cell.outputs}
        if not cell.refused(target) and (newer or target == TARGETS[0]):
            for form in forms(cell):
                programs[cell.inputs[-1]].add(cell, *form)
    programs = {t: program for t, program in programs.items() if program.written}
    texts: list[str] = []
    for program in programs.values():
        program.block.add_op(func.ReturnOp())
        texts.append(emit(ModuleOp([program.function]), target))
    heads = [text.index(".visible") for text in texts]
    last = max(texts, key=lambda text: float(text.split(".version")[1].split()[0]))
    entries = [text[at:] for text, at in zip(texts, heads, strict=True)]
    ptxas.assemble(last[: last.index(".visible")] + "".join(entries), target)
    for program, text in zip(programs.values(), texts, strict=True):
        _held_against_the_reference(program, text)


def _held_against_the_reference(program: Program, text: str) -> None:
    memory, values = program.inputs()
    output = np.zeros(program.size, np.uint8)
    name = program.function.sym_name.data
    emulator.run(text, name, block=(32,), arguments=[memory, output])
    for cell, constant, count, start in program.written:
        rows = [values[STORED.get(t, t), i, count] for i, t in enumerate(cell.inputs)]
        with np.errstate(all="ignore"):
            expected = meaning(region(cell, constant), rows)
        for type_, reference in zip(cell.outputs, expected, strict=True):
            stored = TYPES[STORED.get(type_, type_)]
            name, end = element_name(stored), start + row_bytes(stored, count)
            found = output[start:end].view(storage(name))
            both = (reference.value, reference.bound)
            shaped = Bounded(*(np.broadcast_to(array, found.shape) for array in both))
            told = compare(shaped, found, name, allow_unjudged=1.0)
            assert told.passed, (cell, constant, count, told, told.worst)
            start = end


def test_no_operation_is_forgotten() -> None:
    assert {cell.name for cell in CELLS} | {"arith.constant"} == set(CLASSES)


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_refused_says_so(target: str) -> None:
    for cell in [cell for cell in CELLS if cell.refused(target)][::3]:
        program = Program("k")
        program.add(cell, 2, False)
        program.block.add_op(func.ReturnOp())
        with pytest.raises(FragirError, match=REFUSALS):
            emit(ModuleOp([program.function]), target)
