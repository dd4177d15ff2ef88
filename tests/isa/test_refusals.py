"""ptxas and the table agree on a grid of spellings, most of them illegal.

Every combination of shapes, types and qualifiers is written with the register counts that its
sizes would imply, so that a refusal is about the combination. The default run asks about a
sample; FRAGIR_FULL_SWEEP=1 asks about the whole grid.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product
from typing import Protocol

import pytest

from fragir import isa
from fragir.isa import Form
from fragir.isa.model import BITS
from fragir.isa.registry import resolve
from fragir.isa.spelling import mnemonic, normal
from fragir.isa.targets import NEWEST_VERSION

AB = (
    *((t, t) for t in ("f16", "bf16", "tf32", "f64", "s8", "u8", "s4", "b1", "e4m3", "e2m1")),
    *(("f16", "bf16"), ("s8", "u8"), ("u4", "s4"), ("s8", "s4"), ("e4m3", "e5m2")),
    *(("e5m2", "e2m3"), ("e4m3", "f16"), ("e3m2", "e2m1"), ("s8", "b1")),
)
DC = (
    *((t, t) for t in ("f16", "f32", "s32", "f64", "bf16")),
    *(("f32", "f16"), ("f16", "f32")),
)
WIDE = tuple(f"m16n8k{k}" for k in (4, 8, 16, 32, 64, 128, 256))
MMA_SHAPES = ("m8n8k4", "m8n8k8", "m8n8k16", "m8n8k32", "m8n8k128", "m8n16k16", *WIDE)
WGMMA_N = (4, 8, 12, 24, 32, 40, 56, 72, 224, 240, 256, 264)
PLAIN: tuple[frozenset[str], ...] = (
    frozenset(),
    frozenset(("satfinite",)),
    frozenset(("rz",)),
    frozenset(("xor", "popc")),
    frozenset(("and", "popc")),
    frozenset(("kind::f8f6f4",)),
)
SCALED = tuple(
    frozenset((f"kind::{kind}", "block_scale", f"scale_vec::{blocks}X"))
    for kind, blocks in product(("mxf8f6f4", "mxf4", "mxf4nvf4"), (1, 2, 4))
)


class Assembler(Protocol):
    def refusals(self, statements: list[str], target: str, version: str) -> list[str | None]: ...


def registers(name: str, element: str, size: int, bits: int = 0) -> tuple[str, str]:
    """(a declaration, a vector) of `size` elements over the 32 lanes; at least one register."""
    width = 64 if element == "f64" else 32
    count = max(1, size * (bits or BITS[element]) // (32 * width))
    kind = element if element in ("f32", "f64", "s32") else "b32"
    vector = ", ".join(f"%{name}{i}" for i in range(count))
    return f".reg .{kind} %{name}<{count}>;", f"{{{vector}}}"


def mma_forms(family: str) -> Iterator[Form]:
    for shape, (a, b), (d, c) in product(MMA_SHAPES, AB, DC):
        for flags in PLAIN:
            for layouts in (("row", "col"), ("col", "row")):
                if layouts == ("row", "col") or not flags:
                    yield Form(family, shape, layouts, (d, a, b, c), flags)
    narrow = [pair for pair in AB if pair[0].startswith("e")]
    for shape, (a, b), flags, scale in product(MMA_SHAPES[-4:], narrow, SCALED, ("ue8m0", "ue4m3")):
        for d in ("f32", "f16"):
            yield Form(family, shape, ("row", "col"), (d, a, b, d, scale), flags)


def mma_statement(form: Form) -> str:
    m, n, k = (int(x) for x in form.shape[1:].replace("n", " ").replace("k", " ").split())
    d, a, b, c, *scale = form.types
    packed = bool(form.flags & {"kind::mxf4", "kind::mxf4nvf4"})
    wide = {t: 8 for t in ("e2m1", "e2m3", "e3m2")} if not packed else {}
    sparse = form.family != "mma"
    products = 4 if form.shape == "m8n8k4" and a != "f64" else 1
    operands = [
        registers("d", d, m * n * products),
        registers("a", a, m * k * products // (2 if sparse else 1), wide.get(a, 0)),
        registers("b", b, n * k * products, wide.get(b, 0)),
        registers("c", c, m * n * products),
    ]
    words = [vector for _, vector in operands] + (["%e", "0"] if sparse else [])
    words += ["%e", "{0, 0}", "%e", "{0, 0}"] if scale else []
    declared = " ".join(declaration for declaration, _ in operands)
    return f".reg .b32 %e; {declared} {mnemonic(form)} {', '.join(words)};"


def wgmma_forms(family: str) -> Iterator[Form]:
    for n, k, (a, b), d, flags in product(
        WGMMA_N, (8, 16, 32, 64, 256), AB, ("f16", "f32", "s32", "bf16"), PLAIN[:5]
    ):
        yield Form(family, f"m64n{n}k{k}", (), (d, a, b), flags)


def wgmma_statement(form: Form) -> str:
    n = int(form.shape[4:].partition("k")[0])
    d, a, _ = form.types
    held, vector = registers("d", d, 64 * n // 4)
    sparse = ["%e", "0"] if form.family == "wgmma.sp" else []
    tail = {"f16": 5, "bf16": 5, "tf32": 3, "e4m3": 3, "e5m2": 3, "e2m1": 3, "e3m2": 3}.get(a, 1)
    words = [vector, "l1", "l2", *sparse, *("1", "1", "1", "0", "0")[:tail]]
    return f".reg .b32 %e; {held} {mnemonic(form)} {', '.join(words)};"


def copy_forms(family: str) -> Iterator[Form]:
    types = ("b16", "b8", "b32", "b8x16.b6x16_p32", "b8x16.b4x16_p64")
    for shape, num, trans, element in product(
        ("m8n8", "m16n16", "m8n16", "m16n8"), ("x1", "x2", "x4", "x8"), (False, True), types
    ):
        flags = frozenset((num, "trans") if trans else (num,))
        yield Form(family, shape, (), (element,), flags)


def copy_statement(form: Form) -> str:
    num = next(int(f[1:]) for f in form.flags if f[0] == "x")
    count = num * (2 if form.shape == "m16n16" else 1)
    vector = "{" + ", ".join(f"r{i}" for i in range(count)) + "}"
    words = [vector, "[r90]"] if form.family == "ldmatrix" else ["[r90]", vector]
    return f"{mnemonic(form)} {', '.join(words)};"


def memory_forms(family: str) -> Iterator[Form]:
    shapes = ("32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2", "32x64b")
    nums = [f"x{2**i}" for i in range(8)]
    packs = ("", "pack::16b", "unpack::16b", "min", "max")
    for shape, num, pack, element in product(shapes, nums, packs, ("b32", "b16", "f32")):
        yield Form(family, shape, (), (element,), frozenset(f for f in (num, pack) if f))


def memory_statement(form: Form) -> str:
    num = next(int(f[1:]) for f in form.flags if f[0] == "x")
    each = {"16x128b": 2, "16x256b": 4}.get(form.shape, 1)
    held, vector = f".reg .b32 %t<{num * each}>;", ", ".join(f"%t{i}" for i in range(num * each))
    words = [f"{{{vector}}}", *(["r1"] if form.family.endswith("red") else []), "[r0]"]
    words += ["0"] if form.shape == "16x32bx2" else []
    if form.family == "tcgen05.st":
        words = [*words[1:], words[0]]
    return f"{held} {mnemonic(form)} {', '.join(words)};"


GRIDS = {
    "mma": (mma_forms, mma_statement),
    "mma.sp": (mma_forms, mma_statement),
    "mma.sp::ordered_metadata": (mma_forms, mma_statement),
    "wgmma": (wgmma_forms, wgmma_statement),
    "wgmma.sp": (wgmma_forms, wgmma_statement),
    "ldmatrix": (copy_forms, copy_statement),
    "stmatrix": (copy_forms, copy_statement),
    "tcgen05.ld": (memory_forms, memory_statement),
    "tcgen05.st": (memory_forms, memory_statement),
    "tcgen05.ld.red": (memory_forms, memory_statement),
}
TARGETS = {
    "mma": ("sm_75", "sm_80", "sm_89", "sm_100a", "sm_120a"),
    "wgmma": ("sm_90a",),
    "tcgen05": ("sm_100a", "sm_103a"),
}
SAMPLE = 1000
SLOW = 200  # of tcgen05, where ptxas stops at the first few errors


def lenient(form: Form) -> bool:
    """ptxas lets the operation of b1 stand on dense 4-bit integers, where it means nothing."""
    return form.family == "mma" and form.types[1] in ("s4", "u4") and "popc" in form.flags


@pytest.mark.parametrize("family", GRIDS)
def test_the_grid(ptxas: Assembler, full_sweep: bool, family: str) -> None:
    generate, write = GRIDS[family]
    forms = list({normal(form): None for form in generate(family)})
    sample = SLOW if family.startswith("tcgen05") else SAMPLE
    if not full_sweep and len(forms) > sample:
        forms = random.Random(0).sample(forms, sample)
    wrong: list[str] = []
    for target in TARGETS.get(family.partition(".")[0], ("sm_80", "sm_90a", "sm_120a")):
        refused = ptxas.refusals([write(form) for form in forms], target, NEWEST_VERSION)
        for form, reason in zip(forms, refused, strict=True):
            found = resolve(form)
            legal = found is not None and target in found.targets
            if lenient(form):
                continue
            if legal != (reason is None):
                wrong.append(f"{target}: table {legal}, ptxas {reason}: {write(form)}")
    assert not wrong, "\n".join(wrong)


def test_aliases_are_spellings_of_ptxas(ptxas: Assembler) -> None:
    """Each alias of each instruction assembles wherever the canonical spelling does."""
    from fragir.isa.emit import statement

    asked: dict[str, list[str]] = {}
    for found in isa.instructions():
        if found.refused or (found.family.startswith("wgmma") and found.shape[1] != 8):
            continue
        target = [t for t in found.targets if t not in ("sm_70", "sm_72")][-1]
        declared = " ".join(
            f".reg .{o.registers.type} %{o.name.replace('-', '_')}<{o.registers.count}>;"
            for o in found.operands.values()
            if o.registers.cls in ("fragment", "metadata", "scale")
        )
        if found.family.startswith("wgmma"):
            declared += " .reg .b64 %b;"
        words = statement(found).partition(" ")[2]
        for alias in found.aliases:
            text = f".reg .b32 %address; {declared} {alias} {words}"
            asked.setdefault(target, []).append(text)
    for target, statements in asked.items():
        refused = ptxas.refusals(statements, target, NEWEST_VERSION)
        assert [x for x in zip(statements, refused, strict=True) if x[1] is not None] == []
