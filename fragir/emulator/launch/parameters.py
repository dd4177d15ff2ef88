"""Arguments that hold pointers: structs by value, and what lies behind a pointer.

The emulator and the GPU runner both take them; where the arrays lie they each say themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from fragir.errors import FragirError

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]

POINTER = 8  # bytes
TENSOR_MAP = 128  # bytes, at a multiple of 64 (PTX ISA 9.2, section 5.5)
_MAP_ALIGNMENT = 64


@dataclass(frozen=True, eq=False)
class Struct:
    """A struct by value: `fields` by their offsets in bytes, zeros between them.

    A field is an array or None (a pointer of 8 bytes), a `TensorMap` (its 128 bytes), a `Pointer`,
    a numpy scalar or bytes (as many as they are). `size`: bytes of the struct, where nothing else
    says it (behind a pointer; default: up to the end of the last field).
    """

    fields: Mapping[int, object]
    size: int | None = None

    def __repr__(self) -> str:
        return f"<struct of {len(self.fields)} fields>"


@dataclass(frozen=True, eq=False)
class Pointer:
    """The address of a copy of `to` in global memory: a `TensorMap`, a `Struct` or bytes.

    The same `Pointer` twice is one address. What a kernel writes there is not given back.
    """

    to: object

    def __repr__(self) -> str:
        return f"<pointer to {self.to!r}>"


def pointers(*arrays: Array | None) -> Pointer:
    """An array of pointers in global memory, as grouped products take it; None is null."""
    return Pointer(Struct({POINTER * i: array for i, array in enumerate(arrays)}))


def is_tensor_map(value: object) -> bool:
    """Whether an argument describes tiles of an array."""
    return all(hasattr(value, name) for name in ("array", "box", "swizzle", "im2col"))


def arrays_of(value: object, what: str) -> Iterator[tuple[str, Array]]:
    """The numpy arrays that an argument points to, each with its name in messages."""
    import numpy as np

    if isinstance(value, np.ndarray):
        if value.ndim:
            yield what, cast("Array", value)
    elif isinstance(value, Struct):
        for offset, field in value.fields.items():
            yield from arrays_of(field, f"{what} at offset {offset}")
    elif isinstance(value, Pointer):
        yield from arrays_of(value.to, what)
    elif is_tensor_map(value):
        yield from arrays_of(cast("Any", value).array, what)


@dataclass(frozen=True)
class Packer:
    """How a machine packs what an argument is made of: each gets the value and its name.

    `place`: the address of a copy of bytes in global memory; the key tells the same from another.
    """

    array: Callable[[Any, str], int]
    tensor_map: Callable[[Any, str], bytes]
    place: Callable[[bytes, int, str], int]

    def pack(self, value: object, what: str, size: int | None = None) -> bytes:
        """The bytes of an argument or field of these kinds, `size` bytes where that is known.

        Raises FragirError for anything else, and for fields that do not fit.
        """
        import numpy as np

        if isinstance(value, Struct):
            return self._struct(value, what, size)
        if isinstance(value, Pointer):
            if not isinstance(value.to, Struct | bytes) and not is_tensor_map(value.to):
                raise FragirError(
                    f"{what}: a Pointer is to a TensorMap, a Struct or bytes, not to a"
                    f" {type(value.to).__name__}",
                    hint="an array is a pointer already",
                )
            data = self.pack(value.to, what)
            return self.place(data, id(value), what).to_bytes(POINTER, "little")
        if value is None:
            return bytes(POINTER)
        if is_tensor_map(value):
            return self.tensor_map(value, what)
        if isinstance(value, np.ndarray) and value.ndim:
            return self.array(value, what).to_bytes(POINTER, "little")
        if isinstance(value, bytes | bytearray):
            return bytes(value)
        if isinstance(value, np.generic | np.ndarray):
            scalar = cast("Any", value)
            return bytes(scalar.astype(scalar.dtype.newbyteorder("=")).tobytes())
        if hasattr(value, "__cuda_array_interface__") or hasattr(value, "__dlpack__"):
            return self.array(value, what).to_bytes(POINTER, "little")
        raise FragirError(
            f"{what}: a {type(value).__name__} does not say how many bytes it has",
            hint="pass a numpy scalar, say np.int32(5)",
        )

    def _struct(self, struct: Struct, what: str, size: int | None) -> bytes:
        if size is not None and struct.size not in (None, size):
            raise FragirError(f"{what}: the struct has {struct.size} bytes, the parameter {size}")
        size = struct.size if size is None else size
        data = bytearray() if size is None else bytearray(size)
        taken: list[tuple[int, int]] = []
        for offset in sorted(struct.fields):
            field = struct.fields[offset]
            place = f"{what} at offset {offset}"
            if offset < 0:
                raise FragirError(f"{place}: there is nothing before a struct")
            piece = self.pack(field, place)
            end = offset + len(piece)
            if size is None:
                data.extend(bytes(max(end - len(data), 0)))
            elif end > size:
                raise FragirError(f"{place}: it ends at {end}, the struct has {size} bytes")
            if taken and taken[-1][1] > offset:
                raise FragirError(f"{place}: the field at {taken[-1][0]} ends at {taken[-1][1]}")
            if is_tensor_map(field) and offset % _MAP_ALIGNMENT:
                raise FragirError(f"{place}: a tensor map lies at a multiple of {_MAP_ALIGNMENT}")
            taken.append((offset, end))
            data[offset:end] = piece
        return bytes(data)


def needs_packer(value: object) -> bool:
    """Whether an argument is one of the kinds of this module."""
    return isinstance(value, Struct | Pointer)
