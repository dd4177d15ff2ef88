"""What to say about a mnemonic that does not exist."""

from __future__ import annotations

from fragir.isa.model import Form, UnknownInstruction


def unknown(mnemonic: str, form: Form | None) -> UnknownInstruction:
    """The error for a mnemonic that the table does not have."""
    return UnknownInstruction(f"there is no instruction {mnemonic!r}")
