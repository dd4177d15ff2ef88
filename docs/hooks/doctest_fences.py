"""Examples in documentation strings as blocks of code: mkdocstrings loads this into griffe.

A documentation string is plain text with `>>>` examples, for `help()` and doctest. Markdown would
take these for quotations.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

_EXAMPLE = re.compile(r"^( *)>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)


class DoctestFences(Extension):
    """Puts every example into a fence."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Called for each module, class, function and attribute that is read."""
        if obj.docstring is not None and ">>> " in obj.docstring.value:
            obj.docstring.value = fenced_examples(obj.docstring.value)


def fenced_examples(text: str) -> str:
    """The text with its examples in fences, blank lines around them."""

    def fence(match: re.Match[str]) -> str:
        lines = [line.removeprefix(match[1]) for line in match[0].splitlines()]
        return "\n```pycon\n" + "\n".join(lines) + "\n```\n"

    return _EXAMPLE.sub(fence, text)
