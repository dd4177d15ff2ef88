"""Calls of functions that the driver has: vprintf and __assertfail."""

from __future__ import annotations

from collections.abc import Sequence

from fragir.dialects import ptx
from fragir.passes.writer.text import KernelText
from fragir.ptx.spelling import address

_VPRINTF = ".extern .func (.param .b32 count) vprintf (.param .b64 format, .param .b64 values);"
_ASSERTFAIL = """\
.extern .func __assertfail (
    .param .b64 message, .param .b64 file, .param .b32 line, .param .b64 function,
    .param .b64 size
);"""


def print_(w: KernelText, op: ptx.PrintfOp) -> None:
    """The values stand in local memory one after the other, each at a multiple of its size."""
    w.declare(_VPRINTF)
    silent = None
    if op.predicate is not None:
        silent = w.labels.fresh_label("silent")
        w.emit("bra", silent, guard=f"!{w.register(op.predicate)}")
    form, values, at = _text(w, op.format.data), w.registers.fresh_register(64), 0
    for value in op.values:
        bits = max(32, ptx.bits(value.type))
        at = -(-at // (bits // 8)) * (bits // 8)
        w.emit(f"st.local.b{bits}", address(w.local_memory, at), w.register(value))
        at += bits // 8
    w.local = max(w.local, at)
    if at:
        w.emit("mov.u64", values, w.local_memory)
        w.emit("cvta.local.u64", values, values)
    else:
        w.emit("mov.b64", values, "0")
    _call(w, "vprintf", [("b64", form), ("b64", values)], "b32")
    if silent is not None:
        w.label(silent)


def assert_fail(w: KernelText, op: ptx.AssertFailOp) -> None:
    w.declare(_ASSERTFAIL)
    message, file, function = (_text(w, text) for text in (op.message.data, op.file.data, w.kernel))
    line = str(op.line.value.data)
    operands = [("b64", message), ("b64", file), ("b32", line), ("b64", function), ("b64", "1")]
    _call(w, "__assertfail", operands, None)


def _text(w: KernelText, text: str) -> str:
    """A register with the generic address of a text."""
    register = w.registers.fresh_register(64)
    w.emit("mov.u64", register, w.constant_text(text))
    w.emit("cvta.global.u64", register, register)
    return register


def _call(
    w: KernelText, name: str, operands: Sequence[tuple[str, str]], result: str | None
) -> None:
    """A call by the ABI, its parameters in a scope of their own."""
    names = [f"a{number}" for number in range(len(operands))]
    w.lines.append("    {")
    for parameter, (type_, _) in zip(names, operands, strict=True):
        w.lines.append(f"    .param .{type_} {parameter};")
    if result is not None:
        w.lines.append(f"    .param .{result} count;")
    for parameter, (type_, value) in zip(names, operands, strict=True):
        w.emit(f"st.param.{type_}", address(parameter), value)
    returned = [] if result is None else ["(count)"]
    w.emit("call.uni", *returned, name, f"({', '.join(names)})")
    w.lines.append("    }")
