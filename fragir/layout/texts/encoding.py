"""The text of an MLIR attribute such as `#ttg.blocked<{sizePerThread = [1, 4], order = [1, 0]}>`.

Read into a tree with places, so that an error points at the field. Names that stand for attributes
may be defined in lines before, as MLIR prints them:

    #mma = #ttg.nvidia_mma<{versionMajor = 2, ...}>
    #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>

and the attribute may stand in the type that it belongs to, which then says the shape:
`tensor<64x32xf16, #ttg.blocked<{...}>>`, or `!ttg.memdesc<...>` for shared memory.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TypeAlias

from fragir.layout.modes import LayoutError, Point

# -- cursor ----------------------------------------------------------------------------------------
# Reading a short text from left to right; what is wrong is said with the column.

MOST_TEXT = 20_000
MOST_DIGITS = 30
_BLANK = re.compile(r"\s*")
_WORD = re.compile(r"[\w'#.]+")


class Cursor:
    """A position in a text. Blanks before a pattern are skipped."""

    def __init__(self, text: str, what: str, position: int = 0) -> None:
        self.text, self.what, self.position = text, what, position
        if len(text) > MOST_TEXT:
            raise LayoutError(f"{what} has {len(text)} characters; at most {MOST_TEXT} are read.")

    def skip(self) -> None:
        """Past the blanks."""
        match = _BLANK.match(self.text, self.position)
        assert match is not None
        self.position = match.end()

    @property
    def done(self) -> bool:
        """Whether nothing but blanks is left."""
        self.skip()
        return self.position == len(self.text)

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """The pattern if it stands here, and past it."""
        self.skip()
        match = pattern.match(self.text, self.position)
        if match is not None:
            self.position = match.end()
        return match

    def expect(self, pattern: re.Pattern[str], expected: str) -> re.Match[str]:
        """The pattern, which must stand here. Raises LayoutError."""
        match = self.take(pattern)
        if match is None:
            raise self.missing(expected)
        return match

    def sign(self, sign: str) -> bool:
        """Whether these characters stand here; then past them."""
        self.skip()
        if not self.text.startswith(sign, self.position):
            return False
        self.position += len(sign)
        return True

    def expect_sign(self, sign: str, expected: str | None = None) -> None:
        """Past these characters, which must stand here. Raises LayoutError."""
        if not self.sign(sign):
            raise self.missing(expected or f"'{sign}'")

    def expect_end(self, expected: str = "the end") -> None:
        """LayoutError unless nothing is left."""
        if not self.done:
            raise self.missing(expected)

    def missing(self, expected: str) -> LayoutError:
        """The error that something else was expected here."""
        self.skip()
        word = _WORD.match(self.text, self.position)
        here = self.text[self.position : self.position + 1]
        found = repr(word[0][:40] if word else here) if here else "the end"
        return self.error(f"Expected {expected} in {self.what}, but found {found}.")

    def error(self, message: str, at: int | None = None, hint: str | None = None) -> LayoutError:
        """An error about this place of the text, or about the one given."""
        at = self.position if at is None else at
        before = self.text[:at]
        start = before.rfind("\n") + 1
        return LayoutError(
            message,
            file="<layout>",
            line=before.count("\n") + 1,
            col=at - start + 1,
            source=self.text[start:].split("\n", 1)[0],
            hint=hint,
        )


_NAME = re.compile(r"#([A-Za-z_][\w$.]*)")
_KEY = re.compile(r"[A-Za-z_]\w*")
_NUMBER = re.compile(rf"-?\d{{1,{MOST_DIGITS}}}(?!\d)")
_BOOL = re.compile(r"(true|false)\b")
_TYPE = re.compile(r":\s*[iu]\d+\b")
_PADDING = re.compile(r"(\d{1,9})\s*:\s*\+\s*(\d{1,9})(?!\d)")
_TYPE_OF = re.compile(r"(?:tensor|!ttg\.memdesc)\s*<\s*(\d{1,9}(?:x\d{1,9}){0,7})x[A-Za-z]\w*\s*,")
_REST = re.compile(r"[^<>]*>")
_DEEPEST = 16
DIALECTS = ("ttg.", "triton_gpu.")
"""The prefixes of Triton's attributes; the second is that of Triton 3.0 and before."""

Value: TypeAlias = "int | bool | list[Value] | Encoding"


@dataclass(frozen=True)
class Encoding:
    """An attribute: its name without the dialect, its fields, and where each stands in the text."""

    name: str
    fields: dict[str, Value]
    cursor: Cursor = field(repr=False)
    at: int = 0
    places: dict[str, int] = field(default_factory=dict[str, int], repr=False)
    padding: tuple[Point, ...] = ()

    def error(self, message: str, key: str | None = None, hint: str | None = None) -> LayoutError:
        """An error about the attribute or one of its fields."""
        return self.cursor.error(message, self.places.get(key or "", self.at), hint)

    def has(self, key: str) -> bool:
        """Whether a field is given."""
        return key in self.fields

    def _field(self, key: str) -> Value:
        if key not in self.fields:
            raise self.error(f"#ttg.{self.name} has no field {key}.")
        return self.fields[key]

    def number(self, key: str, default: int | None = None, least: int = 0) -> int:
        """A whole number. Raises LayoutError where it is none or missing without a default."""
        if default is not None and key not in self.fields:
            return default
        value = self._field(key)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise self.error(f"{key} is a number of {least} or more.", key)
        return value

    def flag(self, key: str) -> bool:
        """A truth value, false where it is not given."""
        value = self.fields.get(key, False)
        if not isinstance(value, bool):
            raise self.error(f"{key} is true or false.", key)
        return value

    def numbers(self, key: str, rank: int | None = None, least: int = 1) -> Point:
        """A list of numbers, as many as dimensions where the rank is given."""
        value = self._field(key)
        items = value if isinstance(value, list) else [-1]
        kept = [v for v in items if isinstance(v, int) and not isinstance(v, bool) and v >= least]
        if len(kept) != len(items) or rank not in (None, len(kept)) or not kept:
            count = "" if rank is None else f"{rank} "
            raise self.error(f"{key} is a list of {count}numbers of {least} or more.", key)
        return tuple(kept)

    def order(self, rank: int, key: str = "order") -> Point:
        """The dimensions, the fastest first."""
        given = self.numbers(key, rank, 0)
        if sorted(given) != list(range(rank)):
            raise self.error(f"{key} names each of the {rank} dimensions once.", key)
        return given

    def bases(self, key: str) -> tuple[Point, ...]:
        """A list of points; none where the field is not given."""
        value = self.fields.get(key, [])
        points: list[Point] = []
        for item in value if isinstance(value, list) else [0]:
            inner = item if isinstance(item, list) else [-1]
            point = tuple(v for v in inner if isinstance(v, int) and not isinstance(v, bool))
            if len(point) != len(inner) or min(point, default=-1) < 0:
                raise self.error(f"{key} is a list of points such as [[0, 1], [8, 0]].", key)
            points.append(point)
        return tuple(points)

    def encoding(self, key: str) -> Encoding:
        """An attribute."""
        value = self._field(key)
        if not isinstance(value, Encoding):
            raise self.error(f"{key} is an attribute such as #ttg.blocked<...>.", key)
        return value


def read_encoding(text: str) -> tuple[Encoding, Point | None]:
    """The attribute of a text, and the shape where a type says it.

    Raises LayoutError with the column.
    """
    reader = _Reader(Cursor(text, "the attribute"))
    return reader.whole()


class _Reader:
    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.names: dict[str, Encoding] = {}
        self.depth = 0

    def whole(self) -> tuple[Encoding, Point | None]:
        cursor = self.cursor
        while True:
            cursor.skip()
            start = cursor.position
            name = cursor.take(_NAME)
            if name is None or "." in name[1] or not cursor.sign("="):
                cursor.position = start
                break
            last = self.names[name[1]] = self.attribute()
            if cursor.done:
                return last, None
        shape: Point | None = None
        of_type = cursor.take(_TYPE_OF)
        if of_type is not None:
            shape = tuple(map(int, of_type[1].split("x")))
        found = self.attribute()
        if of_type is not None:
            cursor.expect(_REST, "'>'")
        cursor.expect_end()
        return found, shape

    def attribute(self) -> Encoding:
        cursor = self.cursor
        cursor.skip()
        start = cursor.position
        name = cursor.expect(_NAME, "an attribute such as #ttg.blocked<...>")[1]
        if name in self.names:
            return self.names[name]
        dialect = next((d for d in DIALECTS if name.startswith(d)), None)
        if dialect is None:
            hint = f"define it in a line before: #{name} = #ttg...." if "." not in name else None
            raise cursor.error(f"#{name} is no attribute of Triton's.", start, hint)
        self.depth += 1
        if self.depth > _DEEPEST:
            raise cursor.error(f"Attributes stand more than {_DEEPEST} deep in each other.")
        cursor.expect_sign("<")
        padding: tuple[Point, ...] = ()
        if name.endswith("padded_shared"):
            padding = self.padding()
        fields: dict[str, Value] = {}
        places: dict[str, int] = {}
        if cursor.sign("{"):
            self.fields(fields, places, "}")
            if cursor.sign(","):
                self.fields(fields, places, ">")
            else:
                cursor.expect_sign(">")
        else:
            self.fields(fields, places, ">")
        self.depth -= 1
        return Encoding(name.removeprefix(dialect), fields, cursor, start, places, padding)

    def fields(self, fields: dict[str, Value], places: dict[str, int], close: str) -> None:
        cursor = self.cursor
        if cursor.sign(close):
            return
        while True:
            cursor.skip()
            start = cursor.position
            key = cursor.expect(_KEY, "a field such as order = [1, 0]")[0]
            if key in fields:
                raise cursor.error(f"The field {key} stands twice.", start)
            cursor.expect_sign("=")
            places[key] = start
            fields[key] = self.value()
            if cursor.sign(close):
                return
            cursor.expect_sign(",", f"a comma or '{close}'")

    def value(self) -> Value:
        cursor = self.cursor
        if word := cursor.take(_BOOL):
            return word[1] == "true"
        if number := cursor.take(_NUMBER):
            cursor.take(_TYPE)
            return int(number[0])
        if cursor.sign("["):
            return self.list_()
        return self.attribute()

    def list_(self) -> list[Value]:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.cursor.error(f"Brackets stand more than {_DEEPEST} deep in each other.")
        items: list[Value] = []
        while not self.cursor.sign("]"):
            if items:
                self.cursor.expect_sign(",", "a comma or ']'")
            items.append(self.value())
        self.depth -= 1
        return items

    def padding(self) -> tuple[Point, ...]:
        """`[512:+16, 1024:+32]`: after so many elements so many that hold nothing."""
        self.cursor.expect_sign("[")
        pairs: list[Point] = []
        while not self.cursor.sign("]"):
            if pairs:
                self.cursor.expect_sign(",", "a comma or ']'")
            pair = self.cursor.expect(_PADDING, "an interval and its padding such as 512:+16")
            pairs.append((int(pair[1]), int(pair[2])))
        if not pairs:
            raise self.cursor.missing("an interval and its padding such as 512:+16")
        return tuple(pairs)
