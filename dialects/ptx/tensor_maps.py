"""What a launch must know of a function: the tensor maps that it takes, its clusters.

    func.func @f(%a: !ptx.ptr<global>, %map: !ptx.tensor_map) attributes {ptx.tensor_maps = [
      {array = 0, box = array<i64: 128, 64>, swizzle = 128}]}

A tensor map is a kernel parameter of 128 bytes that a launch makes of an array
(`cuTensorMapEncodeTiled`; PTX ISA 9.2, section 5.5.8). Maps are the last arguments, one for each
record in order; `array` counts the arguments of the program, of which the kernel was made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    IntegerAttr,
    StringAttr,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition

from fragir.dialects.shorthands import integers, is_array

RECORDS = "ptx.tensor_maps"
CLUSTER = "ptx.cluster"
"""Of a function: the blocks of its clusters along x, y and z."""
WHOLE_CLUSTERS = "ptx.whole_clusters"
"""Of a function: its grid may be rounded up to whole clusters."""


@irdl_attr_definition
class TensorMapType(ParametrizedAttribute, TypeAttribute):
    """A tensor map, as the address of the kernel parameter that it is: `!ptx.tensor_map`."""

    name = "ptx.tensor_map"


class TensorMapRecord(NamedTuple):
    """A tensor map that a kernel takes: of which array, and how tiles of it are copied.

    Dimensions go outermost first, but where `turned` the last two are exchanged: the contiguous
    one is always last.
    """

    array: int
    """The number of the argument."""
    box: tuple[int, ...]
    """Elements of a tile along each dimension."""
    swizzle: int
    """Bytes of the pattern in shared memory, 0 for none."""
    element: str
    """The PTX name of the element type."""
    turned: bool = False
    promotion: int = 128
    """Bytes that the L2 cache fetches at least; 0 for what is asked."""
    written: bool = False
    """Whether tiles are stored by it: then rows are whole chunks of 16 bytes."""

    def attribute(self) -> DictionaryAttr:
        """As an attribute of the program."""
        written = {"written": IntegerAttr.from_bool(True)} if self.written else {}
        return DictionaryAttr(
            {
                "array": IntegerAttr(self.array, i64),
                "box": DenseArrayBase.from_list(i64, self.box),
                "element": StringAttr(self.element),
                "promotion": IntegerAttr(self.promotion, i64),
                "swizzle": IntegerAttr(self.swizzle, i64),
                "turned": IntegerAttr.from_bool(self.turned),
                **written,
            }
        )


def record_list(records: Sequence[TensorMapRecord]) -> ArrayAttr[DictionaryAttr]:
    """What a function's `ptx.tensor_maps` says."""
    return ArrayAttr([record.attribute() for record in records])


def records_of(function: FuncOp) -> tuple[TensorMapRecord, ...]:
    """The tensor maps that a function takes; none where it says nothing."""
    attribute: Attribute | None = function.attributes.get(RECORDS)
    if attribute is None:
        return ()
    return tuple(map(_record, cast("ArrayAttr[DictionaryAttr]", attribute)))


def _record(attribute: DictionaryAttr) -> TensorMapRecord:
    data = attribute.data

    def number(name: str) -> int:
        return cast("IntegerAttr", data[name]).value.data

    return TensorMapRecord(
        number("array"),
        tuple(integers(cast("DenseArrayBase", data["box"]))),
        number("swizzle"),
        cast("StringAttr", data["element"]).data,
        bool(number("turned")),
        number("promotion"),
        "written" in data,
    )


def launched_cluster(function: FuncOp) -> tuple[tuple[int, int, int], bool]:
    """The blocks of a function's clusters, and whether its grid may be rounded up to whole ones."""
    attribute: Attribute | None = function.attributes.get(CLUSTER)
    if attribute is None or not is_array(attribute):
        return (1, 1, 1), False
    x, y, z = integers(attribute)
    return (x, y, z), WHOLE_CLUSTERS in function.attributes


# -- counts ----------------------------------------------------------------------------------------
# What a launch must keep below 2^31: `ptx.counts = [[4, "m", "n"]]` is 4 m n.

COUNTS = "ptx.counts"


def counts_of(function: FuncOp) -> tuple[tuple[int, tuple[str, ...]], ...]:
    """Numbers and the names of sizes, each a product."""
    found: list[tuple[int, tuple[str, ...]]] = []
    noted = function.attributes.get(COUNTS, ArrayAttr([]))
    for count in cast("ArrayAttr[ArrayAttr[Attribute]]", noted).data:
        parts = count.data
        numbers = [int(part.value.data) for part in parts if isinstance(part, IntegerAttr)]
        names = tuple(part.data for part in parts if isinstance(part, StringAttr))
        found.append((numbers[0] if numbers else 1, names))
    return tuple(found)
