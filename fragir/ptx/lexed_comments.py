"""The comments that Lark's lexer meets, thread by thread."""

from __future__ import annotations

import threading
from typing import Any


class LexedComments(threading.local):
    """The comments that the lexer passed over during a parse of this thread."""

    found: list[tuple[int, str]]

    def __init__(self) -> None:
        self.found = []

    def add(self, token: Any) -> Any:
        self.found.append((int(token.start_pos), str(token)))
        return token
