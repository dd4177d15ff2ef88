"""wgmma: asynchronous, with groups (PTX ISA 9.2, section 9.7.15)."""

from __future__ import annotations

from fragir.emulator.alu import Decode

TABLE: dict[str, Decode] = {}
