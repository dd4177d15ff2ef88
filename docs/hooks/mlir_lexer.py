"""Colours for MLIR: pygments has PTX but no MLIR."""

from __future__ import annotations

import pygments.lexers
from pygments.lexer import RegexLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, String, Text

__all__ = ["MlirLexer"]

_TYPES = r"(?:memref|vector|tensor|index|none|complex|tuple|(?:[su]i|[suif]|bf|tf|e)\d\w*)\b"


class MlirLexer(RegexLexer):
    """Names of operations, values, types, attributes, numbers, strings."""

    name = "MLIR"
    aliases = ("mlir",)
    filenames = ("*.mlir",)
    tokens = {  # noqa: RUF012 - as pygments declares it
        "root": [
            (r"\s+", Text),
            (r"//[^\n]*", Comment.Single),
            (r'"(?:\\.|[^"\\])*"', String),
            (r"%[\w$.-]+(?:#\d+)?(?::\d+)?", Name.Variable),
            (r"@[\w$.-]+", Name.Function),
            (r"\^[\w$.-]+", Name.Label),
            (r"![\w$.-]+", Keyword.Type),
            (r"#[\w$.-]+", Name.Decorator),
            (r"-?\d+\.\d*(?:[eE][+-]?\d+)?\b", Number.Float),
            (r"0x[0-9a-fA-F]+\b", Number.Hex),
            (r"(?:\d+|\?)x(?=[\d?a-z!])", Number.Integer),  # of a shape
            (r"(?<![\w.])-?\d+\b", Number.Integer),
            (r"\b[a-z_]\w*(?:\.[a-z_]\w*)+", Name.Builtin),
            (_TYPES, Keyword.Type),
            (r"\b(?:true|false|unit|dense|affine_map|loc)\b", Keyword.Constant),
            (r"[A-Za-z_]\w*", Name),
            (r"->|[-=+*/<>:?|&]", Operator),
            (r".", Text),
        ]
    }


def register() -> None:
    """Makes ```mlir blocks find it."""
    cls = MlirLexer
    known = vars(pygments.lexers)["LEXERS"]  # as pygments' own are
    known[cls.__name__] = (__name__, cls.name, cls.aliases, cls.filenames, ())
