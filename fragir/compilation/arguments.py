"""What a compiled kernel is called with: arrays of any package, numbers, checked by declaration.

An array is numpy's, or anything that speaks DLPack or the CUDA array interface (PyTorch, CuPy,
JAX): in host memory it is looked at through numpy, without a copy; on a GPU it is used in place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, cast

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute

from fragir.dialects.elements import element_bits, element_name
from fragir.errors import FragirError, kind_of, pass_on

if TYPE_CHECKING:
    from fragir.dialects.frag.grid import Extent
    from fragir.emulator.numbers.types import Array


# the names that numpy, ml_dtypes, PyTorch and JAX give to elements, and the PTX ISA's
DTYPES = {
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    "float8_e4m3fn": "e4m3",
    "float8_e5m2": "e5m2",
    "float6_e3m2fn": "e3m2",
    "float6_e2m3fn": "e2m3",
    "float4_e2m1fn": "e2m1",
    "float8_e8m0fnu": "ue8m0",
    "int8": "s8",
    "uint8": "u8",
    "int16": "s16",
    "int32": "s32",
    "uint32": "u32",
    "int64": "s64",
}
# what numpy cannot say without ml_dtypes may come as raw bits
_BYTE = ("uint8", "void8")
_BYTE_FLOATS = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1", "ue8m0")
RAW: dict[str, tuple[str, ...]] = {"bf16": ("uint16", "void16")} | dict.fromkeys(
    _BYTE_FLOATS, _BYTE
)
# what is smaller than a byte comes as bytes, the first element lowest
PACKED: dict[str, tuple[str, ...]] = dict.fromkeys(("s4", "u4", "b1", "e2m1x2"), ("uint8",))
_TRUTH = {"s8": ("bool",), "u8": ("bool",)}  # memory of i1 is such of i8
ALIGNMENT = 16  # bytes, of every pointer that a kernel takes
_DLPACK_HOST = (1, 3)  # kDLCPU, kDLCUDAHost (dlpack.h)
_LARGEST = 2**31 - 1  # sizes and strides are 32 bits wide on the device
_NATIVE = "array.astype(array.dtype.newbyteorder('=')) has the right one"


@dataclass(frozen=True)
class ArrayView:
    """An array as a launch sees it: shape and strides in elements, where it lies."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    value: object
    """What the launcher gets: a numpy array, or the object itself where it is on a GPU."""
    on_gpu: bool

    @property
    def is_contiguous(self) -> bool:
        """Whether it lies row after row without gaps."""
        return follows(self.shape, self.strides, row_major(self.shape))


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides, in elements, of an array that lies row after row."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= size
    return tuple(strides)


def follows(shape: Sequence[int], strides: Sequence[int], wanted: Sequence[int | str]) -> bool:
    """Whether strides are those wanted, names aside; a dimension of one element has no stride."""
    return 0 in shape or all(
        extent <= 1 or isinstance(want, str) or stride == want
        for extent, stride, want in zip(shape, strides, wanted, strict=True)
    )


def view(value: object, element: Attribute, name: str) -> ArrayView:
    """An argument as an array with these elements; FragirError where it is none."""
    import numpy as np

    if isinstance(value, np.ma.MaskedArray):
        raise FragirError(
            f"{name} is a masked array, a kernel knows no masks", hint="pass .filled(0) or .data"
        )
    if isinstance(value, np.ndarray):
        return _of_numpy(cast("Array", value), element, name)
    if _attribute(value, "__cuda_array_interface__") is not None:
        return _of_cuda(value, element, name)
    if hasattr(value, "__dlpack__"):
        device, _ = getattr(value, "__dlpack_device__")()
        if int(device) in _DLPACK_HOST:
            return _of_numpy(_host_array(value, name), element, name)
        return _of_gpu_tensor(value, element, name)
    hint = "numpy.asarray makes one" if type(value) in (list, tuple) else None
    raise FragirError(f"{name} must be an array, not {kind_of(value)}", hint=hint)


def declared_view(
    value: object,
    type_: Attribute,
    name: str,
    dims: Sequence[int | str],
    strides: Sequence[int | str] | None,
) -> ArrayView:
    """An argument as an array of a memref's elements, rank and strides; None is row-major order."""
    from fragir.dialects.shorthands import memref_type

    found = view(value, memref_type(type_).element_type, name)
    if len(found.shape) != len(dims):
        raise FragirError(f"{name} has {len(found.shape)} dimensions, the kernel takes {len(dims)}")
    wanted = row_major(found.shape) if strides is None else strides
    if not follows(found.shape, found.strides, wanted):
        raise FragirError(
            f"{name} has strides {found.strides} (elements), the kernel takes "
            f"({', '.join(map(str, wanted))})",
            hint="pass a contiguous copy, or declare the strides: strided<[...]> in a program, "
            "strides=... in Python",
        )
    return found


class Declared(Protocol):
    """An argument as a program declares it: its sizes, and how large they must at least be."""

    @property
    def name(self) -> str: ...
    @property
    def dims(self) -> tuple[int | str, ...]: ...
    @property
    def least(self) -> tuple[Extent, ...]: ...


def least_shapes(
    arguments: Sequence[Declared], sizes: Mapping[str, int]
) -> dict[str, tuple[int, ...]]:
    """How large arguments must at least be of which that is said, by their names."""
    found: dict[str, tuple[int, ...]] = {}
    for argument in arguments:
        if argument.least:
            try:
                found[argument.name] = tuple(e.evaluate(dict(sizes)) for e in argument.least)
            except KeyError as error:
                size = str(error.args[0])
                raise FragirError(
                    f"what {argument.name} needs depends on the size {size}",
                    hint=f"give it: {{{size!r}: ...}}",
                ) from None
    return found


def check_least(kernel: str, arguments: Sequence[Declared], sizes: Mapping[str, int]) -> None:
    """FragirError where an argument is too small, as far as its sizes are given."""
    for argument in arguments:
        names = [*argument.dims, *(extent.size for extent in argument.least)]
        if not argument.least or any(isinstance(n, str) and n not in sizes for n in names):
            continue
        given = tuple(size if isinstance(size, int) else sizes[size] for size in argument.dims)
        least = least_shapes([argument], sizes)[argument.name]
        if any(size < low for size, low in zip(given, least, strict=True)):
            words = " x ".join(extent.words for extent in argument.least)
            raise FragirError(
                f"{argument.name} has shape {given}, {kernel} needs {least} or more ({words})",
                hint="Kernel.least_shapes tells what memory a launch needs",
            )


def _attribute(value: object, name: str) -> Any:
    """An attribute, None where asking for it fails: PyTorch raises various errors."""
    try:
        return getattr(value, name, None)
    except Exception as error:
        pass_on(error)
        return None


def _of_numpy(array: Array, element: Attribute, name: str) -> ArrayView:
    dtype = array.dtype
    given = f"void{8 * dtype.itemsize}" if dtype.kind == "V" and dtype.name[:4] == "void" else None
    _check_type(given or dtype.name, element, name)
    if not dtype.isnative:
        raise FragirError(f"{name} has the other byte order", hint=_NATIVE)
    if any(stride % dtype.itemsize for stride in array.strides):
        raise FragirError(f"{name} has strides of parts of elements", hint="pass a copy")
    strides = tuple(stride // dtype.itemsize for stride in array.strides)
    # launchers take an array without dimensions for its number
    held = array.reshape(1) if array.ndim == 0 else array
    return _element_view(array.shape, strides, element, held, False)


def _element_view(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    element: Attribute,
    value: object,
    on_gpu: bool,
) -> ArrayView:
    """The view of an array, in elements where it has bytes of several elements each."""
    if element_name(element) not in PACKED:
        return ArrayView(shape, strides, value, on_gpu)
    per = 8 // element_bits(element)
    if 0 in shape:  # numpy gives an empty array any strides
        strides = row_major(shape)
    along = [d for d, stride in enumerate(strides) if stride == 1][-1:]
    return ArrayView(
        tuple(size * per if d in along else size for d, size in enumerate(shape)),
        tuple(stride if d in along else stride * per for d, stride in enumerate(strides)),
        value,
        on_gpu,
    )


def _host_array(value: Any, name: str) -> Array:
    """The memory of another package's array on the host, as numpy's."""
    import numpy as np

    dtype = str(getattr(value, "dtype", "")).rpartition(".")[2]
    try:
        if type(value).__module__.partition(".")[0] == "torch":
            return _torch_array(value, dtype)
        return np.from_dlpack(value)
    except Exception as error:  # whatever the other package raises for its types
        pass_on(error)
        try:
            return np.asarray(value, copy=False)
        except Exception as error:
            pass_on(error)
            raise FragirError(
                f"{name} ({type(value).__name__} of {dtype or 'unknown type'}) cannot be looked at "
                f"through numpy: {' '.join(str(error).split())}"
            ) from error


def _torch_array(value: Any, dtype: str) -> Array:
    """A PyTorch tensor's memory; types that numpy lacks as raw bits."""
    if DTYPES.get(dtype) not in RAW:
        return value.numpy()
    import torch  # pyright: ignore[reportMissingImports]  # the tensor's own package

    module = cast("ModuleType", torch)
    bits = module.uint8 if value.element_size() == 1 else module.int16
    array = value.view(bits).numpy()
    return array.view("uint16") if value.element_size() == 2 else array


def _of_cuda(value: object, element: Attribute, name: str) -> ArrayView:
    """An array that shows the CUDA array interface."""
    interface = cast("dict[str, Any]", _attribute(value, "__cuda_array_interface__"))
    typestr = str(interface["typestr"])
    if typestr.startswith(">"):
        raise FragirError(f"{name} has the other byte order", hint=_NATIVE)
    dtype = str(getattr(value, "dtype", "")).rpartition(".")[2]
    if dtype not in DTYPES:
        import numpy as np

        dtype = np.dtype(typestr).name
    _check_type(dtype, element, name)
    shape = tuple(int(size) for size in interface["shape"])
    size = int(typestr[2:])
    given = interface.get("strides")
    strides = row_major(shape)
    if given is not None:
        strides = tuple(int(stride) // size for stride in cast("tuple[int, ...]", given))
    address = int(interface["data"][0])
    if address % ALIGNMENT and 0 not in shape:
        raise FragirError(
            f"{name} begins at an address that is no multiple of {ALIGNMENT} bytes",
            hint="pass a copy",
        )
    return _element_view(shape, strides, element, value, True)


def _of_gpu_tensor(value: Any, element: Attribute, name: str) -> ArrayView:
    """An array on a GPU that speaks DLPack alone."""
    _check_type(str(getattr(value, "dtype", "")).rpartition(".")[2], element, name)
    shape = tuple(int(size) for size in value.shape)
    strides = row_major(shape)
    if callable(getattr(value, "stride", None)):  # PyTorch's; JAX's arrays have no gaps
        strides = tuple(int(stride) for stride in cast("tuple[int, ...]", value.stride()))
    return _element_view(shape, strides, element, value, True)


def _check_type(dtype: str, element: Attribute, name: str) -> None:
    wanted = element_name(element)
    found = DTYPES.get(dtype)
    same = found == wanted or (wanted == "tf32" and found == "f32")
    raw = RAW.get(wanted, ()) + PACKED.get(wanted, ()) + _TRUTH.get(wanted, ())
    if not same and dtype not in raw:
        known = [dtype for dtype, ptx in DTYPES.items() if ptx == wanted] or [*raw, "float32"]
        raise FragirError(f"{name} holds {dtype or 'no type'}, the kernel takes {known[0]}")


def require_32_bits(number: int, what: str) -> int:
    """A size or stride as the device takes it; FragirError where it does not fit."""
    if not -_LARGEST <= number <= _LARGEST:
        raise FragirError(
            f"{what} is {number}, a kernel's sizes, strides and indices have 32 bits",
            hint="pass it in parts",
        )
    return number


def scalar(given: object, type_: Attribute, name: str) -> bytes:
    """A number as the bytes of a parameter; FragirError where the type has no such number."""
    from fragir.toolchain.arguments import pack

    value: Any = given
    kind = {"tf32": "f32", "e4m3": "b8", "e5m2": "b8"}.get(element_name(type_), element_name(type_))
    shown = "index" if isinstance(type_, IndexType) else element_name(type_)
    if getattr(value, "shape", ()) != ():
        raise FragirError(f"{name} is a number ({shown}), not an array")
    if hasattr(value, "item") and not _is_numpy_scalar(given):
        value = value.item()  # an array of no dimensions
    is_real = hasattr(value, "__float__") or hasattr(value, "__index__")
    if isinstance(value, complex) or not is_real or str(getattr(value, "dtype", ""))[:1] == "c":
        raise FragirError(f"{name} must be a number ({shown}), not {kind_of(value)}")
    if kind.startswith(("s", "u")) and not hasattr(value, "__index__"):
        raise FragirError(
            f"{name} is {value}, the kernel takes {shown}", hint="pass a whole number, an int"
        )
    if kind == "b8":
        return _narrow_float_bytes(value, element_name(type_), name)
    return pack(value, kind, name)


def _is_numpy_scalar(value: object) -> bool:
    import numpy as np

    return isinstance(value, np.generic)


def _narrow_float_bytes(value: object, wanted: str, name: str) -> bytes:
    """An 8-bit float, which only ml_dtypes can make."""
    dtype = str(getattr(value, "dtype", ""))
    if DTYPES.get(dtype) != wanted:
        raise FragirError(f"{name} must be a number of ml_dtypes of the type {wanted}")
    return bytes(cast("Any", value).tobytes())
