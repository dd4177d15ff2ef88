"""Kernels that do nothing but convert a tile, made alike for fragir and for Triton.

Every 32-bit word of the tile in its source layout (64-bit elements: every element) comes from a
volatile load of one address, a thread's own, and every word in the target layout goes to a volatile
store, all to one address: there is next to nothing to compute beside the conversion, and no
compiler can tell what the words hold, take them for the same in all lanes, or leave one out. The
same kernel without the conversion tells the rest.
"""

from __future__ import annotations

import re
from typing import Any

import conversion_cases as cases
import xdsl.dialects.builtin as builtin
from conversion_cases import Case
from xdsl.dialects import func
from xdsl.ir import Block, Region, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def

import fragir
from fragir.dialects import frag, ptx
from fragir.dialects.interfaces import LaneInterface
from fragir.layout import Layout, LinearLayout, to_linear

WORD = 32  # bits of a register
_FRAG_ELEMENTS = {8: builtin.i8, 16: builtin.f16, 32: builtin.f32, 64: builtin.f64}

# --- accesses ---------------------------------------------------------------------------------


def load(kind: str, value: str, pointer: str) -> str:
    """PTX that loads a value from the thread's own place, of 8 bytes."""
    place = f"mov.u32 t, %tid.x; mad.wide.u32 a, t, 8, {pointer};"
    return f"{{ .reg .b32 t; .reg .b64 a; {place} ld.volatile.global.{kind} {value}, [a]; }}"


def store(kind: str, pointer: str, value: str) -> str:
    """PTX that stores a value to one place for all threads."""
    return f"st.volatile.global.{kind} [{pointer}], {value};"


# --- fragir -----------------------------------------------------------------------------------


@irdl_op_definition
class RegistersOp(IRDLOperation, LaneInterface):
    """A tile whose words are loaded one by one from the first word of memory."""

    name = "bench.registers"
    memory = operand_def(builtin.MemRefType)
    result = result_def(frag.TileType)

    def lower_to_lanes(self, lanes: Any) -> None:
        tile = self.result.type
        assert isinstance(tile, frag.TileType)
        assert tile.placement is not None
        element, count = tile.element_type, tile.placement.chunk
        word, words = _words(tile)
        pointer = lanes.memory(self.memory).pointer

        def fragment(_: int) -> SSAValue:
            loads = [lanes.insert(ptx.LoadOp(pointer, 0, word)).value for _ in range(words)]
            packed = lanes.insert(ptx.PackOp(loads)).result
            wanted = ptx.vector_type(element, count)
            if packed.type == wanted:
                return packed
            return lanes.insert(ptx.BitcastOp(packed, wanted)).result

        lanes.bind_each(self.result, fragment)


@irdl_op_definition
class UseOp(IRDLOperation, LaneInterface):
    """Stores the words of a tile one by one into the first word of memory."""

    name = "bench.use"
    tile = operand_def(frag.TileType)
    memory = operand_def(builtin.MemRefType)

    def lower_to_lanes(self, lanes: Any) -> None:
        tile = self.tile.type
        assert isinstance(tile, frag.TileType)
        word, words = _words(tile)
        pointer = lanes.memory(self.memory).pointer
        for fragment in lanes.fragments(self.tile):
            wanted = ptx.vector_type(word, words)
            if fragment.type != wanted:
                fragment = lanes.insert(ptx.BitcastOp(fragment, wanted)).result
            for scalar in lanes.insert(ptx.UnpackOp(fragment)).scalars:
                lanes.insert(ptx.StoreOp(scalar, pointer, 0))


def _words(tile: frag.TileType) -> tuple[builtin.IntegerType, int]:
    """The type of what is loaded at once, and how many of it a fragment has."""
    assert tile.placement is not None
    bits = ptx.bits(tile.element_type)
    width = max(bits, WORD)
    return builtin.IntegerType(width), tile.placement.chunk * bits // width


def fragir_module(case: Case, convert: bool) -> builtin.ModuleOp:
    """The kernel as a module; without `convert` the tile stays in its source layout."""
    element = _FRAG_ELEMENTS[case.bits]
    types = [
        frag.TileType(case.shape, element, frag.ExplicitLayoutAttr(layout))
        for layout in (case.source, case.target)
    ]
    word = builtin.MemRefType(builtin.IntegerType(max(case.bits, WORD)), [1])
    block = Block(arg_types=[word])
    registers = RegistersOp.create(operands=[block.args[0]], result_types=[types[0]])
    block.add_op(registers)
    tile = registers.result
    if convert:
        conversion = frag.ConvertOp.create(operands=[tile], result_types=[types[1]])
        block.add_op(conversion)
        tile = conversion.results[0]
    block.add_op(UseOp.create(operands=[tile, block.args[0]]))
    block.add_op(func.ReturnOp())
    kernel = func.FuncOp("conversion", ([word], []), Region(block))
    kernel.attributes["frag.warps"] = builtin.DenseArrayBase.from_list(builtin.i64, [case.warps, 1])
    return builtin.ModuleOp([kernel])


def fragir_ptx(case: Case, target: str, convert: bool = True) -> str:
    """What fragir makes of the kernel; FragirError where it refuses the conversion."""
    text = fragir.compile(fragir_module(case, convert), target=target).ptx
    loads, stores = load(r"\1", r"\2", r"\3"), store(r"\1", r"\2", r"\3")
    text = re.sub(r"ld\.global\.(\w+) (%\w+), \[(%\w+)\];", loads, text)
    return re.sub(r"st\.global\.(\w+) \[(%\w+)\], (%\w+);", stores, text)


# --- Triton -----------------------------------------------------------------------------------


def triton_layout(layout: Layout, shape: cases.Shape) -> str:
    """A layout as Triton's `#ttg.linear`: LayoutError where it is not linear over F2."""
    linear = to_linear(layout)
    assert isinstance(linear, LinearLayout)
    bases = {name: [list(point) for point in points] for name, points in linear.axes}
    lane, warp = bases.get("lane", []), bases.get("warp", [])
    lane, warp = lane[:5], lane[5:] + warp  # a warpgroup's lanes go on over its warps
    lane += [[0] * len(shape)] * (5 - len(lane))
    register = bases.get("element", [])
    return f"#ttg.linear<{{register = {register}, lane = {lane}, warp = {warp}, block = []}}>"


def triton_module(case: Case, target: int, convert: bool = True) -> str:
    """The kernel as TTGIR."""
    packed = max(1, WORD // case.bits)  # elements that a volatile access takes
    address, kind = ",l" * packed, "l" if case.bits == 64 else "r"
    access = f"b{max(case.bits, WORD)}"
    extents = "x".join(map(str, case.shape))
    element = cases.ELEMENTS[case.bits]
    layouts = [triton_layout(layout, case.shape) for layout in (case.source, case.target)]
    moved = "#target" if convert else "#source"
    change = (
        f"%y = ttg.convert_layout %x : tensor<{extents}x{element}, #source>"
        f" -> tensor<{extents}x{element}, #target>"
    )
    loads = load(access, "$0", "$1")
    stores = store(access, "$2", "$1") + f" mov.{access} $0, 0;"
    attributes = f"packed_element = {packed} : i32, pure = false"
    return f"""
#source = {layouts[0]}
#target = {layouts[1]}
module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = {case.warps} : i32,
    ttg.target = "cuda:{target}", "ttg.threads-per-warp" = 32 : i32}} {{
  tt.func public @conversion(%p: !tt.ptr<i64> {{tt.divisibility = 16 : i32}}) {{
    %from = tt.splat %p : !tt.ptr<i64> -> tensor<{extents}x!tt.ptr<i64>, #source>
    %to = tt.splat %p : !tt.ptr<i64> -> tensor<{extents}x!tt.ptr<i64>, {moved}>
    %x = tt.elementwise_inline_asm "{loads}" {{constraints = "={kind}{address}", {attributes}}}
      %from : tensor<{extents}x!tt.ptr<i64>, #source> -> tensor<{extents}x{element}, #source>
    {change if convert else ""}
    %z = tt.elementwise_inline_asm "{stores}"
      {{constraints = "={kind},{kind}{address}", {attributes}}}
      {"%y" if convert else "%x"}, %to :
      tensor<{extents}x{element}, {moved}>, tensor<{extents}x!tt.ptr<i64>, {moved}>
      -> tensor<{extents}x{element}, {moved}>
    tt.return
  }}
}}
"""
