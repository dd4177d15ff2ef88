"""Names of registers and of everything else in a kernel's text."""

from __future__ import annotations

import re
from functools import lru_cache

_DEFAULT = {1: "p", 8: "c", 16: "h", 32: "r", 64: "rd", 128: "q"}
_CLASS = {1: ".pred", 8: ".b8", 16: ".b16", 32: ".b32", 64: ".b64", 128: ".b128"}


class RegisterNames:
    """Hands out registers named after the value they hold and declares them.

    All registers of one width are declared with the untyped class (.b32 and so on), which every
    instruction of that width takes (PTX ISA 9.2, section 5.2.2), so a bitcast costs nothing.
    """

    def __init__(self) -> None:
        self._count: dict[str, int] = {}
        self._bits: dict[str, int] = {}

    def fresh(self, bits: int, hint: str | None = None) -> str:
        """A new register of 1, 8, 16, 32, 64 or 128 bits."""
        prefix = self._prefix(bits, hint)
        number = self._count.get(prefix, 0)
        self._count[prefix] = number + 1
        self._bits[prefix] = bits
        return f"%{prefix}{number}"

    def _prefix(self, bits: int, hint: str | None) -> str:
        prefix = _spelled(bits, hint)
        while self._bits.get(prefix, bits) != bits:
            prefix += f"_{_DEFAULT[bits]}"
        return prefix

    def declarations(self) -> list[str]:
        """The `.reg` lines."""
        return [
            f".reg {_CLASS[self._bits[prefix]]} %{prefix}<{count}>;"
            for prefix, count in sorted(
                self._count.items(), key=lambda item: (self._bits[item[0]], item[0])
            )
        ]


@lru_cache(maxsize=1024)
def _spelled(bits: int, hint: str | None) -> str:
    """A hint as the beginning of a register's name."""
    prefix = re.sub(r"[^A-Za-z0-9_]", "_", hint or "") or _DEFAULT[bits]
    if not prefix[0].isalpha():
        prefix = f"{_DEFAULT[bits]}_{prefix.strip('_')}"
    return f"{prefix}_" if prefix[-1].isdigit() else prefix


class Labels:
    """Unique labels; they have function scope."""

    def __init__(self) -> None:
        self._count: dict[str, int] = {}

    def fresh(self, hint: str) -> str:
        number = self._count.get(hint, 0)
        self._count[hint] = number + 1
        return f"${hint}_{number}"
