"""Bytes of constants in texts of MLIR: `dense<"0x...">`, and what `dense_resource<...>` names.

The bytes of a resource stand behind the module:

    {-# dialect_resources: { builtin: { w: "0x04000000..." } } #-}

four bytes of alignment, then the elements in row-major order, little-endian. Elements of less than
a byte have a byte each, or lie in as many bytes as their bits take, the first lowest.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from xdsl.dialect_interfaces.op_asm import OpAsmDialectInterface
from xdsl.dialects.builtin import (
    BytesAttr,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    IntegerType,
    ShapedType,
)
from xdsl.ir import Attribute, Operation
from xdsl.parser import Parser

from fragir.errors import FragirError

_ALIGNMENT = 4
"""Bytes at the head of a resource, which say how its elements are to be aligned."""


def constant_of_bytes(data: bytes, type_: Any) -> DenseIntOrFPElementsAttr:
    """The constant of a tensor type whose elements are these bytes, or all of which are one such;
    FragirError where they are too many or too few.
    """
    element, count = type_.get_element_type(), prod(type_.get_shape())
    size = getattr(element, "compile_time_size", None)
    if size is None:
        raise FragirError(f"a constant of {element} cannot be read; pass it as an argument")
    bits = element.bitwidth if isinstance(element, IntegerType) else 8 * size
    packed = -(-count * bits // 8)
    if bits < 8 and len(data) == packed != count:
        data = _unpacked(data, bits, count)
    elif len(data) == size != count * size:
        data *= count
    if len(data) != count * size:
        raise FragirError(
            f"{type_} has {count} elements of {size} bytes, but {len(data)} bytes are given"
        )
    if bits == 1:  # a byte of MLIR's true may be 255
        data = data.translate(bytes([0, *[1] * 255]))
    return DenseIntOrFPElementsAttr(type_, BytesAttr(data))


def _unpacked(data: bytes, bits: int, count: int) -> bytes:
    per, mask = 8 // bits, (1 << bits) - 1
    every = (byte >> bits * at & mask for byte in data for at in range(per))
    return bytes(code for code, _ in zip(every, range(count)))


class Resources(Parser):
    """Keeps the resources of a text by their names in it.

    xDSL keeps them by dialect for as long as the process lives, so that a second text with the same
    names would find others.
    """

    def __init__(self, *given: Any):
        super().__init__(*given)
        self.blobs: dict[str, str] = {}

    def _parse_dialect_resource_handle(
        self, dialect_name: str, interface: OpAsmDialectInterface
    ) -> str:
        quoted = self.parse_optional_str_literal()
        return self.parse_identifier(" for resource handle") if quoted is None else quoted

    def _parse_resource(self, dialect_name: str, interface: OpAsmDialectInterface) -> None:
        key = self._parse_dialect_resource_handle(dialect_name, interface)
        self.parse_punctuation(":")
        self.blobs[key] = self.parse_str_literal()

    def _parse_external_resources(self) -> None:
        """What other tools note, such as how to reproduce a crash, says nothing of the program."""

        def entry() -> None:
            self.parse_identifier()
            self.parse_punctuation(":")
            read = self.parse_optional_str_literal, self.parse_optional_boolean
            if all(one() is None for one in read):
                self.parse_integer()

        def group() -> None:
            self.parse_identifier()
            self.parse_punctuation(":")
            self.parse_comma_separated_list(self.Delimiter.BRACES, entry)

        self.parse_comma_separated_list(self.Delimiter.BRACES, group)

    def parse_dense_int_or_fp_elements_attr(self, type: Any) -> DenseIntOrFPElementsAttr:
        """As xDSL's; elements in hexadecimal may be smaller than a byte."""
        start = self.pos
        self.parse_punctuation("<", " in dense attribute")
        text = self.parse_optional_str_literal()
        if text is None:
            self._resume_from(start)
            return super().parse_dense_int_or_fp_elements_attr(type)
        self.parse_punctuation(">", " in dense attribute")
        if type is None:
            self.parse_punctuation(":", " in dense attribute")
            type = Parser._parse_dense_literal_type(self)
        try:
            return constant_of_bytes(_from_hexadecimal(text), type)
        except FragirError as error:
            self.raise_error(str(error), start, self.pos)


def _from_hexadecimal(text: str) -> bytes:
    try:
        if text.startswith("0x"):
            return bytes.fromhex(text[2:])
    except ValueError:
        pass
    raise FragirError("bytes are written in hexadecimal, two digits each, behind 0x")


def put_in_place(module: Operation, blobs: Mapping[str, str]) -> tuple[Operation, str] | None:
    """Gives constants the bytes of their resources; the first operation where that cannot be done,
    and why. Those whose resource the text lacks stay as they are.
    """
    for op in module.walk() if blobs else ():
        for held in (op.properties, op.attributes):
            for name, value in held.items():
                if isinstance(value, DenseResourceAttr) and value.resource_handle.data in blobs:
                    try:
                        held[name] = _constant(value, blobs[value.resource_handle.data])
                    except FragirError as error:
                        return op, f"the resource {value.resource_handle.data}: {error}"
    return None


def _constant(value: DenseResourceAttr, text: str) -> Attribute:
    type_ = value.type
    assert isinstance(type_, ShapedType)
    return constant_of_bytes(_from_hexadecimal(text)[_ALIGNMENT:], type_)
