"""Programs whose warps have roles: each with tiles, conversions, memory and barriers of its own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fragir.compiler import Kernel
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
    bodies = draw(st.lists(st.sampled_from(sorted(BODIES)), min_size=1, max_size=3))
    bodies.insert(draw(st.integers(0, len(bodies))), "staged")
    found: list[RandomRole] = []
    for body in bodies:
        whole = groups and draw(st.booleans())
        shapes = [(1, 1)] if whole else [(1, 1), (2, 1), (1, 2), (4, 1), (2, 2)]
        registers = draw(st.sampled_from([None, 40, 96])) if moved else None
        found.append(RandomRole(body, draw(st.sampled_from(shapes)), whole, registers))
    return found


@examples(4)
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
