"""Inputs for trying a program: shapes from sizes, contents at random, one-hot or zero."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from xdsl.dialects import func

from fragir.dialects.frag.kernels import holds_conditions
from fragir.errors import FragirError
from fragir.reference.formats import (
    FLOATS,
    INTEGERS,
    PER_BYTE,
    PREDICATE,
    Array,
    decode,
    encode,
    storage,
    type_name,
)
from fragir.reference.roles import counters, dimension_names, factors, metadata, shape_of

Kind = Literal["normal", "onehot", "integers", "zeros", "positive", "sorted", "permutation", "spd"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class ProgramArgument:
    """One argument of a program: what it holds and what its dimensions are called."""

    name: str
    element: str
    """The PTX name of the element type."""
    shape: tuple[int | None, ...] | None
    """None for a scalar; None in it for a dynamic dimension."""
    names: tuple[str, ...]
    """A name for every dimension; made up (`a_d0`) where the program tells none."""
    likely: tuple[str | None, ...] = ()
    """Names of sizes that these dimensions are likely to say where nothing else does."""


def slots(
    function: func.FuncOp, compiled: Sequence[Sequence[int | str]] = ()
) -> list[ProgramArgument]:
    """The arguments of a program. `compiled`: their dimensions in what was compiled of it, whose
    names of dynamic sizes count where they are not made up.
    """
    result: list[ProgramArgument] = []
    for i, (argument, names, likely) in enumerate(
        zip(function.body.block.args, *dimension_names(function), strict=True)
    ):
        name, element = argument.name_hint or f"arg{i}", type_name(argument.type)
        sizes = shape_of(argument)
        if sizes is None:
            result.append(ProgramArgument(name, element, None, ()))
            continue
        shape = tuple(None if size < 0 else size for size in sizes)
        made = [f"{name}_d{d}" for d in range(len(names))]
        known = tuple(given or other for given, other in zip(names, made, strict=True))
        if compiled:
            triples = zip(compiled[i], known, made, strict=True)
            known = tuple(x if isinstance(x, str) and x != m else k for x, k, m in triples)
        result.append(ProgramArgument(name, element, shape, known, likely))
    return result


def resolve(
    arguments: Sequence[ProgramArgument], sizes: Mapping[str, int], arrays: Mapping[str, Array]
) -> dict[str, int]:
    """Every size by its name: what is asked for, what arrays and static dimensions say.

    Raises FragirError where they contradict, where a name is unknown or a dynamic size unbound.
    """
    origin: dict[str, tuple[int, str]] = {n: (s, "--size") for n, s in sizes.items()}
    names = {name for slot in arguments for name in slot.names}
    unknown = [name for name in sizes if name not in names]
    if unknown:
        known = ", ".join(sorted(names)) or "none"
        raise FragirError(f"there is no size {', '.join(unknown)}", hint=f"the sizes are {known}")
    for slot in arguments:
        if slot.shape is None:
            continue
        array = arrays.get(slot.name)
        if array is not None and len(array.shape) != len(slot.shape):
            raise FragirError(
                f"{slot.name} has {len(array.shape)} dimensions, the program takes "
                f"{len(slot.shape)}"
            )
        for d, (name, size) in enumerate(zip(slot.names, slot.shape, strict=True)):
            if size is not None:
                _check_agrees(origin, name, size, f"{slot.name}'s type")
            if array is not None:
                held = _elements(array, slot.element)[d]
                _check_agrees(origin, name, held, f"the array of {slot.name}")
    missing = {
        name
        for slot in arguments
        for name, size in zip(slot.names, slot.shape or (), strict=True)
        if size is None and name not in origin
    }
    for slot in arguments:
        for name, size in zip(slot.likely, slot.shape or (), strict=False):
            if name in missing and size is not None:
                origin[name] = size, f"{slot.name}'s type"
    missing -= set(origin)
    if missing:
        example = ",".join(f"{name}=..." for name in sorted(missing))
        raise FragirError(
            f"sizes without a value: {', '.join(sorted(missing))}", hint=f"--size {example}"
        )
    return {name: size for name, (size, _) in origin.items()}


def _elements(array: Array, element: str) -> tuple[int, ...]:
    """An array's shape in elements; those smaller than a byte come as bytes."""
    per = PER_BYTE.get(element, 1) if array.dtype.itemsize == 1 and array.dtype.kind == "u" else 1
    return (*array.shape[:-1], array.shape[-1] * per) if array.shape else ()


def _check_agrees(origin: dict[str, tuple[int, str]], name: str, size: int, who: str) -> None:
    other, said = origin.setdefault(name, (size, who))
    if other != size:
        raise FragirError(f"the size {name} is {other} by {said}, but {size} by {who}")


def generate(
    function: func.FuncOp,
    arguments: Sequence[ProgramArgument],
    sizes: Mapping[str, int],
    given: Mapping[str, Any],
    kind: Kind | Mapping[str, Kind],
    seed: int,
) -> list[Any]:
    """A value for every argument: arrays in storage types, numbers for scalars.

    normal: N(0, 1) rounded to the type, small integers for integers; integers: -4 to 4 or 0 to 4;
    onehot: zeros, but one element of A and one of B, where they meet; positive: 1/4 to 2, or 1 to
    4; sorted: the numbers of normal, integers of the whole range up to +-1000, rising along the
    last dimension; permutation: 0 to n - 1 along it, each once; spd: symmetric matrices with
    eigenvalues from 1 on, small ones. `kind`: one for all, or by the argument's name, of the others
    that of "" (normal). Scales of blocks are powers of two near 1, conditions 0 or 1, metadata of
    sparse products keep parts of every chunk at random. Scalars are 1, counts of blocks 0.
    """
    kinds: Mapping[str, Kind] = {"": kind} if isinstance(kind, str) else kind
    _check_names(kinds, arguments, given)
    generator = np.random.default_rng(seed)
    hot, chunks, counts = factors(function), metadata(function), counters(function)
    point = {name: int(generator.integers(max(size, 1))) for name, size in sorted(sizes.items())}
    values: list[Any] = []
    for i, slot in enumerate(arguments):
        own = kinds.get(slot.name, kinds.get("", "normal"))
        if slot.name in given:
            values.append(given[slot.name])
        elif slot.shape is None:
            values.append(1.0 if slot.element in FLOATS else 1)
        else:
            shape = tuple(sizes[name] for name in slot.names)
            if i in counts:
                content = np.zeros(shape)
            elif i in chunks or (slot.element == "ue8m0" and slot.name not in kinds):
                content = _needed_codes(generator, shape, chunks.get(i))
            elif own == "onehot":
                content = np.zeros(shape)
                if i in hot and content.size:
                    sign = -1.0 if _is_signed(slot.element) and generator.random() < 0.5 else 1.0
                    place = tuple(point[name] for name in slot.names)
                    content[place] = sign * float(generator.integers(1, 8))
            else:
                content = _content(generator, shape, slot, own)
            if holds_conditions(function, i):
                content = np.mod(content, 2)
            values.append(encode(content, slot.element))
    return values


def _check_names(
    kinds: Mapping[str, Kind], arguments: Sequence[ProgramArgument], given: Mapping[str, object]
) -> None:
    """FragirError where a kind is for no array, or for one that is given."""
    arrays = [slot.name for slot in arguments if slot.shape is not None]
    for name in filter(None, kinds):
        if name not in arrays:
            raise FragirError(
                f"--inputs {name}={kinds[name]}: there is no array {name}",
                hint=f"the arrays are {', '.join(arrays) or 'none'}",
            )
        if name in given:
            raise FragirError(f"{name} has its numbers from --arg", hint="leave one of them out")


def are_finite(arguments: Sequence[ProgramArgument], values: Sequence[Any]) -> bool:
    """Whether no array and no scalar holds infinities or NaN."""
    for slot, value in zip(arguments, values, strict=True):
        if slot.element in FLOATS:
            numbers = decode(value, slot.element) if slot.shape is not None else value
            if not np.isfinite(numbers).all():
                return False
    return True


# Legal nibbles of metadata (PTX ISA 9.2, section 9.7.14.6.1): of chunks of two, and of others.
_HALVES = (0b0100, 0b1110)
_RISING = (0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110)


def _needed_codes(
    generator: np.random.Generator, shape: tuple[int, ...], chunk: int | None
) -> Array:
    """Metadata, or scales where there is no chunk: what a product cannot be without."""
    if chunk is None:
        return 2.0 ** generator.integers(-2, 3, shape)
    legal = np.array(_HALVES if chunk == 2 else _RISING, np.int64)
    return legal[generator.integers(len(legal), size=shape)]


def _is_signed(element: str) -> bool:
    if element not in FLOATS and element not in INTEGERS:
        raise FragirError(
            f"the reference does not know {element}",
            hint="fragir.compile and a call of the kernel run it",
        )
    return element in FLOATS or INTEGERS[element].signed


def _content(
    generator: np.random.Generator, shape: tuple[int, ...], slot: ProgramArgument, kind: Kind
) -> Array:
    real = slot.element in FLOATS
    if kind == "zeros":
        return np.zeros(shape)
    if kind == "positive":
        return generator.uniform(0.25, 2, shape) if real else generator.integers(1, 5, shape)
    if kind == "permutation":
        return _permutations(generator, shape, slot)
    if kind == "spd":
        return _positive_definite(generator, shape, slot)
    if kind == "sorted":
        if not shape:
            return np.zeros(shape)
        form = None if real else INTEGERS[slot.element]
        if form is None:
            return np.sort(generator.standard_normal(shape), -1)
        top = min(1000, 2 ** (form.bits - form.signed) - 1)
        return np.sort(
            generator.integers(-top if form.signed else 0, top, shape, endpoint=True), -1
        )
    if kind == "normal" and real:
        return generator.standard_normal(shape)
    return generator.integers(-4 if _is_signed(slot.element) else 0, 5, shape).astype(np.float64)


def _permutations(
    generator: np.random.Generator, shape: tuple[int, ...], slot: ProgramArgument
) -> Array:
    size = shape[-1] if shape else 1
    rows = np.broadcast_to(np.arange(size), shape)
    if not np.array_equal(decode(encode(rows, slot.element), slot.element), rows):
        raise FragirError(
            f"{slot.name} is {slot.element}, which has not all numbers from 0 to {size - 1}",
            hint="a permutation needs them; take integers of 32 bits, or a smaller size",
        )
    return generator.permuted(rows, axis=-1) if shape else rows


def _positive_definite(
    generator: np.random.Generator, shape: tuple[int, ...], slot: ProgramArgument
) -> Array:
    if len(shape) < 2 or shape[-1] != shape[-2] or slot.element not in FLOATS:
        sizes = "x".join(map(str, shape)) or "one number"
        raise FragirError(
            f"{slot.name} is {sizes} of {slot.element}, no square matrix of floats",
            hint="spd makes symmetric positive definite ones, of the last two dimensions",
        )
    factor = generator.standard_normal(shape)
    product = factor @ np.swapaxes(factor, -1, -2) / max(shape[-1], 1)
    return (product + np.swapaxes(product, -1, -2)) / 2 + np.eye(shape[-1])


# Values from outside -----------------------------------------------------------------------------


def scalar_from(text: str, slot: ProgramArgument) -> float | int:
    """A number for a scalar argument; FragirError where it is none of its type."""
    try:
        if slot.element in FLOATS:
            return float(text)
        number = int(text, 0)
    except ValueError:
        what = "number" if slot.element in FLOATS else "integer"
        raise FragirError(f"{slot.name}={text}: {text!r} is no {what}") from None
    bits = 1 if slot.element == PREDICATE else INTEGERS[slot.element].bits
    if not -(1 << (bits - 1)) <= number < 1 << bits:
        raise FragirError(f"{slot.name}={text} is out of range for {slot.element}")
    return number


def array_from(array: Array, slot: ProgramArgument) -> Array:
    """An array in the argument's storage type.

    Unsigned integers and raw bytes of the right width are bits of a float; floats are rounded;
    integers must fit. FragirError otherwise.
    """
    kind = storage(slot.element)
    if slot.element in PER_BYTE and array.dtype == kind:
        return array  # packed already
    if slot.element in FLOATS:
        bits = array.dtype.kind in "uV" and array.dtype.itemsize == kind.itemsize
        if array.dtype == kind or bits:
            return np.require(array, requirements="C").view(kind)
        if array.dtype.kind == "f":
            return encode(array.astype(np.float64), slot.element)
    elif array.dtype.kind in "iub":
        held = encode(array.astype(np.int64), slot.element)
        if np.array_equal(decode(held, slot.element), array):
            return held
        raise FragirError(f"{slot.name}: the array has numbers that {slot.element} has not")
    raise FragirError(f"{slot.name} is {slot.element}, the array holds {array.dtype}")
