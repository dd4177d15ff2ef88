"""Every compilation ends: loops of the passes have a bound, and one of everything compiles."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import pairwise, product
from pathlib import Path

import pytest

import fragir
import fragir.passes
from fragir import f16, f32
from fragir.builder.kernel import KernelBuilder
from fragir.passes.func_inline import LARGEST
from fragir.passes.settling import rounds
from fragir.sweeps.attempt import call_limited

SECONDS = 20.0  # a hundred times what the slowest here takes: other work may share the machine
#: Loops that go up a chain without cycles, from a value to what it is made of, or to its root,
#: or through places that get more.
CHAINS = {
    ("structured/loops.py", "(parent := self._parents.get(node, node)) != node"),
    ("structured/memory.py", "(parent := parents.get(node, node)) != node"),
    ("dispatching/groups.py", "True"),  # every turn takes one of those away that might join
    ("lifting/module.py", "a != b"),
    ("lifting/module.py", "runner != above[block]"),
    ("writer/blocks.py", "self._above[number] != number"),
    ("writer/text.py", "self._bits.get(prefix, bits) != bits"),
    (
        "placing/rewriting.py",
        "True",
    ),  # every turn stages one more of the operations there are
    ("writer/sharing.py", "True"),
}


def equality_loops(text: str) -> Iterator[str]:
    """The conditions of loops whose end is an equality, or that something is no news."""
    for loop in (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.While)):
        match loop.test:
            case ast.Constant() | ast.Compare(ops=[ast.Eq() | ast.NotEq()]):
                yield ast.unparse(loop.test)
            case ast.Call(func=ast.Name(id="any" | "all")):
                yield ast.unparse(loop.test)
            case ast.Name(id="changed" | "news" | "again"):
                yield ast.unparse(loop.test)
            case _:
                pass


def test_loops_that_end_by_an_equality_have_a_bound() -> None:
    """Such a loop is a `for _ in rounds(...)`, or goes up one of the chains that are listed."""
    folder = Path(fragir.passes.__file__).parent
    texts = {file: file.read_text() for file in folder.rglob("*.py")}
    found = {
        (file.relative_to(folder).as_posix(), condition)
        for file, text in texts.items()
        if "while " in text
        for condition in equality_loops(text)
    }
    assert found == CHAINS


def test_the_search_finds_such_loops() -> None:
    text = "while a[1:n] == b[1:n]:\n    n += 1\nwhile True:\n    pass\nwhile x < 3:\n    x += 1"
    assert list(equality_loops(text)) == ["a[1:n] == b[1:n]", "True"]


def test_a_bound_is_a_fault_that_is_told() -> None:
    with pytest.raises(AssertionError, match="the sum did not settle in 10 rounds"):
        for _ in rounds("the sum", 10):
            pass


# --- one of everything ----------------------------------------------------------------------------


def compiled(k: KernelBuilder, target: str) -> fragir.Kernel:
    return call_limited(SECONDS, lambda: k.compile(target))


ENDS: dict[str, Callable[[KernelBuilder, fragir.Tile], object]] = {
    "convert": lambda _, x: x.T,
    "product": lambda k, x: k.mma(x, x).cast(f16),
    "columns": lambda _, x: x.cast(f32).sum(0).cast(f16).broadcast(0, 32),
    "scan": lambda _, x: x.cast(f32).cumsum(0).cast(f16),
}


DEAD = [places for n in (1, 2, 3) for places in product((True, False), repeat=n)]


@pytest.mark.parametrize(
    ("dead", "end"), [*((dead, "convert") for dead in DEAD), *(((True,), end) for end in ENDS)]
)
def test_dead_allocations_at_every_place(dead: tuple[bool, ...], end: str) -> None:
    """So many allocations, of which some are read to the end and some are dead before: the
    conversions behind have those."""
    with fragir.kernel("k", warps=(2, 2), target="sm_80") as k:
        a, d = k.memory("a", f16, (32, 32)), k.memory("d", f16, (32, 32))
        memories = [k.shared((32, 32), f16) for _ in dead]
        for memory in memories:
            k.copy(a, (0, 0), memory)
        k.barrier()
        x = k.load(memories[0], (0, 0), shape=(32, 32))
        for memory in memories[1:]:
            x = x + k.load(memory, (0, 0), shape=(32, 32))
        k.barrier()
        y = ENDS[end](k, x)
        assert isinstance(y, fragir.Tile)
        for memory, over in zip(memories, dead, strict=True):
            if not over:
                y = y + k.load(memory, (0, 0), shape=(32, 32))
        k.store(y, d, (0, 0))
    compiled(k, "sm_80")


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(("slots", "parts"), [(1, 1), (2, 1), (2, 2)])
@pytest.mark.parametrize("turns", [1, None])
def test_one_ring(target: str, slots: int, turns: int | None, parts: int) -> None:
    with fragir.kernel("k", warps=(2, 2), target=target) as k:
        a, b = k.memory("a", f16, ("m", "k")), k.memory("b", f16, ("k", "n"))
        c = k.memory("c", f32, ("m", "n"))
        ring = k.ring(slots, [k.part((32, 32), f16, swizzle=64) for _ in range(parts)])
        end = k.size("k") if turns is None else 32 * turns
        with k.loop(0, end, 32, acc=k.fill(0, (32, 32), f32)) as loop:
            slot = ring.acquire()
            for part, memory in zip(slot.parts, (a, b), strict=False):
                at = (0, loop.index) if memory is a else (loop.index, 0)
                k.copy(memory, at, part, masked=True)
            slot.publish()
            slot = ring.wait()
            x = k.load(slot.parts[0], (0, 0), shape=(32, 32))
            y = k.load(slot.parts[-1], (0, 0), shape=(32, 32))
            slot.release()
            loop.acc = k.mma(x, y, loop.acc)
        k.store(loop.acc, c, (0, 0), masked=True)
    compiled(k, target)


@pytest.mark.parametrize("shape", [(1, 1), (2, 1), (1, 32)])
@pytest.mark.parametrize("warps", [(1, 1), (2, 2)])
def test_one_element(shape: tuple[int, ...], warps: tuple[int, int]) -> None:
    with fragir.kernel("k", warps=warps, target="sm_80") as k:
        a, d = k.memory("a", f32, shape), k.memory("d", f32, shape)
        memory = k.shared(shape, f32)
        k.store(k.load(a, [0] * len(shape), shape=shape), memory, [0] * len(shape))
        k.barrier()
        x = k.load(memory, [0] * len(shape), shape=shape)
        k.barrier()
        with k.loop(0, 1, 1, x=x) as loop:
            y = loop.x.transpose(*reversed(range(len(shape)))).reshape(-1).cumsum(0)
            loop.x = y.reshape(*shape) + loop.x.max()
        k.store(loop.x, d, [0] * len(shape))
    compiled(k, "sm_80")


@pytest.mark.parametrize("turns", [2, 16, None])
def test_loops_in_loops(turns: int | None) -> None:
    """What holds in them is found without going through each turn of each."""
    with fragir.kernel("k", warps=(2, 2), target="sm_80") as k:
        a, c = k.memory("a", f16, ("m", "k")), k.memory("c", f32, (32, 32))
        ring = k.ring(2, [k.part((32, 32), f16, swizzle=64)])
        acc, end = k.fill(0, (32, 32), f32), turns or k.size("k")
        loops = [k.loop(0, end, 1) for _ in range(7)]
        with ExitStack() as stack:
            for loop in loops:
                stack.enter_context(loop)
            slot = ring.acquire()
            k.copy(a, (0, 0), slot.parts[0], masked=True)
            slot.publish()
            slot = ring.wait()
            x = k.load(slot.parts[0], (0, 0), shape=(32, 32))
            slot.release()
            k.store(k.mma(x, x.T, acc), c, (0, 0))
    compiled(k, "sm_80")


def test_calls_of_calls_are_counted_before_they_are_inlined() -> None:
    names = [f"f{i}" for i in range(40)]
    functions = [
        f"func.func {'private ' if name != 'f0' else ''}@{name}(%m: memref<4xf32>) {{\n"
        + f"  func.call @{callee}(%m) : (memref<4xf32>) -> ()\n" * 2
        + "  func.return\n}"
        for name, callee in pairwise(names)
    ]
    functions.append(
        "func.func private @f39(%m: memref<4xf32>) {\n  %c = arith.constant 0 : index\n"
        "  %z = arith.constant 1.0 : f32\n  memref.store %z, %m[%c] : memref<4xf32>\n"
        "  func.return\n}"
    )
    with pytest.raises(fragir.FragirError, match=rf"operations; .*\({LARGEST} at most\)") as caught:
        call_limited(SECONDS, lambda: fragir.compile("\n".join(functions), entry="f0"))
    assert caught.value.line == 1
