"""An operation with a mistake of each kind."""

from collections.abc import Iterator, Mapping
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import StringAttr, f64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, prop_def

import fragir.dialects.interfaces as interfaces
from fragir.dialects import frag, ptx
from fragir.errors import FragirError
from fragir.layout import Layout

from .right import OneLayout


def rows(lanes: int) -> frag.ExplicitLayoutAttr:
    """Rows of 16 elements, each spread over so many lanes; 32 rows."""
    each, down = 16 // lanes, 32 // lanes
    text = f"lane [{lanes}:(0,{each}) {down}:(1,0)] element [{each}:(0,1) {lanes}:({down},0)]"
    return frag.ExplicitLayoutAttr(Layout.parse(text))


def unsound(lanes: Any, value: SSAValue) -> SSAValue:
    return lanes.insert(ptx.ShuffleXorOp(value, 77)).result


@irdl_op_definition
class WrongOp(OneLayout, interfaces.FragmentwiseInterface, interfaces.ReferenceInterface):
    """Passes a tile on, wrongly."""

    name = "toy.wrong"
    how = prop_def(StringAttr)
    assembly_format = "$how $source attr-dict `:` type($source)"

    def demands(self, threads: interfaces.Threads) -> Iterator[interfaces.LayoutDemand]:
        small = frag.ExplicitLayoutAttr(Layout.parse("lane [8:(1,0) 4:(0,1)] element [1:(0,0)]"))
        match self.how.data:
            case "small layout":
                yield interfaces.LayoutDemand(self.result, small, "result")
            case "no layout":
                yield interfaces.LayoutDemand(self.result, StringAttr("rows"), "result")
            case "contradiction":
                yield interfaces.LayoutDemand(self.result, rows(2), "result")
            case "refusal":
                raise FragirError(f"no layout on {threads.target}", hint="none at all")
            case _:
                pass

    def propagate(
        self, known: Mapping[SSAValue, Attribute]
    ) -> Iterator[tuple[SSAValue, Attribute]]:
        if self.how.data == "contradiction":
            yield self.source, rows(1)

    def lower_to_lanes(self, lanes: Any) -> None:
        elements = lanes.elements(self.source)

        def late(i: int) -> SSAValue:
            return unsound(lanes, elements[i])

        match self.how.data:
            case "count":
                lanes.bind(self.result, elements[1:])
            case "type":
                wide = [lanes.insert(arith.ExtFOp(x, f64)).result for x in elements]
                lanes.bind(self.result, wide)
            case "unsound":
                unsound(lanes, elements[0])
            case "twice":
                lanes.bind(self.result, elements)
                lanes.bind(self.result, elements)
            case "mask":
                lanes.shuffle_xor(elements[0], 32)
            case "late":
                lanes.bind_each(self.result, late)
            case "fragments":
                lanes.bind_each(self.result, elements.__getitem__)
            case "nothing":
                pass
            case "slip":
                {}["nothing here"]
            case _:
                lanes.bind(self.result, elements)

    def evaluate(self, run: Any) -> None:
        from fragir.reference import Bounded

        x = run[self.source]
        run[self.result] = Bounded(x.value[0], x.bound[0]) if self.how.data == "shape" else x
