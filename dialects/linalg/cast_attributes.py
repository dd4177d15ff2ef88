"""Attributes of linalg that xDSL lacks: how inputs are cast, which elementwise function."""

from __future__ import annotations

from typing import ClassVar

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException


class _WordAttr(Data[str]):
    """One of some words, `#linalg.name<word>`."""

    WORDS: ClassVar[frozenset[str]]

    def verify(self) -> None:
        if self.data not in self.WORDS:
            raise VerifyException(
                f"#{self.name} has no {self.data}; there are {', '.join(sorted(self.WORDS))}"
            )

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        with parser.in_angle_brackets():
            return parser.parse_identifier()

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(self.data)


@irdl_attr_definition
class TypeFnAttr(_WordAttr):
    """How inputs are cast to the type of the output."""

    name = "linalg.type_fn"
    WORDS = frozenset(("cast_signed", "cast_unsigned"))

    @property
    def is_unsigned(self) -> bool:
        return self.data == "cast_unsigned"


@irdl_attr_definition
class ElementwiseKindAttr(_WordAttr):
    """What `linalg.elementwise` computes."""

    name = "linalg.elementwise_kind"
    WORDS = frozenset(
        "exp log abs ceil floor negf reciprocal round sqrt rsqrt square tanh erf add sub mul div "
        "div_unsigned max_signed min_signed max_unsigned min_unsigned powf select".split()
    )
