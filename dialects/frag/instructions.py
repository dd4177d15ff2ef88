"""Which instruction multiplies which tiles: short names, the choice, and why there is none."""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING

from xdsl.ir import Attribute

from fragir import isa
from fragir.dialects.elements import NARROW_FLOATS, element_name, multiplied_as
from fragir.dialects.frag.words import (
    PACKED,
    PLAIN,
    SCALED_SHAPES,
    How,
    check_how,
    check_scales,
)
from fragir.errors import FragirError
from fragir.isa.table import added, derived
from fragir.isa.targets import number

if TYPE_CHECKING:
    from fragir.dialects.frag.types import TileType

# Shapes of mma.sync to try for each type of A, the largest K first: fewer instructions.
SHAPES: dict[str, tuple[str, ...]] = {
    "f16": ("m16n8k16", "m16n8k8"),
    "bf16": ("m16n8k16", "m16n8k8"),
    "tf32": ("m16n8k8", "m16n8k4"),
    "f64": ("m16n8k16", "m16n8k8", "m16n8k4", "m8n8k4"),
    "s8": ("m16n8k32", "m16n8k16", "m8n8k16"),
    "u8": ("m16n8k32", "m16n8k16", "m8n8k16"),
    "e4m3": ("m16n8k32", "m16n8k16"),
    "e5m2": ("m16n8k32", "m16n8k16"),
    "e3m2": ("m16n8k32",),
    "e2m3": ("m16n8k32",),
    "e2m1": ("m16n8k32",),
    "s4": ("m16n8k64", "m16n8k32", "m8n8k32"),
    "u4": ("m16n8k64", "m16n8k32", "m8n8k32"),
    "b1": ("m16n8k256", "m16n8k128", "m8n8k128"),
}
# Accumulators of each type of A, the usual one first.
ACCUMULATORS: dict[str, tuple[str, ...]] = {
    "f16": ("f32", "f16"),
    "bf16": ("f32",),
    "tf32": ("f32",),
    "f64": ("f64",),
    "s8": ("s32",),
    "u8": ("s32",),
    "e4m3": ("f32", "f16"),
    "e5m2": ("f32", "f16"),
    "e3m2": ("f32", "f16"),
    "e2m3": ("f32", "f16"),
    "e2m1": ("f32", "f16"),
    "s4": ("s32",),
    "u4": ("s32",),
    "b1": ("s32",),
}
# Types of A and B that multiply each other, besides each itself.
MIXABLE: tuple[frozenset[str], ...] = (
    frozenset({"s8", "u8"}),
    frozenset({"s4", "u4"}),
    frozenset({"e4m3", "e5m2", *NARROW_FLOATS}),
)
WGMMA_K = {
    **{"f16": 16, "bf16": 16, "tf32": 8, "s8": 32, "u8": 32, "e4m3": 32, "e5m2": 32},
    "b1": 256,
}
QUAD = "m8n8k4"  # with f16: four products a warp
_NAME = re.compile(r"(m(\d+)n(\d+)k(\d+))\.([a-z]\w*)(?:\.(row|col))?(?:\.(row|col))?")


@derived
def shapes_of(a: str, usual: tuple[str, ...], family: str = "mma") -> tuple[str, ...]:
    """The `usual` shapes for a type of A and those of registered instructions, large K first."""
    own = {form.shape for form in added(family) if form.types[1] == multiplied_as(a)}
    if not own:
        return usual
    return tuple(sorted((*usual, *sorted(own - {*usual})), key=_products, reverse=True))


def _products(shape: str) -> int:
    """Multiplications in one instruction: for one M and N, the larger K is the larger number."""
    return prod(map(int, re.findall(r"\d+", shape)))


def mma(
    shape: str,
    a: str,
    b: str,
    c: str,
    d: str,
    layouts: tuple[str, str] = ("row", "col"),
    how: How = PLAIN,
) -> isa.Instruction:
    """The mma.sync or mma.sp of this shape, these element types and words.

    Single bits are anded unless told otherwise.
    """
    kind = how.kind or _default_kind(a, b, how, shape)
    return isa.find(
        how.sparse or "mma",
        shape=shape,
        a=multiplied_as(a),
        b=multiplied_as(b),
        c=c,
        d=d,
        layouts=layouts,
        satfinite=how.satfinite,
        kind=kind,
        rounding=how.rounding if how.rounding != "rn" else "",
        operation=(how.bitop or "and") if a == "b1" else "",
        scale=how.scale or ("ue8m0" if a == PACKED else ""),
        scale_vec=_scale_vec(kind, how, shape),
    )


def _default_kind(a: str, b: str, how: How, shape: str) -> str:
    """The kind of the narrow floats and of what is scaled; of packed ones also without a scale,
    as a layout's name means them."""
    if a == PACKED:
        plain = how.scale in ("", "ue8m0") and _scale_vec("mxf4", how, shape) == "2X"
        return "mxf4" if plain else "mxf4nvf4"
    if how.scale:
        return "mxf8f6f4"
    return "f8f6f4" if {a, b} & NARROW_FLOATS else ""


def _scale_vec(kind: str, how: How, shape: str) -> str:
    """How many scales a row of one instruction has: `2X`; empty for a kind without scales."""
    if not kind.startswith("mx"):
        return ""
    if not how.block:
        return "1X" if kind == "mxf8f6f4" else "2X"
    return f"{int(shape.rpartition('k')[2]) // how.block}X"


def wgmma(n: int, a: str, b: str, d: str, how: How = PLAIN) -> isa.Instruction:
    """The wgmma, sparse where `how` says so, with N = n of these element types."""
    k = WGMMA_K[a] * (2 if how.sparse else 1)
    return isa.find(
        "wgmma.sp" if how.sparse else "wgmma",
        shape=f"m64n{n}k{k}",
        a=a,
        b=b,
        d=d,
        satfinite=how.satfinite,
        operation="and" if a == "b1" else "",
    )


def parse_name(name: str) -> tuple[str, str, tuple[str, ...]]:
    """`m8n8k4.f16.row.col` as (shape, type, storage orders)."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise FragirError(
            f"'{name}' names no instruction", hint="write shape and type, as in m16n8k16.f16"
        )
    return match[1], match[5], tuple(word for word in match.groups()[5:] if word)


@derived
def fragment_instruction(name: str, operand: str) -> isa.Instruction:
    """The instruction whose operand the layout `#frag.mma<name, operand>` means."""
    if operand not in ("a", "b", "c"):
        raise FragirError(f"no operand '{operand}'", hint="write a, b or c (d has c's layout)")
    shape, type_, orders = parse_name(name)
    if shape.startswith("m64"):
        if type_ not in WGMMA_K:
            raise FragirError(f"no wgmma multiplies {type_}", hint=f"it takes {', '.join(WGMMA_K)}")
        instruction = wgmma(int(shape[4 : shape.index("k")]), type_, type_, ACCUMULATORS[type_][0])
        if shape != _shape_name(instruction):
            raise FragirError(f"wgmma of {type_} has k{WGMMA_K[type_]}, not {shape}")
        if operand == "b":
            raise FragirError("wgmma's B lies in shared memory and has no layout over lanes")
        return instruction
    if shape == QUAD and operand == "c" and type_ in ("f16", "f32"):
        return mma(QUAD, "f16", "f16", type_, type_)
    if type_ == PACKED:
        return mma(shape, type_, type_, "f32", "f32")
    if type_ not in SHAPES:
        raise FragirError(f"no mma multiplies {type_}", hint=f"it takes {', '.join(SHAPES)}")
    accumulator = ACCUMULATORS[type_][0]
    if shape != QUAD or type_ == "f64":
        if orders:
            raise FragirError(f"{name}: only m8n8k4.f16 has a choice of row and col")
        return mma(shape, type_, type_, accumulator, accumulator)
    if len(orders) != 1:
        raise FragirError(f"{name}: write m8n8k4.f16.row or m8n8k4.f16.col for operand {operand}")
    layouts = (orders[0], "col") if operand == "a" else ("row", orders[0])
    return mma(QUAD, "f16", "f16", "f32", "f32", layouts)


def operand_name(name: str, operand: str, accumulator: str) -> str:
    """The name in the layout of one operand of the instruction called `name`."""
    shape, type_, orders = parse_name(name)
    if shape != QUAD or type_ == "f64":
        return f"{shape}.{type_}"
    if operand == "c":
        return f"{shape}.{accumulator}"
    return f"{shape}.f16.{orders[0 if operand == 'a' else 1]}"


def accumulator_of(a: str, b: str, wanted: str | None) -> str:
    """The type in which products of a and b are summed; FragirError if there is no such mma."""
    pair = {a, b}
    mixable = len(pair) == 1 or any(pair <= group for group in MIXABLE)
    if a not in ACCUMULATORS or not mixable:
        known = ", ".join(ACCUMULATORS)
        raise FragirError(
            f"no instruction multiplies {a} by {b}",
            hint=f"cast one; there is {known}, each by itself, signs and 8-bit floats mixed",
        )
    if wanted is None:
        return ACCUMULATORS[a][0]
    if wanted not in ACCUMULATORS[a]:
        raise FragirError(
            f"products of {a} cannot be summed in {wanted}",
            hint=f"accumulate in {' or '.join(ACCUMULATORS[a])}",
        )
    return wanted


def choose(
    a: TileType,
    b: TileType,
    c: TileType,
    d: TileType,
    using: str | None,
    target: str | None = None,
    how: How = PLAIN,
) -> str:
    """The short name of the mma.sync for these tiles: from their layouts, `using`, or the best.

    With a target only what it has is chosen. FragirError, with what to write instead, where no
    instruction fits.
    """
    types = a.element, b.element, c.element, d.element
    check_words(types, how)
    name = using or _placed_name(a, b)
    if name is not None:
        shape, type_, orders = parse_name(name)
        quad = shape == QUAD and type_ == "f16"
        if len(orders) != 2 * quad:
            raise FragirError(
                f"{name} must say how A and B are stored"
                if quad
                else f"{name}: only m8n8k4.f16 has a choice of row and col",
                hint=f"write {shape}.{type_}{'.row.col' * quad}",
            )
        if type_ != types[0]:
            raise FragirError(f"{name} multiplies {type_}, but A holds {types[0]}")
        _check_fit(shape, a, c, name)
        check_target(_lookup(shape, types, orders, how), target)
        return name
    if a.products.data > 1:
        if a.products.data != 4 or types[0] != "f16":
            raise FragirError(
                f"no instruction forms {a.products.data} products of {types[0]} at once",
                hint="m8n8k4 of f16 forms four",
            )
        _check_fit(QUAD, a, c, QUAD)
        check_target(_lookup(QUAD, types, ("row", "col"), how), target)
        return f"{QUAD}.f16.row.col"
    shapes = shapes_of(types[0], (SCALED_SHAPES if how.scale else SHAPES)[types[0]])
    fitting = [shape for shape in shapes if _fits(shape, a, c)]
    if not fitting:
        m, n, k = c.rows.data, c.cols.data, a.cols.data
        raise FragirError(
            f"no mma of {types[0]} divides {m}x{n}x{k} (M x N x K)",
            hint=f"make the tile a multiple of {' or '.join(shapes)}",
        )
    # where A's and B's types differ, not every shape of A's type exists
    found = [shape for shape in fitting if exists(shape, types, how)] or fitting[-1:]
    instructions = {shape: _lookup(shape, types, (), how) for shape in found}
    for shape, instruction in instructions.items():
        if target is None or target in instruction.targets:
            return f"{shape}.{types[0]}"
    check_target(instructions[found[-1]], target)
    raise AssertionError("an instruction that the target lacks is refused")


def check_words(types: tuple[str, str, str, str], how: How) -> None:
    """FragirError where element types do not go with each other or with an operation's words."""
    a, b, _, d = types
    if how != PLAIN or PACKED in (a, b):
        check_how(a, b, d, how)
    if how.scale:
        check_scales(a, b, d, how)
    else:
        accumulator_of(a, b, None)


def exists(shape: str, types: tuple[str, str, str, str], how: How) -> bool:
    """Whether there is an mma of this shape, whatever its target."""
    try:
        mma(shape, *types, how=how)
    except FragirError:
        return False
    return True


def check_target(instruction: isa.Instruction, target: str | None) -> None:
    """FragirError, with the first target that has it, where this one has not."""
    if target is not None and target not in instruction.targets:
        first = min(instruction.targets, key=lambda name: number(name), default="no target")
        hint = f"it exists from {first} on"
        if "and" in instruction.form.flags and number(target) >= 75:
            hint += f'; {target} has bitop "xor"'
        raise FragirError(f"{target} has no {instruction.mnemonic}", hint=hint)


def instruction_of(name: str, a: str, b: str, c: str, d: str, how: How = PLAIN) -> isa.Instruction:
    """The mma.sync that the short name means for these element types."""
    shape, _, orders = parse_name(name)
    return _lookup(shape, (a, b, c, d), orders, how)


def _placed_name(a: TileType, b: TileType) -> str | None:
    from fragir.dialects.frag.attributes import MmaLayoutAttr

    first, second = a.placement, b.placement
    if not isinstance(first, MmaLayoutAttr):
        return None
    name = first.data.instruction
    if parse_name(name)[2] and isinstance(second, MmaLayoutAttr):
        name += "." + ".".join(parse_name(second.data.instruction)[2])
    return name


def _lookup(
    shape: str, types: tuple[str, ...], orders: tuple[str, ...], how: How
) -> isa.Instruction:
    a, b, c, d = types
    layouts = (orders[0], orders[1]) if len(orders) == 2 else ("row", "col")
    try:
        instruction = mma(shape, a, b, c, d, layouts, how)
    except FragirError as error:
        known = " or ".join(ACCUMULATORS.get(a, ()))
        raise FragirError(
            f"there is no {shape} of {a} x {b} + {c} -> {d}",
            hint=f"products of {a} are summed in {known}" if known else None,
        ) from error
    if instruction.refused:
        raise FragirError(f"{instruction.mnemonic}: {instruction.refused}")
    return instruction


def _shape_name(instruction: isa.Instruction) -> str:
    return "m{}n{}k{}".format(*instruction.shape)


def _fits(shape: str, a: TileType, c: TileType) -> bool:
    m, n, k = map(int, re.findall(r"\d+", shape))
    return c.rows.data % m == 0 and c.cols.data % n == 0 and a.cols.data % k == 0


def _check_fit(shape: str, a: TileType, c: TileType, name: str) -> None:
    if not _fits(shape, a, c):
        raise FragirError(
            f"{name} does not divide the tiles: M x N x K is "
            f"{c.rows.data}x{c.cols.data}x{a.cols.data}",
            hint=f"make the tile a multiple of {shape}",
        )


def check_wgmma(
    a: Attribute, b: Attribute, c: TileType, k: int, how: How = PLAIN, negated: bool = False
) -> None:
    """FragirError unless wgmma multiplies these types into tile c, as `how` says."""
    first, second = element_name(a), element_name(b)
    check_how(first, second, c.element, how)
    accumulator_of(first, second, c.element)
    if first not in WGMMA_K:
        raise FragirError(f"wgmma does not multiply {first}", hint=f"only {', '.join(WGMMA_K)}")
    if how.sparse and first == "b1":
        raise FragirError("there is no sparse wgmma of b1")
    if negated and c.element == "s32":
        raise FragirError(f"`negated` flips the sign of floats, not of {first}")
    step = WGMMA_K[first] * (2 if how.sparse else 1)
    if k % step:
        what = "sparse wgmma" if how.sparse else "wgmma"
        raise FragirError(f"K = {k} is no multiple of {step}, {what}'s K for {first}")
    if c.rows.data % 64:
        raise FragirError(f"C has {c.rows.data} rows; a warpgroup computes 64 at a time")
    wgmma_n(c, first)


def wgmma_n(c: TileType, a: str) -> int:
    """N of one wgmma for a tile of C: all columns of a warpgroup where that is legal."""
    from fragir.dialects.frag.attributes import MmaLayoutAttr

    if isinstance(c.placement, MmaLayoutAttr):
        return c.placement.data.mnk[1]
    return largest_n(c.cols.data, a)


def largest_n(cols: int, a: str) -> int:
    """The largest N of a wgmma on type `a` that divides `cols`; FragirError without one."""
    for n in range(256, 0, -8):
        if cols % n == 0 and is_wgmma_n(n, a):
            return n
    raise FragirError(f"{cols} columns are no multiple of 8, wgmma's smallest N")


@derived
def is_wgmma_n(n: int, a: str) -> bool:
    """Whether wgmma has this N for type `a` (every multiple of 8 up to 256; integers skip some)."""
    try:
        wgmma(n, a, a, ACCUMULATORS[a][0])
    except FragirError:
        return False
    return True
