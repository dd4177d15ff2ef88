"""Programs whose warps have roles: each with tiles, conversions, memory and barriers of its own."""

from __future__ import annotations

from operator import mul
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import FloatAttr, f32
from xdsl.ir import Block, Region

import fragir
from fragir.compiler import Kernel, parse
from fragir.dialects import frag
from fragir.dialects.frag.roles import Role
from fragir.errors import FragirError
from fragir.passes.lowering.roles import shared_out
from fragir.reference import evaluate
from tests.properties.judge import examples, judge

N = 64
X = f"memref<{N}x{N}xf16>"
HALVES, FLOATS = f"!frag.tile<{N}x{N}xf16>", f"!frag.tile<{N}x{N}xf32>"
SHARED = f"memref<{N}x{N}xf16, #frag.shared<swizzle = 128>>"

VECTOR = f"memref<{N}xf32>"

#: What a role does with %x, and the memory %y that it writes.
BODIES = {
    "sums": (
        VECTOR,
        f"""
    %t = frag.load %x[0, 0] : {X} -> {HALVES}
    %f = frag.cast %t : {HALVES} -> {FLOATS}
    %s = frag.reduce add dim 1 %f : {FLOATS} -> !frag.tile<{N}xf32>
    frag.store %s, %y[0] : !frag.tile<{N}xf32>, memref<{N}xf32>
""",
    ),
    "columns": (
        VECTOR,
        f"""
    %t = frag.load %x[0, 0] : {X} -> {HALVES}
    %f = frag.cast %t : {HALVES} -> {FLOATS}
    %s = frag.reduce add dim 0 %f : {FLOATS} -> !frag.tile<{N}xf32>
    frag.store %s, %y[0] : !frag.tile<{N}xf32>, memref<{N}xf32>
""",
    ),
    "products": (  # the sums of one product go to the next: through memory, if warps share a row
        f"memref<{N}x{N}xf32>",
        f"""
    %t = frag.load %x[0, 0] : {X} -> {HALVES}
    %b = frag.load %x[0, 0] transposed : {X} -> {HALVES}
    %zero = arith.constant 0.0 : f32
    %z = frag.fill %zero : {FLOATS}
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %d = scf.for %i = %c0 to %c2 step %c1 iter_args(%d0 = %z) -> ({FLOATS}) {{
      %s = frag.mma %t, %b, %z : {HALVES}, {HALVES}, {FLOATS} -> {FLOATS}
      %p = frag.cast %s : {FLOATS} -> {HALVES}
      %d1 = frag.mma %p, %b, %d0 : {HALVES}, {HALVES}, {FLOATS} -> {FLOATS}
      scf.yield %d1 : {FLOATS}
    }}
    frag.store %d, %y[0, 0] : {FLOATS}, memref<{N}x{N}xf32>
""",
    ),
    "staged": (
        X,
        f"""
    %m = memref.alloc() : {SHARED}
    frag.copy async %x[0, 0] to %m[] : {X} to {SHARED}
    frag.commit
    frag.wait 0
    frag.barrier
    %t = frag.load %m[0, 0] transposed : {SHARED} -> {HALVES}
    frag.barrier
    frag.store %t, %m[0, 0] : {HALVES}, {SHARED}
    frag.barrier
    %u = frag.load %m[0, 0] : {SHARED} -> {HALVES}
    frag.store %u, %y[0, 0] : {HALVES}, {X}
""",
    ),
    "nothing": (X, ""),
}


class RandomRole(NamedTuple):
    body: str
    warps: tuple[int, int]
    groups: bool
    registers: int | None

    def head(self, name: str) -> str:
        kind = "warpgroups" if self.groups else "warps"
        registers = "" if self.registers is None else f"registers {self.registers}"
        return f'"{name}" {kind} {list(self.warps)} {registers}'


def program(roles: list[RandomRole]) -> str:
    """A kernel of these roles, each of which reads x and writes a matrix of its own."""
    memories = ", ".join(f"%y{i}: {BODIES[role.body][0]}" for i, role in enumerate(roles))
    regions = ", ".join(
        f"{role.head(f'r{i}')} {{{BODIES[role.body][1].replace('%y[', f'%y{i}[')}}}"
        for i, role in enumerate(roles)
    )
    return f"func.func @f(%x: {X}, {memories}) {{\n  frag.roles {regions}\n  func.return\n}}"


@st.composite
def random_roles(draw: st.DrawFn) -> list[RandomRole]:
    moved = draw(st.booleans())
    groups = draw(st.booleans())
    bodies = draw(st.lists(st.sampled_from(sorted(BODIES)), min_size=1, max_size=2))
    bodies.insert(draw(st.integers(0, len(bodies))), "staged")
    found: list[RandomRole] = []
    for body in bodies:
        whole = groups and draw(st.booleans())
        shapes = [(1, 1)] if whole else [(1, 1), (2, 1), (1, 2), (4, 1), (2, 2)]
        registers = draw(st.sampled_from([None, 40, 96])) if moved else None
        found.append(RandomRole(body, draw(st.sampled_from(shapes)), whole, registers))
    return found


@examples(2)
@given(random_roles(), st.sampled_from(["sm_75", "sm_80", "sm_90a", "sm_120a"]), st.integers(0, 99))
def test_roles_compute_what_they_mean(roles: list[RandomRole], target: str, seed: int) -> None:
    text = program(roles)
    kernel = judge(text, target, seed=seed)
    check_schedules(kernel, roles, seed)


def check_schedules(kernel: Kernel, roles: list[RandomRole], seed: int) -> None:
    """No check finds anything in other orders of copies, either."""
    x = np.random.default_rng(seed).standard_normal((N, N)).astype(np.float16)
    outputs = [
        np.zeros(N if BODIES[role.body][0] == VECTOR else (N, N), _type(role)) for role in roles
    ]
    report = kernel.launch(
        (1, 1, 1), None, x, *outputs, on="emulator", check=True, schedule=seed, asynchrony="early"
    )
    assert report.findings == []


def _type(role: RandomRole) -> type[np.generic]:
    return np.float16 if BODIES[role.body][0] == X else np.float32


DOUBLED = """
      %t = frag.load %m[0, 0] : memref<16x32xf32, #frag.shared> -> !frag.tile<16x32xf32>
      %v = frag.map %t : !frag.tile<16x32xf32> -> !frag.tile<16x32xf32> {
      ^bb0(%a: f32):
        %b = arith.addf %a, OTHER : f32
        frag.yield %b : f32
      }
      frag.store %v, %m[0, 0] : !frag.tile<16x32xf32>, memref<16x32xf32, #frag.shared>"""
MEMORY = "memref<16x32xf32, #frag.shared>"


def in_turn(roles: int, warps: list[int], turns: list[int], first: int = 0) -> str:
    """Roles that change one memory in turn: x -> 2 x, x -> x + 1, x -> x + 1."""
    regions: list[str] = []
    for i in range(roles):
        change = DOUBLED.replace("OTHER", "%one" if i else "%a")
        start = ""
        if i == first:
            start = f"frag.store %ones, %m[0, 0] : !frag.tile<16x32xf32>, {MEMORY}\n frag.barrier"
        regions.append(
            f"""
  "r{i}" warps [{warps[i]}, 1] {{
    %ones = frag.fill %one : !frag.tile<16x32xf32>
    {start}
    %n = arith.constant {turns[i]} : index
    scf.for %i = %c0 to %n step %c1 {{
      frag.take_turn "memory"{change}
      frag.pass_turn "memory"
      frag.store %v, %y[%row, 0] : !frag.tile<16x32xf32>, memref<48x32xf32>
    }}
  }}""".replace("%row", str(16 * i))
        )
    return f"""
func.func @f(%y: memref<48x32xf32>) {{
  %m = memref.alloc() : {MEMORY}
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  frag.roles {", ".join(regions)}
  func.return
}}"""


@pytest.mark.parametrize("roles", [2, 3])
@pytest.mark.parametrize("target", ["sm_75", "sm_90a"])
def test_turns_are_taken_in_order(roles: int, target: str) -> None:
    """What one role has written in its turn, the next one reads."""
    kernel = fragir.compile(in_turn(roles, [1, 2, 4], [3, 3, 3]), target=target)
    assert kernel.assembled.warnings == []
    x, wanted = 1.0, np.zeros((48, 32), np.float32)
    for _ in range(3):
        for role in range(roles):
            x = x + 1 if role else 2 * x
            wanted[16 * role : 16 * role + 16] = x
    for seed in range(3):
        y = np.zeros((48, 32), np.float32)
        report = kernel.launch((1, 1, 1), None, y, on="emulator", check=True, schedule=seed)
        assert report.findings == []
        assert np.array_equal(y, wanted)


def test_a_turn_that_never_comes_is_an_error() -> None:
    with pytest.raises(FragirError, match="the turn at 'memory' never comes"):
        meaning(in_turn(2, [1, 1], [1, 3]))


def meaning(text: str) -> None:
    """Runs a program by its meaning."""
    module = parse(text)
    function = next(op for op in module.ops if isinstance(op, func.FuncOp))
    evaluate(function, [np.zeros((48, 32), np.float32)], target="sm_90a")


ROLES = """
func.func @f(%x: memref<128x64xf16>, %y: memref<128x64xf16>) {{
  frag.roles "idle" warps [1, 1] {} {{
  }}, "copies" warpgroups [2, 1] {} {{
    %t = frag.load %x[0, 0] : memref<128x64xf16> -> !frag.tile<128x64xf16>
    frag.store %t, %y[0, 0] : !frag.tile<128x64xf16>, memref<128x64xf16>
  }}
  func.return
}}"""


@pytest.mark.parametrize(
    ("asked", "moved"),
    [
        (("", ""), ["dec 40", "inc 232"]),
        (("registers 24", "registers 240"), ["dec 24", "inc 240"]),
        (("registers 64", ""), ["dec 64", "inc 216"]),
        (("registers 56", "registers 168"), ["dec 56"]),
    ],
)
def test_registers_are_moved(asked: tuple[str, str], moved: list[str]) -> None:
    """What some warpgroups give back the others get; ptxas obeys, and so does the emulator."""
    kernel = fragir.compile(ROLES.format(*asked), target="sm_90a")
    found = [line.split(".", 1)[1] for line in kernel.ptx.splitlines() if "setmaxnreg" in line]
    assert found == [f"{how}".replace(" ", ".sync.aligned.u32 ") + ";" for how in moved]
    assert kernel.block == (384, 1, 1)
    assert kernel.assembled.warnings == []
    (info,) = kernel.assembled.entries.values()
    assert info.registers == 168
    x, y = np.ones((128, 64), np.float16), np.zeros((128, 64), np.float16)
    report = kernel.launch((1, 1, 1), None, x, y, on="emulator", check=True)
    assert report.findings == []
    assert np.array_equal(x, y)


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_120"])
def test_registers_stay_where_no_machine_moves_them(target: str) -> None:
    kernel = fragir.compile(ROLES.format("registers 24", "registers 240"), target=target)
    assert "setmaxnreg" not in kernel.ptx
    assert ".minnctapersm" not in kernel.ptx
    (note,) = kernel.notes
    assert note.startswith(f"{target} cannot move registers between warps")


@pytest.mark.parametrize(
    ("groups", "asked", "found"),
    [
        ((1, 2), (None, None), [40, 232]),
        ((1, 3), (None, None), [40, 152]),
        ((2, 2), (None, 224), [32, 224]),
        ((1, 1, 1), (None, 240, None), [40, 240, 224]),
        ((1, 4), (24, None), [24, 112]),
    ],
)
def test_registers_are_shared_out(
    groups: tuple[int, ...], asked: tuple[int | None, ...], found: list[int]
) -> None:
    """The first role has no tiles. All together have what the block was launched with."""
    roles: list[Role] = []
    for number, (count, registers) in enumerate(zip(groups, asked, strict=True)):
        block = Block()
        if number:
            constant = arith.ConstantOp(FloatAttr(0.0, f32))
            tile = frag.TileType((16, 8), f32)
            block.add_ops([constant, frag.FillOp(constant.result, tile)])
        roles.append(Role(f"r{number}", Region(block), None, (count, 1), registers))
    extents = [128 * count for count in groups]
    assert shared_out(roles, extents) == found
    threads = sum(extents)
    assert sum(map(mul, found, extents)) <= 65536 // threads // 8 * 8 * threads


@pytest.mark.parametrize("warps", [(1, 1), (2, 1)])
@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_a_later_role_converts_in_memory_of_its_own(warps: tuple[int, int], target: str) -> None:
    """Its threads are counted from its first one, also where an address flips bits of them."""
    with fragir.kernel("k", target=target) as k:
        a, b = k.memory("a", fragir.f32, (32, 32)), k.memory("b", fragir.f32, (32, 32))
        c, d = k.memory("c", fragir.f32, (32, 32)), k.memory("d", fragir.f32, (32, 32))
        for name, source, result in (("first", a, b), ("second", c, d)):
            with k.role(name, warps=warps):
                x = k.load(source, (0, 0), shape=(32, 32))
                k.store(x.transpose(1, 0), result, (0, 0))
    kernel = k.compile(target)
    given = [np.random.default_rng(n).random((32, 32), np.float32) for n in range(2)]
    found = [np.zeros((32, 32), np.float32) for _ in range(2)]
    arrays = (given[0], found[0], given[1], found[1])
    report = kernel.launch((1, 1, 1), None, *arrays, on="emulator", check=True, target=target)
    assert report.findings == []
    assert all(np.array_equal(y, x.T) for x, y in zip(given, found, strict=True))
