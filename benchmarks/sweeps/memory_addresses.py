"""Addresses in shared memory of random layouts: the arithmetic that is emitted, against the layout.

Swizzled, padded and stacked matrices, invertible maps over F2, odd digits, flipped and added ones
that meet; coordinates are the sum of a lane's part, an index of a loop and a constant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from random import Random
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Operation, SSAValue

from fragir.layout import Axis, Layout, Mode
from fragir.layout.modes import XorMode
from fragir.layout.shared import swizzled_elements
from fragir.passes.lowering.arithmetic import INDEX, Arithmetic, Value
from fragir.passes.lowering.layout_arithmetic import NOWHERE, LaneOffset, position, position_rule
from fragir.sweeps import Plan, Result, Sweep, Task

STRIDES = (0, 1, 2, 3, 4, 5, 8, 16, 32, 64, 72, 80, 100, 128, 144)
LOOPS = 2  # the depths at which an index may be defined
OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "arith.addi": int.__add__,
    "arith.subi": int.__sub__,
    "arith.muli": int.__mul__,
    "arith.andi": int.__and__,
    "arith.xori": int.__xor__,
    "arith.shli": int.__lshift__,
    "arith.shrui": int.__rshift__,
    "arith.divui": int.__floordiv__,
    "arith.remui": int.__mod__,
}


def evaluate(value: Value, known: Mapping[SSAValue, int]) -> int:
    """An index value as a number, given those of block arguments and special registers."""
    if isinstance(value, int):
        return value
    if value in known:
        return known[value]
    owner = value.owner
    assert isinstance(owner, Operation)
    if isinstance(owner, arith.ConstantOp):
        assert isinstance(owner.value, IntegerAttr)
        return owner.value.value.data
    x, y = (evaluate(operand, known) for operand in owner.operands)
    return OPERATIONS[owner.name](x, y)


# Random layouts


def any_layout(random: Random) -> Layout:
    """One dimension, one to three axes; points may fall together."""
    return random.choice((_swizzled, linear, _digits, _digits))(random)


def _swizzled(random: Random) -> Layout:
    width = random.choice((0, 32, 64, 128))
    shape = random.choice((8, 12, 16, 24, 64)), random.choice((32, 64, 128))
    stack = () if random.random() < 0.7 else (random.choice((2, 3)),)
    return swizzled_elements((*stack, *shape), random.choice((8, 16, 32)), width)


def linear(random: Random) -> Layout:
    """An invertible map over F2 of three to twelve bits; some have odd digits besides."""
    count = random.randrange(3, 13)
    columns = [1 << bit for bit in range(count)]
    for _ in range(random.choice((2, 6, 40))):
        one, other = random.sample(range(count), 2)
        columns[one] ^= columns[other]
    if random.random() < 0.3:
        random.shuffle(columns)
    cut = random.randrange(count + 1)
    modes: list[list[Mode]] = [
        [XorMode(2, (column,)) for column in part] for part in (columns[:cut], columns[cut:])
    ]
    if random.random() < 0.4:
        modes[random.randrange(2)].append(Mode(random.choice((3, 5, 2)), (1 << count,)))
    if random.random() < 0.2:
        modes[random.randrange(2)].insert(0, Mode(random.choice((2, 3)), (8 << count,)))
    return _named(modes, 0)


def _digits(random: Random) -> Layout:
    modes: list[list[Mode]] = []
    for _ in range(random.randrange(1, 4)):
        axis: list[Mode] = []
        for _ in range(random.randrange(4)):
            size, step = random.choice((2, 2, 4, 8, 3, 5, 6)), (random.choice(STRIDES),)
            flipped = size & (size - 1) == 0 and random.random() < 0.4
            axis.append((XorMode if flipped else Mode)(size, step))
        modes.append(axis)
    return _named(modes, random.choice((0, 0, 0, 1, 3, 64, 72, 576)))


def _named(modes: list[list[Mode]], offset: int) -> Layout:
    axes = (Axis(name, tuple(axis)) for name, axis in zip("abc", modes, strict=False))
    return Layout(tuple(axes), ("index",), (offset,))


# Random coordinates


class _Coordinates:
    """Lanes, indices and constants along the axes of a layout, and what values they may have."""

    def __init__(self, random: Random, layout: Layout, ar: Arithmetic, arguments: list[SSAValue]):
        self._random = random
        self.lanes: list[LaneOffset] = []
        self.at: list[Value] = []
        self.constants: list[int] = []
        self._ranges: dict[SSAValue, tuple[int, int]] = {}  # bits, divisor
        for axis in layout.axes:
            size, bits = axis.size, (axis.size - 1).bit_length()
            mask = 0 if random.random() < 0.2 else random.getrandbits(bits + 1) >> 1
            self.lanes.append(self._lane(mask, arguments))
            number = random.randrange(size)
            self.constants.append(number & ~mask if random.random() < 0.5 else number)
            if random.random() < 0.35:
                divisor = 1 << random.randrange(bits + 1)
                argument = arguments.pop(random.randrange(len(arguments)))
                ar.assume_divisor(argument, divisor)
                self._ranges[argument] = (1 << bits) - 1, divisor
                self.at.append(argument)
            else:
                self.at.append(
                    random.choice((0, 0, random.randrange(size), -random.randrange(size)))
                )

    def _lane(self, mask: int, arguments: list[SSAValue]) -> LaneOffset:
        if not mask:
            return NOWHERE
        argument = arguments.pop(0)
        self._ranges[argument] = mask, 1
        return LaneOffset(argument, mask if self._random.random() < 0.8 else None)

    def drawn(self) -> dict[SSAValue, int]:
        """Values of all arguments."""
        return {
            argument: (self._random.getrandbits(16) & bits) // divisor * divisor
            for argument, (bits, divisor) in self._ranges.items()
        }

    def all(self, known: Mapping[SSAValue, int]) -> list[int]:
        """The whole coordinates."""
        return [
            evaluate(lane.value, known) + evaluate(at, known) + constant
            for lane, at, constant in zip(self.lanes, self.at, self.constants, strict=True)
        ]


def check_positions(random: Random, layout: Layout, tries: int = 12) -> list[str]:
    """What is wrong with the position of one random access to a layout."""
    entry = Block(arg_types=[INDEX] * 4)
    ar = Arithmetic(entry)
    arguments = list[SSAValue](entry.args)
    with ExitStack() as loops:
        for _ in range(LOOPS):
            body = Block(arg_types=[INDEX] * 2)
            loops.enter_context(ar.inside(body))
            arguments += body.args
        given = _Coordinates(random, layout, ar, arguments)
        rule = position_rule(layout)
        terms, immediate, mask = position(ar, rule, given.lanes, given.at, given.constants)
    for _ in range(tries):
        known = given.drawn()
        coordinates = given.all(known)
        sizes = layout.sizes
        if any(not 0 <= x < size for x, size in zip(coordinates, sizes.values(), strict=True)):
            continue
        point = layout(**dict(zip(sizes, coordinates, strict=True)))
        assert point is not None
        found = sum(evaluate(term, known) for term in terms)
        where = f"{layout} at {coordinates} of {given.constants}"
        if found + immediate != point[0]:
            return [f"{where} is {point[0]}, not {found} + {immediate}"]
        if found & ~mask:
            return [f"{where}: {found} has more bits than {mask:#x}"]
    return []


def tasks(plan: Plan) -> Sequence[Any]:
    return [None] * (plan.count or 200)


def run(task: Task) -> Result:
    random, findings = task.random(), list[str]()
    batch = task.parameters["batch"]
    for _ in range(batch):
        findings += check_positions(random, any_layout(random))
    return {"findings": findings, "positions": batch}


SWEEP = Sweep(tasks, run, {"batch": 300}, seconds=300.0)
