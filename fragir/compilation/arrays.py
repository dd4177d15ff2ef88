"""Arrays of a launch that are not passed as they are: copies of them, tensor maps made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from xdsl.ir import Attribute

from fragir.compilation.arguments import ALIGNMENT, ArrayView
from fragir.dialects.elements import element_bits
from fragir.dialects.shorthands import memref_type
from fragir.errors import FragirError

if TYPE_CHECKING:
    from fragir.dialects.ptx.tensor_maps import TensorMapRecord
    from fragir.emulator.numbers.types import Array


# -- array copies ----------------------------------------------------------------------------------
# Arrays that a launch cannot pass as they are: with gaps, or in memory that overlaps others'.

_WORK = 100_000  # steps that it may take to see whether two arrays with gaps have common elements


class Borrowed:
    """The arrays of one launch on the host, by the names of their arguments.

    The launchers pass contiguous memory, and give arrays that overlap one buffer. What has gaps is
    taken along as a copy of all the memory that it spans, together with every array that it has
    elements in common with; afterwards `give_back` copies the elements, and only those, back.

    Raises FragirError for negative strides, and for overlapping arrays whose distance no pointer of
    a kernel can have.
    """

    def __init__(self, views: Mapping[str, ArrayView]) -> None:
        self._lent: dict[str, Array] = {}
        self._inside: list[tuple[Array, Array]] = []
        hosts = {name: view for name, view in views.items() if not view.on_gpu}
        for name, view in hosts.items():
            if min(view.strides, default=0) < 0:
                raise FragirError(f"{name} has a negative stride", hint="pass a copy")
        for group in _sharing({name: cast("Array", view.value) for name, view in hosts.items()}):
            if len(group) > 1 and any(array.flags.writeable for array in group.values()):
                _check_distances(group)
            if not all(hosts[name].is_contiguous for name in group):
                self._copy(group)

    def lend(self, view: ArrayView, name: str) -> object:
        """What to pass for an array."""
        return self._lent.get(name, view.value)

    def give_back(self) -> None:
        """Copies what the kernel wrote into the arrays."""
        for array, inside in self._inside:
            if array.flags.writeable:
                array[...] = inside

    def _copy(self, group: Mapping[str, Array]) -> None:
        """One piece of memory for arrays that share elements, without what lies in their gaps."""
        import numpy as np

        spans = {name: _span(array) for name, array in group.items()}
        first = min(start for start, _ in spans.values())
        memory = np.zeros(max(end for _, end in spans.values()) - first, np.uint8)
        for name, array in group.items():
            start, end = (at - first for at in spans[name])
            span = memory[start:end].view(array.dtype)
            inside = np.lib.stride_tricks.as_strided(span, array.shape, array.strides)
            inside[...] = array
            self._inside.append((array, inside))
            lent = span[:]
            lent.flags.writeable = array.flags.writeable
            self._lent[name] = lent


def _span(array: Array) -> tuple[int, int]:
    """The addresses of an array's first byte and of that behind its last; strides from 0 up."""
    start = int(array.__array_interface__["data"][0])
    if array.size == 0:
        return start, start
    steps = zip(array.shape, array.strides, strict=True)
    return start, start + sum((n - 1) * stride for n, stride in steps) + array.itemsize


def _sharing(arrays: Mapping[str, Array]) -> list[dict[str, Array]]:
    """The arrays in groups that have no element in common with another group."""
    groups: list[dict[str, Array]] = []
    for name, array in arrays.items():
        joined = {name: array}
        apart: list[dict[str, Array]] = []
        for group in groups:
            if any(_share_elements(array, other) for other in group.values()):
                joined = group | joined
            else:
                apart.append(group)
        groups = [*apart, joined]
    return groups


def _share_elements(one: Array, other: Array) -> bool:
    """Whether two arrays have elements in common."""
    import numpy as np

    (start, end), (low, high) = _span(one), _span(other)
    if start >= high or low >= end:
        return False
    try:
        return np.shares_memory(one, other, max_work=_WORK)  # pyright: ignore[reportArgumentType]
    except np.exceptions.TooHardError:
        return True


def _check_distances(group: Mapping[str, Array]) -> None:
    """FragirError where arrays of one buffer cannot all begin at addresses that kernels take."""
    (first, array), *others = group.items()
    at = _span(array)[0]
    for name, other in others:
        distance = _span(other)[0] - at
        if distance % ALIGNMENT:
            raise FragirError(
                f"{name} overlaps {first} and begins {abs(distance)} bytes"
                f" {'behind' if distance > 0 else 'before'} it, no multiple of {ALIGNMENT}",
                hint="pass a copy, or read-only views of what the kernel only reads",
            )


# -- tensor arguments ------------------------------------------------------------------------------
# What a launch of a kernel with copies by TMA takes: tensor maps, made of the arrays that it is
# called with, and grids of whole clusters.

UNIT = 16
"""Bytes: the strides of a tensor map, and its address, are multiples (PTX ISA 9.2, 5.5.1)."""

# how tensormap.replace calls the types that it has (PTX ISA 9.2, section 9.7.9.28)
_KINDS = {
    **{name: name for name in ("f16", "bf16", "f32", "f64", "s32", "s64")},
    **{"tf32": "f32", "e2m1x2": "b4x16"},
}
_BY_BITS = {8: "u8", 16: "u16", 32: "u32", 64: "u64"}


@dataclass(frozen=True, eq=False)
class GpuTensorMap:
    """A tensor map of an array that lies on the GPU; as `fragir.emulator.TensorMap`."""

    array: Any
    box: tuple[int, ...]
    swizzle: int
    strides: tuple[int, ...]
    shape: tuple[int, ...]
    kind: str
    promotion: int = 0
    element_strides: None = None
    fill: str = "zero"
    atom: int = 16
    im2col: None = None


def in_clusters(
    grid: tuple[int, int, int], cluster: tuple[int, int, int], may_grow: bool
) -> tuple[int, int, int]:
    """A grid as one of whole clusters; FragirError where it is none and may not grow."""
    x, y, z = (-(-n // size) * size for n, size in zip(grid, cluster, strict=True))
    if (x, y, z) != grid and not may_grow:
        shapes = ["x".join(map(str, sizes)) for sizes in (grid, cluster)]
        raise FragirError(
            f"a grid of {shapes[0]} blocks is not made of clusters of {shapes[1]}",
            hint="write `masked` at all accesses to global memory: then more blocks may run",
        )
    return x, y, z


def tensor_maps(
    records: Sequence[TensorMapRecord],
    types: Sequence[Attribute],
    views: Sequence[ArrayView | None],
    borrowed: Borrowed,
    names: Sequence[str],
) -> list[object]:
    """The tensor maps that a kernel takes, of its arguments' types and arrays."""
    found: list[object] = []
    for record in records:
        view, name = views[record.array], names[record.array]
        assert view is not None
        bits = element_bits(memref_type(types[record.array]).element_type)
        found.append(_tensor_map(record, view, borrowed.lend(view, name), bits, name))
    return found


def _tensor_map(
    record: TensorMapRecord, view: ArrayView, memory: object, bits: int, name: str
) -> object:
    """The tensor map of a record, of an array that lies in `memory` as a launcher is given it.

    FragirError, with a way out, for strides that no tensor map has, and for rows that no store can
    end with. Of an array without elements
    it is one of zeros: what the kernel reads there is zero, what it writes there is nobody's.
    """
    size = max(1, bits // 8)
    shape, strides = view.shape, tuple(stride * bits // 8 for stride in view.strides)
    if record.turned:
        shape, strides = _reversed_numbers(shape), _reversed_numbers(strides)
    kind = _KINDS.get(record.element) or _BY_BITS[bits]
    if 0 in shape:
        import numpy as np

        memory, shape = np.zeros(UNIT, np.uint8), (*(1,) * (len(shape) - 1), 8 * UNIT // bits)
    length = -(-shape[-1] * bits // 8)
    if record.written and length % UNIT:
        raise FragirError(
            f"{name} has rows of {length} bytes; the kernel writes it by TMA, which "
            f"writes multiples of {UNIT}, so what lies behind a row would be overwritten",
            hint=f"make rows whole multiples of {UNIT} bytes, or store by threads (frag.store)",
        )
    # the stride of a dimension of one element is nobody's
    row = -(-length // UNIT) * UNIT
    strides = tuple(
        row if extent == 1 else stride for extent, stride in zip(shape, strides, strict=True)
    )
    for dim, stride in enumerate(strides[:-1]):
        if stride % UNIT:
            raise FragirError(
                f"{name} has a stride of {stride} bytes in dimension "
                f"{len(shape) - 1 if record.turned and dim == len(shape) - 2 else dim}; the kernel "
                f"copies it by TMA, which takes multiples of {UNIT}",
                hint="pad its rows, or compile with copies by `frag.copy async`",
            )
    strides = (*strides[:-1], size)
    if view.on_gpu and 0 not in view.shape:
        return GpuTensorMap(
            memory, record.box, record.swizzle, strides, shape, kind, record.promotion
        )
    from fragir.emulator import TensorMap

    given: Any = memory
    swizzle: Any = record.swizzle
    promotion: Any = record.promotion
    return TensorMap(
        given,
        record.box,
        swizzle,
        strides=strides,
        shape=shape,
        kind=kind,
        promotion=promotion,
    )


def _reversed_numbers(numbers: Sequence[int]) -> tuple[int, ...]:
    *leading, first, second = numbers
    return (*leading, second, first)
