r"""Bars in the code of tables: a code host wants `a\|b`, Python-Markdown shows the backslash."""

from __future__ import annotations

import re

_CELLS = re.compile(r"^ *\|.*$", re.MULTILINE)
_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")


def plain(text: str) -> str:
    """The page with the bars in code of its tables' rows written plainly."""
    return _CELLS.sub(lambda row: _CODE.sub(_unescaped, row[0]), text)


def _unescaped(code: re.Match[str]) -> str:
    return code[0].replace(r"\|", "|")
