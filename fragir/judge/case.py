"""What a kernel is to be judged by: launches, which arrays are data, and the function it computes.

A case file has a function that is given a numpy random generator and yields `Case`s:

    import numpy as np
    from fragir.judge import Case, KernelCall

    def softmax(x):
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)

    def cases(rng):
        for columns in (1, 127, 128, 129, 300):
            x = rng.normal(size=(4, columns)).astype(np.float32)
            y = np.empty_like(x)
            call = KernelCall("softmax", [x, y, columns], grid=4, block=128)
            yield Case(call, inputs=[x], outputs=[y], reference=softmax)

The reference is given every input as numbers, whatever the type they are stored in (float64, or
int64 of integers), and returns the outputs' numbers; several as a tuple. It is called several
times: with arrays, and with values that look like arrays and are no numbers
(`fragir.judge.rounding`), so it is written with operators and numpy's functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fragir.errors import FragirError, check_kind, require_extent, require_whole_number
from fragir.reference.formats import FLOATS, INTEGERS, storage

Array: TypeAlias = npt.NDArray[Any]
#: An array, or an array and the type of its elements where numpy has none for it: (x, "bf16").
TypedArray: TypeAlias = "Array | tuple[Array, str]"
Extent: TypeAlias = int | Sequence[int]

#: numpy's types, and those that packages add, by their names.
_ELEMENTS = {
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    "float8_e4m3fn": "e4m3",
    "float8_e5m2": "e5m2",
    "float8_e8m0fnu": "ue8m0",
    "float4_e2m1fn": "e2m1",
    "float6_e2m3fn": "e2m3",
    "float6_e3m2fn": "e3m2",
    "bool": "u8",
    **{f"int{n}": f"s{n}" for n in (8, 16, 32, 64)},
    **{f"uint{n}": f"u{n}" for n in (8, 16, 32, 64)},
}
#: Types that intermediate results may have been rounded to.
WORKING = ("f16", "bf16", "tf32", "f32", "f64")
#: How they may have been rounded.
ROUNDINGS = ("any", "nearest")


@dataclass(frozen=True, eq=False)
class KernelCall:
    """One launch of one kernel.

    `arguments` in the order of the PTX's parameters, as `fragir.emulator.run` takes them: numpy
    arrays (device buffers), numbers, numpy scalars, bytes, None, `TensorMap`, `Struct`, `Pointer`.
    `grid`: blocks, `block`: threads, `cluster`: blocks; `shared`: bytes of dynamic shared memory.
    """

    entry: str
    arguments: Sequence[object]
    grid: Extent = 1
    block: Extent = 32
    cluster: Extent = 1
    shared: int = 0

    def __repr__(self) -> str:
        return f"<a call of {self.entry} with {len(self.arguments)} arguments>"

    def __post_init__(self) -> None:
        check_kind(self.entry, str, "entry is the name of a kernel")
        check_kind(self.arguments, list | tuple, "arguments is a list")
        for name in ("grid", "block", "cluster"):
            require_extent(getattr(self, name), name)
        require_whole_number(self.shared, "shared", 0)


@dataclass(frozen=True, eq=False)
class Case:
    """A problem: kernels that are called one after the other, and what must come of it.

    `calls`: one, or several on the same arrays. `inputs` are the arrays of data: the reference gets
    them in this order, and the verdict holds for whatever they contain as far as it says so; they
    must come out unchanged. `outputs` are the arrays that the reference gives; they begin as NaN
    (an array that is input and output begins as it is). `structure`: arrays that are part of the
    launch (offsets, page tables). An array of the calls that is none of these is a workspace and
    begins as it is. Arrays are told apart by identity.

    `working`: the narrowest format that the kernel may round intermediate results to, and `sums`:
    what it may add in, for the bound on its rounding (f32, unless an output is f64). `rounding`:
    "any" direction, with numbers that are too small for a normal one taken for zero, or "nearest",
    as IEEE 754 has it: an operation cut off or flushed is then farther than allowed. `rtol`: a
    tolerance relative to the largest element, for functions of which no bound is known. `copies`:
    the reference gives back an input, and is meant to. `tiles`: by the name of a size, the size and
    the kernel's tile along it, or (size, tile, stages), from which the verdict says which kinds of
    sizes are not tried (`sizes`).
    """

    calls: KernelCall | Sequence[KernelCall]
    inputs: Sequence[TypedArray]
    outputs: Sequence[TypedArray]
    reference: Callable[..., Any]
    structure: Sequence[Array] = ()
    working: str | None = None
    sums: str | None = None
    rounding: str = "any"
    rtol: float | None = None
    copies: bool = False
    tiles: Mapping[str, Sequence[int]] = field(default_factory=dict[str, Sequence[int]])

    def __repr__(self) -> str:
        names = ", ".join(call.entry for call in self.all_calls)
        return f"<a case of {names}: {len(self.inputs)} inputs, {len(self.outputs)} outputs>"

    def __post_init__(self) -> None:
        for name in ("inputs", "outputs", "structure"):
            check_kind(getattr(self, name), list | tuple, f"{name} is a list of arrays")
        for call in self.all_calls:
            check_kind(call, KernelCall, "calls has KernelCalls")
        for given in (*self.inputs, *self.outputs):
            typed(given)
        for array in self.structure:
            check_kind(array, np.ndarray, "structure has arrays")
        if not callable(self.reference):
            raise FragirError("reference is a function of the inputs")
        for name in ("working", "sums"):
            value = getattr(self, name)
            if value not in (None, *WORKING):
                raise FragirError(f"{name} is one of {', '.join(WORKING)}, not {value!r}")
        if self.rounding not in ROUNDINGS:
            raise FragirError(f"rounding is any or nearest, not {self.rounding!r}")
        if self.rtol is not None and not 0 <= float(self.rtol) < 1:
            raise FragirError(f"rtol is {self.rtol!r}, it must be from 0 to 1")
        for name, numbers in self.tiles.items():
            if not 2 <= len(numbers) <= 3:
                raise FragirError(f"tiles of {name} is (size, tile) or (size, tile, stages)")
            for number in numbers:
                require_whole_number(number, f"tiles of {name}", 0)
            require_whole_number(numbers[1], f"the tile of {name}", 1)

    @property
    def formats(self) -> tuple[str, str, str]:
        """What results, and sums, may be rounded to, and how."""
        widest = "f64" if any(typed(one)[1] == "f64" for one in self.outputs) else "f32"
        return self.working or widest, self.sums or widest, self.rounding

    @property
    def all_calls(self) -> tuple[KernelCall, ...]:
        return (self.calls,) if isinstance(self.calls, KernelCall) else tuple(self.calls)


def typed(given: TypedArray) -> tuple[Array, str]:
    """An array and the PTX name of its elements. FragirError where there is none for it."""
    array, element = given if isinstance(given, tuple) else (given, None)
    check_kind(array, np.ndarray, "inputs and outputs are arrays, or an array and a type's name")
    if element is None:
        element = _ELEMENTS.get(array.dtype.name)
        if element is None:
            raise FragirError(
                f"numbers of {array.dtype} have no type in PTX", hint='say it, as in (x, "bf16")'
            )
    if element not in {*FLOATS, *INTEGERS}:
        raise FragirError(f"{element!r} is no type of elements", hint='as in "bf16"')
    if storage(element).itemsize != array.dtype.itemsize:
        raise FragirError(f"an array of {array.dtype} cannot hold {element}")
    return array, element


# -- sizes -----------------------------------------------------------------------------------------
# Sizes along a dimension that a kernel goes through in tiles. What holds at one of them need not at
# another: tails, full tiles and loops that come round are different code.


def _kinds(tile: int, stages: int) -> dict[str, tuple[int, Callable[[int], bool]]]:
    """What a size may be -> one of that kind, and whether a size is of it."""
    rest = (tile // 2 + 1) % tile or 1
    kinds: dict[str, tuple[int, Callable[[int], bool]]] = {
        "1": (1, lambda n: n == 1),
        "less than a tile": (tile - 1, lambda n: 1 < n < tile),
        "one tile": (tile, lambda n: n == tile),
        "one more than a tile": (tile + 1, lambda n: n == tile + 1),
        "several tiles": (2 * tile, lambda n: n > tile and n % tile == 0),
        "several tiles and a rest": (2 * tile + rest, lambda n: n > 2 * tile and n % tile > 0),
        "more than the stages hold": (stages * tile + 1, lambda n: n > stages * tile),
    }
    # a tile of one or two elements has no sizes of some kinds
    return {kind: (one, is_of) for kind, (one, is_of) in kinds.items() if is_of(one)}


def sizes(tile: int, stages: int = 1) -> list[int]:
    """Sizes to judge a kernel at that goes through a dimension by tiles of so many elements, of
    which `stages` are on the way: 1, one less than a tile, a tile, one more, several with and
    without a rest, more than the stages hold.

    >>> sizes(64, stages=3)
    [1, 63, 64, 65, 128, 161, 193]
    """
    tile, stages = require_whole_number(tile, "tile", 1), require_whole_number(stages, "stages", 1)
    return sorted({size for size, _ in _kinds(tile, stages).values()})


def untried(tried: Sequence[Sequence[int]]) -> dict[str, int]:
    """Kinds of sizes that none of (size, tile) or (size, tile, stages) is of, and one of each."""
    found: dict[str, int] = {}
    covered: set[str] = set()
    for size, tile, *stages in tried:
        kinds = _kinds(tile, stages[0] if stages else 1)
        covered |= {kind for kind, (_, is_of) in kinds.items() if is_of(size)}
        found |= {kind: one for kind, (one, _) in kinds.items()}
    return {kind: one for kind, one in found.items() if kind not in covered}
