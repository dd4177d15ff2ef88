"""The only place that touches Lark: its parser over `grammar.lark`, its terminals, its errors.

Lark is loaded when a text has something that the shapes in `fragir.ptx.word_classes` do not have.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from fragir.ptx.rules import LIMITS, Refused, Unexpected

if TYPE_CHECKING:
    from lark import Lark

    from fragir.ptx.build import LexedComments


class Grammar(NamedTuple):
    parser: Lark
    terminals: dict[str, str]  # name -> regular expression, to be compiled with re.ASCII
    comments: LexedComments


@cache
def grammar() -> Grammar:
    """The parser, made once in a process (some 0.1 s)."""
    import lark

    from fragir.ptx.build import Build, LexedComments

    text = Path(__file__).with_name("grammar.lark").read_text("utf-8")
    comments = LexedComments()
    parser = lark.Lark(
        text,
        parser="lalr",
        lexer="contextual",
        start=list(LIMITS),
        transformer=cast(Any, Build()),  # Lark takes any object with a method per rule
        lexer_callbacks={"COMMENT": comments.add},
        g_regex_flags=re.ASCII,
    )
    terminals = {t.name: t.pattern.to_regexp() for t in parser.terminals}
    return Grammar(parser, terminals, comments)


def parse(text: str, start: str, begin: int = 0, end: int | None = None) -> Any:
    """What `Build` makes of text[begin:end] as a `start`; offsets count from the start of text."""
    stop = len(text) if end is None else end
    if stop - begin > LIMITS[start]:
        raise Refused(f"a statement of more than {LIMITS[start]} characters", begin)
    import lark
    from lark.utils import TextSlice

    parser: Any = grammar().parser  # its annotations know trees only, not a transformer's results
    try:
        return parser.parse(TextSlice(text, begin, stop), start=start)
    except lark.UnexpectedCharacters as error:
        raise Unexpected(int(cast(Any, error.pos_in_stream)), frozenset(error.allowed)) from None
    except lark.UnexpectedToken as error:
        token: Any = error.token
        at = stop if token.type == "$END" else int(token.start_pos)
        raise Unexpected(at, frozenset(error.accepts or error.expected)) from None
