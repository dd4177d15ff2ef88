"""What a text is in that is not in the language that is read: one sentence, and the way out."""

from __future__ import annotations

import re
from typing import NamedTuple


class Language(NamedTuple):
    """A language by how its texts begin, and what to do with one."""

    name: str
    begins: re.Pattern[str]
    advice: str


def _begins(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"^[ \t]*(?:{pattern})", re.MULTILINE)


PTX, MLIR = "PTX", "MLIR"
_LANGUAGES = (
    Language(
        PTX,
        _begins(r"\.version[ \t]+\d"),
        "PTX is for `fragir emulate`, `check` and `assemble`, and `fragir explain K.ptx`",
    ),
    Language(
        "CUDA C++",
        _begins(
            r'#[ \t]*(?:include|pragma|define|ifdef)\b|extern[ \t]+"C"|template[ \t]*<'
            r"|(?:static[ \t]+)?__(?:global|device)__\b|using[ \t]+namespace\b"
        ),
        "`nvcc -ptx` makes PTX of it, which `fragir check` runs",
    ),
    Language(
        "LLVM IR",
        _begins(r"; ModuleID\b|target[ \t]+(?:triple|datalayout)\b|(?:define|declare)[ \t]+\w+"),
        "`llc -march=nvptx64` makes PTX of it, which `fragir check` runs",
    ),
    Language(
        "Python",
        _begins(
            r"(?:import|from)[ \t]+[\w.]+|def[ \t]+\w+\(|class[ \t]+\w+|@\w[\w.]*$"
            r"|with[ \t]+\w|(?:\"\"\"|''')"
        ),
        "a kernel that is built in Python (`with fragir.kernel(...)`) is run by python",
    ),
    Language(
        MLIR,
        _begins(r"(?:builtin\.)?module\b|func\.func\b|[#!]\w+[ \t]*=|%\w+[ \t]*=|\"[\w.]+\"\("),
        "`fragir compile K.mlir -o K.ptx` makes PTX of it",
    ),
)

#: Dialects of MLIR that others have: of what they are, and how one comes from them to what is read.
_DIALECTS: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (
        ("tt", "ttg", "ttng", "triton_gpu", "triton_nvidia_gpu"),
        "Triton IR",
        "`fragir check` runs the PTX that Triton makes of it, `fragir layout` reads its layouts",
    ),
    (
        ("stablehlo", "mhlo", "chlo", "vhlo"),
        "StableHLO",
        "`stablehlo-opt --stablehlo-legalize-to-linalg` makes linalg of it, which is read",
    ),
    (("tosa",), "TOSA", "`mlir-opt -pass-pipeline=...tosa-to-linalg-named` makes linalg of it"),
    (("torch", "torch_c"), "a dialect of torch-mlir", "its linalg-on-tensors form is read"),
)


_COMMENTS = re.compile(r"(?:\s++|//[^\n]*+|#[ \t!][^\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/)*+")
"""Of C, MLIR and PTX, and of Python."""


def _sentence(name: str, read: str, advice: str) -> str:
    return f"this is {name}, and {read} is read here: {advice}"


def foreign_text(text: str, read: str) -> str | None:
    """`this is CUDA C++, and MLIR is read here: ...` of a text that is no `read` (`PTX` or
    `MLIR`) but another language's; None where its beginning says of none."""
    start = _COMMENTS.match(text)
    at = 0 if start is None else start.end()
    at = text.rfind("\n", 0, at) + 1
    for language in _LANGUAGES:
        if language.begins.match(text, at):
            if language.name == read:
                return None
            return _sentence(language.name, read, language.advice)
    return None


def foreign_dialect(dialect: str) -> str | None:
    """The same of MLIR in a dialect that is neither fragir's nor xDSL's."""
    for names, name, advice in _DIALECTS:
        if dialect in names:
            return _sentence(name, "MLIR of frag, linalg and what goes with them", advice)
    return None
