"""What an error in MLIR text adds: the name that was meant, and where the missing token is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from fragir import plugins
from fragir.late_dialect import LateDialect

_USUAL = ("frag", "ptx", "func", "arith", "math", "memref", "tensor", "linalg", "scf", "gpu")
"""Dialects that programs are written in, where a name has another one's."""
_NAME = re.compile(r"[A-Za-z_][\w$]*(?:\.[\w$.]+)?")

#: What other languages call the types of elements.
_ELEMENTS = {
    "f16": ("fp16", "half", "float16"),
    "bf16": ("bfloat16", "bfloat"),
    "f32": ("fp32", "float", "float32", "tf32"),
    "f64": ("fp64", "double", "float64"),
    "i1": ("bool", "b1", "pred"),
    "i4": ("int4", "s4"),
    "i8": ("int8", "s8"),
    "i16": ("int16", "s16", "short"),
    "i32": ("int", "int32", "s32"),
    "i64": ("int64", "s64", "long"),
    "ui4": ("uint4", "u4"),
    "ui8": ("uint8", "u8"),
    "ui32": ("uint32", "u32"),
    "f8E4M3FN": ("fp8", "f8", "e4m3", "fp8e4m3", "float8_e4m3fn", "f8E4M3"),
    "f8E5M2": ("e5m2", "fp8e5m2", "float8_e5m2"),
    "f4E2M1FN": ("fp4", "f4", "e2m1", "float4_e2m1fn"),
}
_CALLED = {name: element for element, names in _ELEMENTS.items() for name in names}


def _close(name: str, names: Iterable[str]) -> list[str]:
    """The nearest of names that differ behind their dialect; empty where none is near."""
    from difflib import get_close_matches  # few texts are wrong

    dialect, dot, word = name.rpartition(".")
    words = sorted(each.removeprefix(dialect + dot) for each in names)
    return [f"{dialect}{dot}{near}" for near in get_close_matches(word, words, 1, 0.6)]


def did_you_mean(names: Iterable[str]) -> str:
    """`; did you mean frag.load?`, or nothing."""
    found = " or ".join(names)
    return f"; did you mean {found}?" if found else ""


def meant_operations(name: str) -> list[str]:
    """Names of operations near one that does not exist: of its dialect, or of one called so."""
    dialect, dot, word = name.partition(".")
    if not dot:
        return [each for each in map("{}.{}".format, _USUAL, [name] * len(_USUAL)) if _is_op(each)]
    if dialect not in plugins.own_dialects():
        for near in _close(dialect, _USUAL):
            names = set(_operations(near))
            if f"{near}.{word}" in names:
                return [f"{near}.{word}"]
        return []
    return _close(name, _operations(dialect))


def _is_op(name: str) -> bool:
    return name in _operations(name.partition(".")[0])


def _operations(dialect: str) -> Iterator[str]:
    found = plugins.own_dialects()[dialect]()
    if isinstance(found, LateDialect):
        yield from found.late
        yield from (op.name for op in found.early)
    else:
        yield from (op.name for op in found.operations)


def _attributes(dialect: str, sigil: str) -> Iterator[str]:
    """The types (`!`) or attributes (`#`) of a dialect, with the sign."""
    from xdsl.ir import TypeAttribute

    if dialect not in plugins.own_dialects():
        return
    for found in plugins.own_dialects()[dialect]().attributes:
        if issubclass(found, TypeAttribute) == (sigil == "!"):
            yield f"{sigil}{found.name}"


def meant_attributes(name: str, sigil: str) -> list[str]:
    """Types (`!`) or attributes (`#`) near one that does not exist."""
    dialect, _, word = name.partition(".")
    if dialect in plugins.own_dialects():
        other = "#" if sigil == "!" else "!"
        if f"{other}{name}" in _attributes(dialect, other):
            return [f"{other}{name}"]
        return _close(f"{sigil}{name}", _attributes(dialect, sigil))
    for near in _close(dialect, _USUAL):
        if f"{sigil}{near}.{word}" in _attributes(near, sigil):
            return [f"{sigil}{near}.{word}"]
    return []


def meant_here(text: str, start: int) -> str:
    """What was meant by a word where a type or an attribute is expected: the sign is missing, or
    it is another language's name of one."""
    given = text[start] if text[start : start + 1] in ("!", "#") else ""
    found = _NAME.match(text, start + len(given))
    if found is None:
        return ""
    name = found[0]
    if name in _CALLED:
        return did_you_mean([_CALLED[name]])
    for sigil in "!#".replace(given, ""):
        if f"{sigil}{name}" in _attributes(name.partition(".")[0], sigil):
            return did_you_mean([f"{sigil}{name}"])
    return ""


_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\\n]++|\\.)*+"?|//[^\n]*+')
_BRACKET_OR_LINE = re.compile(r"[()\[\]{}\n]")
_PAIRS = {")": "(", "]": "[", "}": "{"}


def end_of_tokens(text: str) -> int:
    """Behind the last token of a text: what comes after is blank, or a comment."""
    plain = _STRING_OR_COMMENT.sub(
        lambda found: found[0] if found[0][0] == '"' else " " * len(found[0]), text
    )
    return len(plain.rstrip())


def place_of_missing(text: str, start: int) -> int:
    """Where a token is missing that was looked for at `start`: behind what stands before, where
    that is on a line above."""
    end = end_of_tokens(text[:start])
    return end if end and "\n" in text[end:start] else start


def unclosed(text: str) -> str:
    """`the { of line 3 is not closed`, of the innermost; empty where all are."""
    open_: list[tuple[str, int]] = []
    line = 1
    for one in _BRACKET_OR_LINE.findall(_STRING_OR_COMMENT.sub("", text)):
        if one in "([{":
            open_.append((one, line))
        elif one in _PAIRS and open_ and open_[-1][0] == _PAIRS[one]:
            open_.pop()
        line += one == "\n"
    return f"the {open_[-1][0]} of line {open_[-1][1]} is not closed" if open_ else ""
