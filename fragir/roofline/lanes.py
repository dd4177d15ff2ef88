"""What one warp does, read off the lane code: each operation once, times how often it is executed.

Numbers and addresses are followed for all 32 lanes; what depends on memory or on other threads is
not known. A loop's body is looked at in its first turn. Where a condition is known only its branch
is, where it differs among lanes each side with its lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import add, eq, ge, gt, le, lt, mul, ne, sub
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, StringAttr, i1

from fragir.dialects import ptx
from fragir.dialects.shorthands import is_vector

if TYPE_CHECKING:
    from xdsl.dialects.func import FuncOp
    from xdsl.ir import Attribute, Block, Operation, SSAValue

LANES = 32
Scalar: TypeAlias = "int | list[int] | None"
"""The same in all lanes, one a lane, or not known."""
Value: TypeAlias = "Scalar | tuple[Scalar, ...]"
"""A scalar, or those of a vector."""

MEMORY = 44
"""Bits of an address below the number of the argument whose memory it is in, from 1 on."""
UNKNOWN = 16
"""Turns of a loop whose bounds are not known."""


class LoopTurns(NamedTuple):
    """A loop around an operation."""

    bit: int
    """Of the sets of loops that values depend on."""
    turns: float


class WarpAccess(NamedTuple):
    """What a warp reads or writes in global memory at once."""

    op: Operation
    kind: str
    """"load", "store", "copy" (to shared memory, not waited for), or "bulk": a box of a tensor."""
    memory: int | None
    """The number of the argument."""
    size: int
    """Bytes of a lane, or of the box."""
    at: Sequence[int] | None
    """Where each lane begins, of those that take part; None of boxes, and where it is not known."""
    body: Block
    times: float
    loops: tuple[LoopTurns, ...]
    varies: int
    """The loops on which the place depends, as a set of their bits."""

    @property
    def writes(self) -> bool:
        """Whether memory is written."""
        return self.kind == "store"


class LaunchView(NamedTuple):
    """What is known of a launch: kernel arguments, and the block that is looked at."""

    arguments: Mapping[SSAValue, Scalar]
    block: tuple[int, int, int]
    grid: tuple[int, int, int]
    threads: int
    boxes: Mapping[SSAValue, tuple[int, int]]
    """Of tensor maps, the number of the array and the bytes of a box."""


class WarpWork:
    """One warp of a block: what it reads and writes, and the instructions that it issues."""

    def __init__(self, function: FuncOp, launch: LaunchView, warp: int):
        self.accesses: list[WarpAccess] = []
        self.issued = 0.0
        """Instructions of arithmetic and memory, about as many as there will be."""
        self.special = 0.0
        """Of these, by the unit for functions: exponentials, reciprocals, roots."""
        self.products: dict[tuple[Operation, str], float] = {}
        """Tensor-core instructions: the operation and its mnemonic, and how often."""
        self.multiplied = 0.0
        """Multiplications of floating-point numbers in a lane, by the unit for arithmetic."""
        self._launch, self._warp = launch, warp
        self._values: dict[SSAValue, Value] = dict(launch.arguments)
        self._varies: dict[SSAValue, int] = {}
        self._bits = 0
        self._times = 1.0
        self._loops: tuple[LoopTurns, ...] = ()
        self._active: list[bool] | None = None
        self._shared = 1 << MEMORY - 4
        self._walk(function.body.block)

    def _scalar(self, value: SSAValue) -> Scalar:
        found = self._values.get(value)
        return None if isinstance(found, tuple) else found

    def _walk(self, block: Block) -> None:
        for op in block.ops:
            name = op.name
            special = _STEPS.get(name)
            if special is not None:
                special(self, op)
                continue
            if not op.results:
                if name not in _FREE:
                    self.issued += self._times
                continue
            result = op.results[0]
            meaning = _MEANINGS.get(name)
            if meaning is not None and _is_whole(result.type):
                self._evaluate(op, meaning)
            if name in _FREE:
                continue
            self._count(name, result.type)

    def _count(self, name: str, type_: Attribute) -> None:
        """Instructions of an operation that gives this type."""
        count = ptx.length(type_) * self._times
        bits = ptx.bits(type_)
        if bits == 16 and ptx.length(type_) > 1:
            count /= 2
        if name in _MULTIPLIES and bits > 1 and not _is_whole(type_):
            self.multiplied += ptx.length(type_) * self._times
        slots, functions = _SLOTS.get(name, (1, 0))
        if name.startswith("math.") and name not in _SLOTS:
            slots, functions = _FUNCTION
        self.issued += slots * count
        self.special += functions * count

    # --- numbers ------------------------------------------------------------------------------

    def _evaluate(self, op: Operation, meaning: Callable[..., int]) -> None:
        operands = op.operands
        values = [self._values.get(operand) for operand in operands]
        self._set(op, _apply(meaning, values))

    def _set(self, op: Operation, value: Value) -> None:
        result = op.results[0]
        self._values[result] = value
        self._depend(result, op.operands)

    def _depend(self, result: SSAValue, operands: Sequence[SSAValue]) -> None:
        found = 0
        for operand in operands:
            found |= self._varies.get(operand, 0)
        if found:
            self._varies[result] = found

    def constant(self, op: Operation) -> None:
        """`arith.constant`."""
        attribute = op.properties["value"]
        if isinstance(attribute, IntegerAttr):
            number = attribute.value.data
            self._values[op.results[0]] = number & 1 if op.results[0].type == i1 else number

    def compare(self, op: Operation) -> None:
        """`arith.cmpi`."""
        relation = cast("IntegerAttr", op.properties["predicate"]).value.data
        self._evaluate(op, _RELATIONS[relation])
        self._count(op.name, op.results[0].type)

    def special_register(self, op: Operation) -> None:
        """`ptx.special`."""
        assert isinstance(op, ptx.SpecialOp)
        launch, first = self._launch, LANES * self._warp
        register, _, axis = op.register.data.partition(".")
        at = "xyz".index(axis) if axis else 0
        found: Scalar = None
        if register == "tid":
            found = list(range(first, first + LANES)) if at == 0 else 0
        elif register == "laneid":
            found = list(range(LANES))
        elif register in ("ctaid", "nctaid"):
            found = (launch.block if register == "ctaid" else launch.grid)[at]
        elif register == "ntid":
            found = launch.threads if at == 0 else 1
        elif register in ("cluster_ctarank", "cluster_ctaid"):
            found = 0
        self._values[op.value] = found

    def shared(self, op: Operation) -> None:
        """`ptx.shared`."""
        assert isinstance(op, ptx.SharedOp)
        self._values[op.pointer] = self._shared
        self._shared += op.bytes.value.data

    def zero(self, op: Operation) -> None:
        """`ptx.zero`."""
        result = op.results[0]
        if _is_whole(result.type):
            count = ptx.length(result.type)
            self._values[result] = (0,) * count if is_vector(result.type) else 0

    def splat(self, op: Operation) -> None:
        """`ptx.splat`."""
        if _is_whole(op.results[0].type):
            scalar = self._scalar(op.operands[0])
            self._set(op, (scalar,) * ptx.length(op.results[0].type))

    def joined(self, op: Operation) -> None:
        """`ptx.pack` and `ptx.concat`."""
        if not _is_whole(op.results[0].type):
            return
        parts: list[Scalar] = []
        for operand in op.operands:
            value = self._values.get(operand)
            if isinstance(value, tuple):
                parts += value
            else:
                parts += [value] * ptx.length(operand.type)
        self._set(op, tuple(parts))

    def unpack(self, op: Operation) -> None:
        """`ptx.unpack`."""
        value = self._values.get(op.operands[0])
        if isinstance(value, tuple):
            for result, scalar in zip(op.results, value, strict=True):
                self._values[result] = scalar
                self._depend(result, op.operands)

    def slice(self, op: Operation) -> None:
        """`ptx.slice`."""
        assert isinstance(op, ptx.SliceOp)
        value, first = self._values.get(op.source), op.first.value.data
        if isinstance(value, tuple):
            if is_vector(op.result.type):
                self._set(op, value[first : first + ptx.length(op.result.type)])
            else:
                self._set(op, value[first])

    def same(self, op: Operation) -> None:
        """A value under another type or name."""
        if ptx.length(op.operands[0].type) == ptx.length(op.results[0].type):
            self._set(op, self._values.get(op.operands[0]))

    def shuffle(self, op: Operation) -> None:
        """`ptx.shuffle`: of one lane's number all have."""
        assert isinstance(op, ptx.ShuffleOp)
        self.issued += self._times * ptx.registers(op.result.type)
        value, source = self._scalar(op.value), self._scalar(op.source)
        if isinstance(value, list):
            value = value[source % LANES] if isinstance(source, int) else None
        self._set(op, value)

    def choose(self, op: Operation) -> None:
        """`arith.select` and `ptx.select`."""
        if _is_whole(op.results[0].type):
            self._set(op, _apply(_choose, [self._values.get(x) for x in op.operands]))
        self._count(op.name, op.results[0].type)

    def offset(self, op: Operation) -> None:
        """`ptx.offset` and `ptx.offset_wide`."""
        assert isinstance(op, ptx.OffsetOp | ptx.OffsetWideOp)
        self.issued += self._times
        scale = op.scale.value.data
        index = self._values.get(op.index)
        if op.stride is not None:
            index = _apply(mul, [index, self._values.get(op.stride)])
        away = index * scale if isinstance(index, int) else _apply(mul, [index, scale])
        self._values[op.result] = _apply(add, [self._values.get(op.pointer), away])
        self._depend(op.result, op.operands)

    # --- memory -------------------------------------------------------------------------------

    def load(self, op: Operation) -> None:
        """`ptx.load`."""
        assert isinstance(op, ptx.LoadOp)
        size = ptx.length(op.value.type) * ptx.bits(op.value.type) // 8
        self._access(op, "load", op.pointer, op.offset.value.data, size, op.predicate)

    def store(self, op: Operation) -> None:
        """`ptx.store`."""
        assert isinstance(op, ptx.StoreOp)
        size = ptx.length(op.value.type) * ptx.bits(op.value.type) // 8
        self._access(op, "store", op.pointer, op.offset.value.data, size, op.predicate)

    def atomic(self, op: Operation) -> None:
        """`ptx.atomic`: its sector is moved once, as by a store."""
        assert isinstance(op, ptx.AtomicOp)
        size = ptx.length(op.value.type) * ptx.bits(op.value.type) // 8
        self._access(op, "store", op.pointer, op.offset.value.data, size, op.predicate)

    def cp_async(self, op: Operation) -> None:
        """`ptx.cp_async`."""
        assert isinstance(op, ptx.CpAsyncOp)
        offset, size = op.source_offset.value.data, op.bytes.value.data
        self._access(op, "copy", op.source, offset, size, op.predicate)

    def _access(
        self,
        op: Operation,
        kind: str,
        pointer: SSAValue,
        offset: int,
        size: int,
        predicate: SSAValue | None,
    ) -> None:
        self.issued += self._times
        type_ = pointer.type
        if isinstance(type_, ptx.PointerType) and type_.is_shared:
            return
        lanes = self._lanes(predicate)
        if not any(lanes):
            return
        base = self._scalar(pointer)
        varies = self._varies.get(pointer, 0)
        at = memory = None
        if base is not None:
            starts = base if isinstance(base, list) else [base] * LANES
            at = [start + offset for start, takes in zip(starts, lanes, strict=True) if takes]
            memory = (at[0] >> MEMORY) - 1
        else:
            memory = self._argument(pointer)
        found = WarpAccess(op, kind, memory, size, at, *self._now(op), varies)
        self.accesses.append(found)

    def _now(self, op: Operation) -> tuple[Block, float, tuple[LoopTurns, ...]]:
        block = op.parent
        assert block is not None
        return block, self._times, self._loops

    def _lanes(self, predicate: SSAValue | None) -> list[bool]:
        """Who takes part: where a condition is not known, all."""
        active = self._active or [True] * LANES
        holds = None if predicate is None else self._scalar(predicate)
        if holds is None:
            return active
        if isinstance(holds, int):
            return active if holds else [False] * LANES
        return [bool(a and h) for a, h in zip(active, holds, strict=True)]

    def _argument(self, pointer: SSAValue) -> int | None:
        """The number of the argument whose memory a pointer is into."""
        while isinstance(pointer.owner, ptx.OffsetOp | ptx.OffsetWideOp):
            pointer = pointer.owner.pointer
        base = self._launch.arguments.get(pointer)
        return (base >> MEMORY) - 1 if isinstance(base, int) else None

    def statement(self, op: Operation) -> None:
        """`ptx.op`: boxes of tensors, functions, and others."""
        assert isinstance(op, ptx.InstructionOp)
        words = op.statement.data.split(None, 1)[0]
        if words.startswith("cp.async.bulk") and not words.startswith("cp.async.bulk.prefetch"):
            self._bulk(op, words)
        else:
            self.issued += self._times
            if words.startswith(("ex2", "rcp", "rsqrt", "sqrt", "sin", "cos", "lg2", "tanh")):
                self.special += self._times
        for result in op.results:
            self._depend(result, op.operands)

    def _bulk(self, op: ptx.InstructionOp, words: str) -> None:
        if not any(self._lanes(op.predicate)):
            return
        self.issued += self._times / LANES
        kind = "store" if ".global.shared" in words else "bulk"
        varies = 0
        for value in op.inputs:
            varies |= self._varies.get(value, 0)
        for value in op.inputs:
            if value in self._launch.boxes:
                memory, size = self._launch.boxes[value]
                self.accesses.append(
                    WarpAccess(op, kind, memory, size, None, *self._now(op), varies)
                )

    # --- products -----------------------------------------------------------------------------

    def product(self, op: Operation) -> None:
        """Tensor-core instructions."""
        instruction = op.properties["instruction"]
        key = op, cast("StringAttr", instruction).data
        self.products[key] = self.products.get(key, 0.0) + self._times
        self.issued += self._times

    # --- control ------------------------------------------------------------------------------

    def loop(self, op: Operation) -> None:
        """`scf.for`."""
        assert isinstance(op, scf.ForOp)
        first, end, step = (self._scalar(x) for x in (op.lb, op.ub, op.step))
        first, end, step = (x[0] if isinstance(x, list) else x for x in (first, end, step))
        turns = float(UNKNOWN)
        if first is not None and end is not None and step:
            turns = float(max(0, -(-(end - first) // step)))
        bit = 1 << self._bits
        self._bits += 1
        counter, *carried = op.body.block.args
        self._values[counter] = self._scalar(op.lb)
        self._varies[counter] = bit
        for argument, result, start in zip(carried, op.results, op.iter_args, strict=True):
            self._values[argument] = self._values[result] = self._values.get(start)
            self._varies[argument] = self._varies.get(start, 0) | bit
        if not turns:
            return
        before = self._times, self._loops
        self._times *= turns
        self._loops = (*self._loops, LoopTurns(bit, turns))
        self._walk(op.body.block)
        self._times, self._loops = before

    def branch(self, op: Operation) -> None:
        """`scf.if`."""
        assert isinstance(op, scf.IfOp)
        holds = self._scalar(op.cond)
        before, active = self._times, self._active
        for region, wanted in ((op.true_region, True), (op.false_region, False)):
            if not region.blocks:
                continue
            if holds is None:
                self._times = before / 2
            elif isinstance(holds, int):
                if bool(holds) is not wanted:
                    continue
            else:
                lanes = active or [True] * LANES
                self._active = [a and bool(h) is wanted for a, h in zip(lanes, holds, strict=True)]
                if not any(self._active):
                    self._active = active
                    continue
            self._walk(region.block)
            end = region.block.last_op
            if end is not None:
                for result, given in zip(op.results, end.operands, strict=False):
                    self._values[result] = self._values.get(given)
                    self._depend(result, [given])
            self._times, self._active = before, active

    def while_loop(self, op: Operation) -> None:
        """`scf.while`, once: most wait for others."""
        for region in op.regions:
            self._walk(region.block)


def _is_whole(type_: Attribute) -> bool:
    """Whether numbers are whole, or addresses."""
    scalar = ptx.scalar_type(type_)
    return isinstance(scalar, IndexType | IntegerType | ptx.PointerType)


def _apply(meaning: Callable[..., int], values: Sequence[Value]) -> Value:
    """An operation on scalars, or on vectors element by element."""
    length = next((len(value) for value in values if isinstance(value, tuple)), None)
    if length is None:
        return _of_lanes(meaning, cast("Sequence[Scalar]", values))
    spread = [value if isinstance(value, tuple) else (value,) * length for value in values]
    return tuple(_of_lanes(meaning, each) for each in zip(*spread, strict=True))


def _of_lanes(meaning: Callable[..., int], values: Sequence[Scalar]) -> Scalar:
    same = True
    for value in values:
        if value is None:
            return None
        if isinstance(value, list):
            same = False
    try:
        if same:
            return meaning(*values)
        rows = [
            value if isinstance(value, list) else [cast("int", value)] * LANES for value in values
        ]
        found = list(map(meaning, *rows))
    except (ValueError, ZeroDivisionError, OverflowError):
        return None
    return found[0] if found.count(found[0]) == LANES else found


def _unsigned(number: int) -> int:
    return number & 0xFFFFFFFF if number < 0 else number


def _of_unsigned(relation: Callable[[int, int], int]) -> Callable[[int, int], int]:
    return lambda a, b: relation(_unsigned(a), _unsigned(b))


def _choose(holds: int, one: int, other: int) -> int:
    return one if holds else other


def _divided(a: int, b: int) -> int:
    """Towards zero."""
    found = abs(a) // abs(b)
    return found if (a < 0) == (b < 0) else -found


_RELATIONS: tuple[Callable[[int, int], int], ...] = (
    *(eq, ne, lt, le, gt, ge),
    *(_of_unsigned(relation) for relation in (lt, le, gt, ge)),
)
"""By the number that MLIR gives the predicates of `arith.cmpi`."""

_MEANINGS: dict[str, Callable[[int, int], int]] = {
    "arith.addi": add,
    "arith.subi": sub,
    "arith.muli": mul,
    "arith.andi": int.__and__,
    "arith.ori": int.__or__,
    "arith.xori": int.__xor__,
    "arith.shli": lambda a, b: a << b,
    "arith.shrui": lambda a, b: _unsigned(a) >> b,
    "arith.shrsi": lambda a, b: a >> b,
    "arith.divui": lambda a, b: _unsigned(a) // _unsigned(b),
    "arith.remui": lambda a, b: _unsigned(a) % _unsigned(b),
    "arith.divsi": _divided,
    "arith.remsi": lambda a, b: a - b * _divided(a, b),
    "arith.floordivsi": lambda a, b: a // b,
    "arith.ceildivsi": lambda a, b: -(-a // b),
    "arith.ceildivui": lambda a, b: -(-_unsigned(a) // _unsigned(b)),
    "arith.minsi": min,
    "arith.maxsi": max,
    "arith.minui": lambda a, b: min(_unsigned(a), _unsigned(b)),
    "arith.maxui": lambda a, b: max(_unsigned(a), _unsigned(b)),
    "ptx.flip": int.__xor__,
    "ptx.mul_wide": mul,
}
"""Of operations on whole numbers and addresses."""

_MULTIPLIES = ("arith.mulf", "math.fma")
_FUNCTION = (2, 1)
_SLOTS = {"arith.divf": (8, 1), "math.fma": (1, 0), "math.absf": (1, 0), "math.sqrt": (6, 1)}
"""Instructions of an element, and how many of them are by the unit for functions."""
_FREE = frozenset((
    *("arith.constant", "arith.index_cast", "scf.yield", "scf.condition", "func.return"),
    *("ptx.pack", "ptx.unpack", "ptx.slice", "ptx.concat", "ptx.splat", "ptx.bitcast", "ptx.copy"),
    *("ptx.zero", "ptx.undefined", "ptx.shared", "ptx.special", "ptx.wgmma_wait"),
))  # fmt: skip


_STEPS: dict[str, Callable[[WarpWork, Operation], None]] = {
    "arith.constant": WarpWork.constant,
    "arith.cmpi": WarpWork.compare,
    "arith.index_cast": WarpWork.same,
    "arith.extui": WarpWork.same,
    "arith.extsi": WarpWork.same,
    "arith.trunci": WarpWork.same,
    "ptx.copy": WarpWork.same,
    "ptx.bitcast": WarpWork.same,
    "ptx.special": WarpWork.special_register,
    "ptx.shared": WarpWork.shared,
    "ptx.zero": WarpWork.zero,
    "ptx.splat": WarpWork.splat,
    "ptx.pack": WarpWork.joined,
    "ptx.concat": WarpWork.joined,
    "ptx.unpack": WarpWork.unpack,
    "ptx.slice": WarpWork.slice,
    "ptx.shuffle": WarpWork.shuffle,
    "ptx.offset": WarpWork.offset,
    "ptx.offset_wide": WarpWork.offset,
    "arith.select": WarpWork.choose,
    "ptx.select": WarpWork.choose,
    "ptx.load": WarpWork.load,
    "ptx.store": WarpWork.store,
    "ptx.atomic": WarpWork.atomic,
    "ptx.cp_async": WarpWork.cp_async,
    "ptx.op": WarpWork.statement,
    "ptx.mma": WarpWork.product,
    "ptx.mma_sparse": WarpWork.product,
    "ptx.wgmma": WarpWork.product,
    "scf.for": WarpWork.loop,
    "scf.if": WarpWork.branch,
    "scf.while": WarpWork.while_loop,
}
