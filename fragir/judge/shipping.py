"""Cases as files: JSON and arrays of bytes, from the process of a user's code to the judge's.

Nothing is pickled, so that what is read can do nothing. Arrays keep which memory they share.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.lib.array_utils import byte_bounds

from fragir.algebra import Values
from fragir.emulator.launch.arguments import Pointer, Struct
from fragir.emulator.machine.tensor_map import Im2col, TensorMap
from fragir.errors import FragirError, kind_of, require_extent
from fragir.judge.case import Array, Case, typed
from fragir.reference.formats import FLOATS

Document: TypeAlias = dict[str, Any]
_PLAIN_MAP = ("box", "swizzle", "strides", "element_strides", "fill", "kind", "atom", "shape")


def save_array(folder: Path, name: str, array: Array) -> str:
    """Writes an array of plain numbers; its name in the folder."""
    np.save(folder / f"{name}.npy", array, allow_pickle=False)
    return name


def load_array(folder: Path, name: object) -> Array:
    """Reads an array of numbers. ValueError and OSError where there is none."""
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"{name!r} is no name of an array")
    array: Array = np.load(folder / f"{name}.npy", allow_pickle=False)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} has {array.dtype}")
    return array


def random_inputs(
    numbers: Sequence[Array], elements: Sequence[str], seed: Sequence[int], rounds: int
) -> list[Values | Array]:
    """Of every input, as numbers: random elements; integers as they are. The same for a seed."""
    rng = np.random.default_rng(list(seed))
    return [
        Values.random(x, rng, rounds) if element in FLOATS else x
        for x, element in zip(numbers, elements, strict=True)
    ]


# -- packing ---------------------------------------------------------------------------------------


@dataclass
class CaseMemory:
    """The memory and the arrays of one case, each once."""

    roots: list[Array] = field(default_factory=list[Array])
    views: list[Document] = field(default_factory=list[Document])
    _arrays: list[Array] = field(default_factory=list[Array])
    _pointers: list[Pointer] = field(default_factory=list[Pointer])

    def array(self, array: Array) -> int:
        """The number of an array; the same object has one number."""
        for number, known in enumerate(self._arrays):
            if known is array:
                return number
        if array.dtype.itemsize not in (1, 2, 4, 8) or not array.dtype.isnative:
            raise FragirError(f"an array of {array.dtype} has no bytes to pass")
        root = _root(array)
        number = next((i for i, each in enumerate(self.roots) if each is root), -1)
        if number < 0:
            number = len(self.roots)
            self.roots.append(root)
        start = array.__array_interface__["data"][0] - byte_bounds(root)[0]
        kind = array.dtype
        self.views.append(
            {
                "root": number,
                "offset": start if array.size else 0,
                "shape": list(array.shape),
                "strides": list(array.strides),
                # types that packages add are bytes here
                "type": kind.str if kind.kind in "biuf" else f"u{kind.itemsize}",
            }
        )
        self._arrays.append(array)
        return len(self._arrays) - 1

    def argument(self, value: object) -> Document | None:
        """An argument of a kernel."""
        given: Any = value
        if isinstance(value, np.ndarray | np.generic):
            return self._numpy(given)
        match value:
            case None:
                return None
            case bool() | int():
                return {"int": int(value)}
            case float():
                return {"float": value.hex()}
            case bytes() | bytearray():
                return {"bytes": bytes(value).hex()}
            case TensorMap():
                plain = {name: getattr(value, name) for name in _PLAIN_MAP}
                im2col = None if value.im2col is None else asdict(value.im2col)
                return {"map": {**plain, "im2col": im2col}, "array": self.array(value.array)}
            case Struct():
                inner = [[at, self.argument(each)] for at, each in value.fields.items()]
                return {"struct": inner, "size": value.size}
            case Pointer():
                if not any(value is each for each in self._pointers):
                    self._pointers.append(value)
                number = next(i for i, each in enumerate(self._pointers) if each is value)
                return {"pointer": number, "to": self.argument(value.to)}
            case _:
                raise FragirError(f"an argument cannot be {kind_of(value)}")

    def _numpy(self, given: Array) -> Document:
        """An array, or a number of a type of numpy's."""
        if given.ndim:
            return {"array": self.array(given)}
        digits = given.tobytes().hex()
        if given.dtype.kind not in "biuf":
            return {"bytes": digits}
        return {"scalar": given.dtype.str, "bytes": digits}


def _root(array: Array) -> Array:
    """The array whose memory it is, where that has no gaps; else itself, as if alone."""
    found: Array = array
    while isinstance(found.base, np.ndarray):
        found = found.base
    low, high = byte_bounds(found)
    if high - low == found.nbytes:
        return found
    low, high = byte_bounds(array)
    if high - low == array.nbytes:
        return array
    raise FragirError("an array has gaps, and its memory is no array of numpy's")


def pack_case(case: Case, folder: Path, name: str) -> Document:
    """Writes the memory of a case; all else as JSON."""
    packing = CaseMemory()

    def typed_arrays(given: Iterable[Any]) -> list[list[object]]:
        pairs = [typed(one) for one in given]
        return [[packing.array(array), element] for array, element in pairs]

    document: Document = {
        "calls": [
            {
                "entry": call.entry,
                "grid": require_extent(call.grid, "grid"),
                "block": require_extent(call.block, "block"),
                "cluster": require_extent(call.cluster, "cluster"),
                "shared": int(call.shared),
                "arguments": [packing.argument(value) for value in call.arguments],
            }
            for call in case.all_calls
        ],
        "inputs": typed_arrays(case.inputs),
        "outputs": typed_arrays(case.outputs),
        "structure": [packing.array(array) for array in case.structure],
        "formats": list(case.formats),
        "rtol": None if case.rtol is None else float(case.rtol),
        "copies": bool(case.copies),
        "tiles": {str(size): list(map(int, of)) for size, of in case.tiles.items()},
    }
    document["views"] = packing.views
    document["roots"] = [
        save_array(folder, f"{name}_memory_{i}", root.ravel(order="K").view(np.uint8))
        for i, root in enumerate(packing.roots)
    ]
    return document


# -- unpacking -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PackedArray:
    """An array as a part of a memory: `offset` and `strides` in bytes."""

    root: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    type: np.dtype[Any]

    def of(self, roots: list[Array]) -> Array:
        """The array, of the memory of a run."""
        return np.ndarray(self.shape, self.type, roots[self.root].data, self.offset, self.strides)

    def bytes_of(self, roots: list[Array]) -> Array:
        """Its bytes: one more dimension."""
        size = self.type.itemsize
        shape, strides = (*self.shape, size), (*self.strides, 1)
        return np.ndarray(shape, np.uint8, roots[self.root].data, self.offset, strides)


@dataclass(frozen=True)
class PackedCall:
    """A call as it was written; `arguments` are made for each run anew."""

    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    shared: int
    arguments: list[Document | None]

    def arrays(self) -> list[int | None]:
        """For every argument the number of its array; None where it has none, or several."""

        def number(value: Document | None) -> int | None:
            return None if value is None else value.get("array")

        return [number(value) for value in self.arguments]


@dataclass(frozen=True)
class PackedCase:
    """A case that another process has made: as in `Case`, arrays by their numbers in `views`."""

    calls: list[PackedCall]
    inputs: list[tuple[int, str]]
    outputs: list[tuple[int, str]]
    structure: list[int]
    formats: tuple[str, str, str]
    rtol: float | None
    copies: bool
    tiles: dict[str, list[int]]
    views: list[PackedArray]
    roots: list[Array]

    def memory(self) -> list[Array]:
        """A copy of all memory, for a run."""
        return [root.copy() for root in self.roots]

    def arguments(self, call: PackedCall, roots: list[Array]) -> list[object]:
        """The arguments of a call, on the memory of a run."""
        return _arguments([call], self.views, roots)[0]


def _arguments(
    calls: Iterable[PackedCall], views: list[PackedArray], roots: list[Array]
) -> list[list[object]]:
    arrays = [view.of(roots) for view in views]
    pointers: dict[int, Pointer] = {}

    def made(value: Document | None) -> object:
        match value:
            case None:
                return None
            case {"int": int(number)}:
                return number
            case {"map": plain, "array": int(number)}:
                return _tensor_map(arrays[number], plain)
            case {"array": int(number)}:
                return arrays[number]
            case {"scalar": str(kind), "bytes": str(digits)}:
                return np.frombuffer(bytes.fromhex(digits), np.dtype(kind))[0]
            case {"float": str(text)}:
                return float.fromhex(text)
            case {"bytes": str(digits)}:
                return bytes.fromhex(digits)
            case {"struct": inner, "size": size}:
                return Struct({int(at): made(each) for at, each in inner}, size)
            case {"pointer": int(number), "to": to}:
                if number not in pointers:
                    pointers[number] = Pointer(made(to))
                return pointers[number]
            case _:
                raise ValueError("this is no argument")

    return [[made(value) for value in call.arguments] for call in calls]


def _tensor_map(array: Array, plain: Document) -> TensorMap:
    def sequence(value: object) -> object:
        return tuple(cast("list[object]", value)) if isinstance(value, list) else value

    given = {name: sequence(value) for name, value in plain.items()}
    im2col: Document | None = plain["im2col"]
    make: Any = Im2col
    if im2col is not None:
        given["im2col"] = make(**{name: sequence(value) for name, value in im2col.items()})
    make = TensorMap
    return make(array, **given)


def unpack_case(document: Mapping[str, Any], folder: Path) -> PackedCase:
    """Reads what `pack_case` wrote. What is not so raises an exception of whatever kind."""
    roots = [load_array(folder, name) for name in document["roots"]]
    if any(root.dtype != np.uint8 or root.ndim != 1 for root in roots):
        raise ValueError("memory is bytes")
    views = [
        PackedArray(
            int(one["root"]),
            int(one["offset"]),
            tuple(map(int, one["shape"])),
            tuple(map(int, one["strides"])),
            np.dtype(str(one["type"])),
        )
        for one in document["views"]
    ]
    calls = [
        PackedCall(
            str(one["entry"]),
            require_extent(one["grid"], "grid"),
            require_extent(one["block"], "block"),
            require_extent(one["cluster"], "cluster"),
            int(one["shared"]),
            list(one["arguments"]),
        )
        for one in document["calls"]
    ]
    rtol = document["rtol"]
    working, sums, rounding = document["formats"]
    case = PackedCase(
        calls,
        [(int(view), str(element)) for view, element in document["inputs"]],
        [(int(view), str(element)) for view, element in document["outputs"]],
        [int(view) for view in document["structure"]],
        (str(working), str(sums), str(rounding)),
        None if rtol is None else float(rtol),
        bool(document["copies"]),
        {str(size): list(map(int, of)) for size, of in document["tiles"].items()},
        views,
        roots,
    )
    _arguments(calls, views, roots)  # whatever is wrong with them is the case's fault
    return case


def write_json(path: Path, document: object) -> None:
    path.write_text(json.dumps(document), "utf-8")
