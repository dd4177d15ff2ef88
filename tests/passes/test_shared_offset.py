"""Addresses in swizzled shared memory: the emitted arithmetic against the plain formula."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.ir import Block, SSAValue

from benchmarks.sweeps import memory_addresses
from benchmarks.sweeps.memory_addresses import evaluate
from fragir.layout import Axis, Layout, Mode
from fragir.layout.shared import swizzled_elements
from fragir.passes.lowering.arithmetic import INDEX, Arithmetic, Value
from fragir.passes.lowering.lane_coordinates import Hardware
from fragir.passes.lowering.layout_arithmetic import position, position_rule
from fragir.passes.lowering.memory import in_bytes


def swizzled(shape: tuple[int, int], bits: int, swizzle: int, row: int, col: int) -> int:
    """The byte of an element, written down once more: panels, rows, XOR of address bits."""
    rows, cols = shape
    width = swizzle or cols * bits // 8
    per_row = width * 8 // bits
    panel = col // per_row
    panel_bytes = rows * width
    if swizzle:
        panel_bytes = (panel_bytes + 1023) // 1024 * 1024
    inside = row * width + col % per_row * bits // 8
    if swizzle:
        inside ^= ((inside >> 7) % (swizzle // 16)) << 4
    return panel * panel_bytes + inside


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_offset_is_the_swizzle_of_the_sum(data: st.DataObject) -> None:
    bits = data.draw(st.sampled_from((8, 16, 32)))
    swizzle = data.draw(st.sampled_from((0, 32, 64, 128)))
    rows = data.draw(st.integers(1, 12)) * 8
    cols = (
        data.draw(st.integers(1, 8))
        * (swizzle or 32)
        * 8
        // bits
        // data.draw(st.sampled_from((1, 1, 2)))
    )
    rule = position_rule(in_bytes(swizzled_elements((rows, cols), bits, swizzle), bits))
    entry = Block()
    ar = Arithmetic(entry)
    hardware = Hardware(ar, 128)
    modes = tuple(
        Mode(data.draw(st.sampled_from((2, 4, 8))), stride)
        for stride in data.draw(
            st.lists(
                st.tuples(st.sampled_from((0, 1, 2, 4, 8)), st.sampled_from((0, 1, 2, 8, 16))),
                min_size=1,
                max_size=3,
            )
        )
    )
    layout = Layout((Axis("thread", modes),))
    at = data.draw(st.integers(0, rows - 1)), data.draw(st.integers(0, cols - 1))
    lanes = [hardware.coordinate(layout, dim) for dim in (0, 1)]
    terms, immediate, _ = position(ar, rule, lanes, at, (0, 0))
    thread = hardware.thread
    assert isinstance(thread, SSAValue)
    size = layout.size("thread")
    for number in range(min(size, 128)):
        point = layout(thread=number)
        assert point is not None
        row, col = point[0] + at[0], point[1] + at[1]
        if row < rows and col < cols:
            found = sum(evaluate(term, {thread: number}) for term in terms) + immediate
            assert found == swizzled((rows, cols), bits, swizzle, row, col)


@given(seed=st.integers(0, 1 << 40))
@settings(max_examples=150, deadline=None)
def test_positions_of_any_layout(seed: int) -> None:
    """The emitted arithmetic puts every element where the layout does."""
    random = Random(seed)
    assert memory_addresses.check_positions(random, memory_addresses.any_layout(random)) == []


@given(
    data=st.data(),
    operations=st.lists(
        st.tuples(
            st.sampled_from(("add", "sub", "mul", "div", "rem", "xor")),
            st.integers(0, 7),
            st.integers(0, 7),
            st.integers(1, 64),
        ),
        max_size=12,
    ),
)
@settings(max_examples=100, deadline=None)
def test_folding_keeps_values_and_divisors(
    data: st.DataObject, operations: list[tuple[str, int, int, int]]
) -> None:
    entry = Block(arg_types=[INDEX, INDEX])
    ar = Arithmetic(entry)
    known: dict[SSAValue, int] = {
        argument: data.draw(st.integers(0, 1000)) for argument in entry.args
    }
    values: list[tuple[Value, int]] = [
        *known.items(),
        (3, 3),
        (0, 0),
        (16, 16),
    ]
    for name, i, j, number in operations:
        (x, a), (y, b) = values[i % len(values)], values[j % len(values)]
        match name:
            case "add":
                values.append((ar.add(x, y), a + b))
            case "sub":
                values.append((ar.sub(x, y), a - b))
            case "mul":
                values.append((ar.mul(x, y), a * b))
            case "xor" if a >= 0 and b >= 0:
                values.append((ar.xor(x, y), a ^ b))
            case "div" if a >= 0:
                values.append((ar.div(x, number), a // number))
            case "rem" if a >= 0:
                values.append((ar.rem(x, number), a % number))
            case _:
                continue
        value, wanted = values[-1]
        assert evaluate(value, known) == wanted
        divisor = ar.divisor(value)
        assert wanted == 0 if divisor == 0 else wanted % divisor == 0


def test_shared_expressions_are_made_once_and_outside_of_loops() -> None:
    entry = Block(arg_types=[INDEX])
    ar = Arithmetic(entry)
    body = Block(arg_types=[INDEX])
    with ar.inside(body):
        outer = ar.add(ar.mul(entry.args[0], 12), 5)
        inner = ar.add(outer, body.args[0])
        again = ar.add(ar.mul(entry.args[0], 12), 5)
    assert outer is again
    assert isinstance(outer, SSAValue)
    assert isinstance(inner, SSAValue)
    assert ar.owner(outer) is entry
    assert ar.owner(inner) is body
    assert [op.name for op in body.ops] == ["arith.addi"]
