"""Programs of words as PTX on the emulator: every step and every kind of number."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i32, i64
from xdsl.ir import Block, Region

from fragir.dialects import ptx
from fragir.emulator import run
from fragir.layout.planning.program import (
    LaneTable,
    Lanewise,
    Linear,
    Permute,
    Select,
    Shuffle,
    Step,
    Transpose,
    WordProgram,
)
from fragir.passes.lowering.arithmetic import INDEX, Arithmetic
from fragir.passes.lowering.lane_coordinates import Hardware
from fragir.passes.lowering.programs import ProgramLowering
from fragir.passes.writer.module import write_module
from fragir.toolchain.ptxas import assemble

LANES = np.arange(32)


def kernel(program: WordProgram, warps: int) -> str:
    """A kernel in which every thread runs a program on its own words."""
    block = Block(arg_types=[ptx.GLOBAL, ptx.GLOBAL])
    ar = Arithmetic(block)
    hardware = Hardware(ar, 32 * warps)
    thread = ar.value(hardware.thread)
    assert thread.type == INDEX
    source = ar.offset(block.args[0], thread, 4 * program.inputs)[0]
    target = ar.offset(block.args[1], thread, 4 * len(program.outputs))[0]
    words = [ar.insert(ptx.LoadOp(source, 4 * i, i32)).value for i in range(program.inputs)]
    for i, word in enumerate(ProgramLowering(ar, hardware).run(program, words)):
        ar.insert(ptx.StoreOp(word, target, 4 * i))
    ar.insert(func.ReturnOp())
    function = func.FuncOp("k", ([ptx.GLOBAL, ptx.GLOBAL], []), Region(block))
    function.attributes["ptx.ntid"] = IntegerAttr(32 * warps, i64)
    module = ModuleOp([function])
    module.verify()
    return write_module(module, "sm_80")


def numbers(given: Lanewise, warps: int) -> np.ndarray:
    """What every thread's number is: [warp, lane]."""
    return np.array([[given(lane, warp) for lane in range(32)] for warp in range(warps)])


def simulated(program: WordProgram, words: np.ndarray) -> np.ndarray:
    """What comes out by the steps' own meaning; words are [warp, lane, word]."""
    warps = len(words)
    known = [words[..., i] for i in range(program.inputs)]
    for step in program.steps:
        match step:
            case Permute(a, b, selector):
                pair = known[a].astype(np.uint64) | known[b].astype(np.uint64) << np.uint64(32)
                nibbles, result = numbers(selector, warps), np.zeros_like(known[a])
                for i in range(4):
                    place = (nibbles >> 4 * i & 7).astype(np.uint64) * np.uint64(8)
                    byte = (pair >> place & np.uint64(255)).astype(np.uint32)
                    result |= byte << np.uint32(8 * i)
            case Select(a, b, number, value):
                result = np.where(numbers(number, warps) == value, known[b], known[a])
            case Shuffle(a, lane, flip):
                lanes = LANES ^ flip if flip is not None else numbers(lane, warps)
                result = np.take_along_axis(
                    known[a], np.broadcast_to(lanes, known[a].shape), axis=1
                )
            case Transpose(a):
                halves = known[a].copy().view(np.uint16).reshape(warps, 8, 8)
                turned = np.ascontiguousarray(halves.transpose(0, 2, 1))
                result = turned.reshape(warps, 64).view(np.uint32)
        known.append(result)
    return np.stack([known[i] for i in program.outputs], axis=-1)


def emitted(text: str) -> Counter[str]:
    """Instructions by the names of `Program.counts`."""
    names = [line.split()[0] for line in text.splitlines() if line.startswith("    ")]
    short = Counter(name.split(".")[0] for name in names)
    return Counter({name: short[name] for name in ("prmt", "selp", "shfl", "movmatrix")})


def check(program: WordProgram, warps: int) -> None:
    text = kernel(program, warps)
    shape = warps, 32, program.inputs
    words = np.random.default_rng(1).integers(0, 1 << 32, shape, dtype=np.uint32)
    result = np.zeros((warps, 32, len(program.outputs)), np.uint32)
    run(text, grid=(1,), block=(32 * warps,), arguments=[words, result])
    assert np.array_equal(result, simulated(program, words))
    assert emitted(text) == Counter(program.counts)
    assemble(text, "sm_80")


def lanewise(rng: random.Random, bits: int, warps: int) -> Lanewise:
    """A number of so many bits: linear in lane and warp, or a table."""
    top = 1 << bits
    wide = (warps - 1).bit_length()
    if rng.random() < 0.5:
        columns = [rng.choice((0, 1, rng.randrange(top))) % top for _ in range(5 + wide)]
        return Linear(rng.randrange(top), tuple(columns[:5]), tuple(columns[5:]))
    rows = rng.choice((1, warps))
    return LaneTable(tuple(tuple(rng.randrange(top) for _ in range(32)) for _ in range(rows)))


def selector(rng: random.Random, warps: int) -> Lanewise:
    """A selector without signs: nibbles below eight."""
    base = lanewise(rng, 16, warps)
    if isinstance(base, Linear):
        lane = tuple(c & 0x7777 for c in base.lane)
        return Linear(base.start & 0x7777, lane, tuple(c & 0x7777 for c in base.warp))
    return LaneTable(tuple(tuple(v & 0x7777 for v in row) for row in base.values))


def drawn(seed: int, warps: int) -> WordProgram:
    """A program of all kinds of steps, some of them many times with one number."""
    rng = random.Random(seed)
    inputs, steps = rng.choice((1, 2, 5)), list[Step]()
    while len(steps) < 40:
        known = inputs + len(steps)
        kind, number = rng.randrange(5), rng.randrange(4)
        flag, lanes, order = (
            lanewise(rng, 2, warps),
            lanewise(rng, 5, warps),
            selector(rng, warps),
        )
        if len({*(numbers(flag, warps) == number).flat}) == 1:
            continue  # no plan asks what all threads answer alike
        for _ in range(rng.choice((1, 2, 6))):
            a, b = rng.randrange(known), rng.randrange(known)
            match kind:
                case 0:
                    steps.append(Permute(a, b, order))
                case 1:
                    steps.append(Select(a, b, flag, number))
                case 2:
                    steps.append(Shuffle(a, lanes))
                case 3:
                    steps.append(Shuffle(a, Linear(3, (1, 2, 4, 8, 16)), flip=3))
                case _:
                    steps.append(Transpose(a))
    total = inputs + len(steps)
    return WordProgram(inputs, tuple(steps), tuple(rng.randrange(total) for _ in range(4)))


@pytest.mark.parametrize("warps", [1, 3, 4])
@pytest.mark.parametrize("seed", range(2))
def test_every_step_does_what_it_says(seed: int, warps: int) -> None:
    check(drawn(seed, warps), warps)


def test_a_number_is_made_once() -> None:
    """Selectors that differ by a constant share what they have of the lane."""
    steps = [Permute(0, 1, Linear(start, (0x1111, 0, 0, 0, 0))) for start in (0x3210, 0x7654)]
    text = kernel(WordProgram(2, tuple(steps * 8), (2, 3)), 1)
    assert emitted(text)["prmt"] == 16
    assert text.count("mul.") + text.count("mad.") == text.count("mad.wide") + 1
    assert text.count("xor.b32") == 2


def test_a_table_of_two_numbers_is_one_mask() -> None:
    """Whichever lanes have which: a shift, a mask, a product, a sum."""
    odd = random.Random(1).sample(range(32), 16)
    row = tuple(0x7654 if lane in odd else 0x3210 for lane in range(32))
    program = WordProgram(2, (Permute(0, 1, LaneTable((row,))),), (2,))
    check(program, 1)
    lines = kernel(program, 1).splitlines()
    words = Counter(line.split()[0].split(".")[0] for line in lines if line.startswith("    "))
    assert words["and"] == words["mul"] == words["xor"] == 1
    assert words["shr"] <= 1
