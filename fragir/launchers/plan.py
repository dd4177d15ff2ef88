"""What a launch must know of a kernel, in plain values."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from fragir.compilation.kernel import Kernel
from fragir.compilation.signature import Argument
from fragir.dialects.elements import element_bits, element_name
from fragir.dialects.frag.grid import BlockCount, Extent
from fragir.dialects.shorthands import is_memref, memref_type
from fragir.errors import FragirError

Number = int | str
"""A number, or the name of a size that the launch gives."""


@dataclass(frozen=True)
class Array:
    """An array argument: elements by their PTX type, extents, strides in elements.

    A stride is a product: of numbers and sizes. `least` is how large it must be in each dimension:
    (size, divisor), rounded up; () is any size. `constant`: its bytes, where the program brings it
    along and the launcher puts it on the GPU.
    """

    name: str
    type: str
    bits: int
    shape: tuple[Number, ...]
    strides: tuple[tuple[Number, ...], ...]
    least: tuple[tuple[Number, int], ...] = ()
    constant: bytes | None = None


@dataclass(frozen=True)
class ByValue:
    """A number that is passed by value: its PTX type and its bytes."""

    name: str
    type: str
    bytes: int


@dataclass(frozen=True)
class BareAddress:
    """The address of a buffer of which the program says nothing else."""

    name: str


@dataclass(frozen=True)
class Map:
    """A tensor map of 128 bytes, made of an array before the launch.

    `box`: elements along each dimension, outermost first; where `turned` the last two dimensions of
    the array are exchanged. `swizzle` and `promotion` are bytes, 0 for none; `type` is the driver's
    `CU_TENSOR_MAP_DATA_TYPE_...`. `written`: tiles are stored by it, in rows of whole 16 bytes.
    """

    name: str
    array: str
    type: str
    box: tuple[int, ...]
    swizzle: int
    promotion: int
    turned: bool
    written: bool


@dataclass(frozen=True)
class Size:
    """A size or stride of an array, which the kernel takes as an s32."""

    name: str
    of: str


Parameter = Array | ByValue | BareAddress | Map | Size


@dataclass(frozen=True)
class LaunchPlan:
    """All that a launch must know.

    `sizes` are the names that it gives numbers, `promises` of what they are multiples; of `counts`,
    numbers times sizes, each stays below 2^31, as every size does. `grid` has
    the blocks along x, y and z: products of sizes divided and rounded up; a grid that is not made
    of whole clusters is rounded up to some where `whole_clusters`, and else refused. `shared` is
    the dynamic shared memory in bytes, beyond 48 KiB if any: the function's attribute must allow
    it.
    """

    entry: str
    target: str
    sizes: tuple[str, ...]
    promises: dict[str, int]
    counts: tuple[tuple[int, tuple[str, ...]], ...]
    grid: tuple[BlockCount, BlockCount, BlockCount]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    whole_clusters: bool
    shared: int
    parameters: tuple[Parameter, ...]

    @property
    def arrays(self) -> tuple[Array, ...]:
        """The arguments that are arrays."""
        return tuple(one for one in self.parameters if isinstance(one, Array))

    @property
    def arguments(self) -> tuple[Array | ByValue | BareAddress, ...]:
        """What a caller gives beside sizes."""
        given = (x for x in self.parameters if isinstance(x, Array | ByValue | BareAddress))
        return tuple(x for x in given if not isinstance(x, Array) or x.constant is None)

    @property
    def constants(self) -> tuple[tuple[str, bytes], ...]:
        """The names and bytes of arrays that no caller gives."""
        return tuple((one.name, one.constant) for one in self.arrays if one.constant is not None)

    @property
    def resident(self) -> bool:
        """Whether no more blocks are launched than run at once."""
        return any(count.resident for count in self.grid)


def plan_of(kernel: Kernel) -> LaunchPlan:
    """The plan of a compiled kernel."""
    parameters = tuple(_parameters(kernel))
    names: dict[str, None] = {}
    for one in parameters:
        if isinstance(one, Array):
            names |= dict.fromkeys(n for n in one.shape if isinstance(n, str))
            names |= dict.fromkeys(n for part in one.strides for n in part if isinstance(n, str))
    given = () if kernel.grid_attribute is None else kernel.grid_attribute.data
    counts = [BlockCount((one,)) if isinstance(one, Extent) else one for one in given]
    x, y, z = (*counts, *(BlockCount((Extent(1),)),) * 3)[:3]
    return LaunchPlan(
        entry=kernel.name,
        target=kernel.target,
        sizes=tuple(names),
        promises={name: n for name, n in kernel.promises.items() if name in names and n > 1},
        counts=tuple(count for count in kernel.counts if set(count[1]) <= names.keys()),
        grid=(x, y, z),
        block=kernel.block,
        cluster=kernel.cluster,
        whole_clusters=kernel.whole_clusters,
        shared=kernel.shared,
        parameters=parameters,
    )


def _parameters(kernel: Kernel) -> Iterator[Parameter]:
    """In the order of the PTX: each array is followed by its dynamic sizes and strides."""
    for number, argument in enumerate(kernel.signature):
        if argument.is_pointer:
            yield BareAddress(argument.name)
        elif argument.is_tensor_map:
            raise FragirError(
                f"{argument.name} of {kernel.name} is a tensor map that the program takes itself",
                hint="launchers are made of programs of tiles, whose maps are known",
            )
        elif not argument.is_memory:
            bits = element_bits(argument.type)
            yield ByValue(argument.name, element_name(argument.type), max(8, bits) // 8)
        else:
            held = None if argument.constant is None else kernel.held.arrays[number].tobytes()
            yield from _array(argument, held)
    for record in kernel.tensor_maps:
        array = kernel.signature[record.array]
        bits = element_bits(memref_type(array.type).element_type)
        yield Map(
            f"{array.name}_map{len(record.box)}",
            array.name,
            _MAP_TYPES.get(record.element) or _MAP_TYPES[f"{bits}"],
            record.box,
            record.swizzle,
            record.promotion,
            record.turned,
            record.written,
        )


#: by the element's PTX name, or its bits where it is copied as unsigned numbers
_MAP_TYPES = {
    **{"f16": "FLOAT16", "bf16": "BFLOAT16", "f32": "FLOAT32", "tf32": "FLOAT32"},
    **{"f64": "FLOAT64", "s32": "INT32", "s64": "INT64", "e2m1x2": "16U4_ALIGN8B"},
    **{"8": "UINT8", "16": "UINT16", "32": "UINT32", "64": "UINT64"},
}


def _array(argument: Argument, constant: bytes | None) -> Iterator[Parameter]:
    assert is_memref(argument.type)
    element = memref_type(argument.type).element_type
    strides = argument.strides
    products = _row_major(argument.dims) if strides is None else tuple((s,) for s in strides)
    yield Array(
        argument.name,
        element_name(element),
        element_bits(element),
        argument.dims,
        products,
        tuple((extent.size, extent.divisor) for extent in argument.least),
        constant,
    )
    for number, size in enumerate((*argument.dims, *(strides or ()))):
        if isinstance(size, str):
            yield Size(f"{argument.name}_d{number}", size)


def _row_major(dims: tuple[Number, ...]) -> tuple[tuple[Number, ...], ...]:
    return tuple(dims[i + 1 :] or (1,) for i in range(len(dims)))


def word(name: str, taken: set[str]) -> str:
    """A name of C and of Python like this one, that is not taken yet; it is then."""
    base = re.sub(r"\W", "_", name, flags=re.ASCII)
    base = f"_{base}" if not base or base[0].isdigit() else base
    found, number = base, 0
    while found in taken:
        number += 1
        found = f"{base}_{number}"
    taken.add(found)
    return found


def formula(count: BlockCount) -> str:
    """The blocks along one dimension, to be read: `ceil(m / 128) * ceil(n / 256)`."""
    text = " * ".join(one.words for one in count.factors)
    return f"min({text}, blocks that run at once)" if count.resident else text


#: (bytes, name in C, `ctypes`) of a scalar by its PTX type; halves go by their bits
SCALARS: dict[str, tuple[str, str]] = {
    "f32": ("float", "c_float"),
    "f64": ("double", "c_double"),
    "f16": ("unsigned short", "c_uint16"),
    "bf16": ("unsigned short", "c_uint16"),
    "s8": ("signed char", "c_int8"),
    "u8": ("unsigned char", "c_uint8"),
    "b1": ("unsigned char", "c_uint8"),
    "s16": ("short", "c_int16"),
    "u16": ("unsigned short", "c_uint16"),
    "s32": ("int", "c_int32"),
    "u32": ("unsigned int", "c_uint32"),
    "s64": ("long long", "c_int64"),
    "u64": ("unsigned long long", "c_uint64"),
}


def scalar_type(scalar: ByValue) -> tuple[str, str]:
    """How C and `ctypes` call a scalar's type; bits of its size where they have no such type."""
    signed: dict[int, Literal["u8", "u16", "u32", "u64"]] = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}
    return SCALARS.get(scalar.type) or SCALARS[signed[scalar.bytes]]


# -- document --------------------------------------------------------------------------------------
# A launch plan as JSON: docs/json.md has the schema.


def document(plan: LaunchPlan, kernel: Kernel) -> str:
    """The text of the document."""
    content = {
        "entry": plan.entry,
        "target": plan.target,
        "ptx_sha256": hashlib.sha256(kernel.ptx.encode()).hexdigest(),
        "sizes": list(plan.sizes),
        "promises": plan.promises,
        "counts": [{"number": number, "sizes": list(names)} for number, names in plan.counts],
        "grid": [
            {
                "formula": formula(count),
                "factors": [{"size": one.size, "divisor": one.divisor} for one in count.factors],
                "resident": count.resident,
                "cluster": count.cluster,
            }
            for count in plan.grid
        ],
        "block": list(plan.block),
        "cluster": list(plan.cluster),
        "whole_clusters": plan.whole_clusters,
        "shared": plan.shared,
        "parameters": [_parameter(one) for one in plan.parameters],
    }
    return json.dumps(content, indent=2) + "\n"


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _parameter(one: Parameter) -> dict[str, object]:
    match one:
        case Array():
            return {
                "kind": "array",
                "name": one.name,
                "bytes": 8,
                "type": one.type,
                "bits": one.bits,
                "shape": list(one.shape),
                "strides": [list(part) for part in one.strides],
                "least": [{"size": size, "divisor": divisor} for size, divisor in one.least],
                **({} if one.constant is None else {"constant": _base64(one.constant)}),
            }
        case ByValue():
            return {"kind": "scalar", "name": one.name, "bytes": one.bytes, "type": one.type}
        case Size():
            return {"kind": "size", "name": one.name, "bytes": 4, "type": "s32", "size": one.of}
        case Map():
            return {
                "kind": "tensor_map",
                "name": one.name,
                "bytes": 128,
                "type": one.type,
                "array": one.array,
                "box": list(one.box),
                "swizzle": one.swizzle,
                "promotion": one.promotion,
                "turned": one.turned,
                "written": one.written,
            }
        case _:
            return {"kind": "pointer", "name": one.name, "bytes": 8}
