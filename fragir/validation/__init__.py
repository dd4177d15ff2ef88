"""Probes of instructions: what the table says, held against an emulator or a GPU."""

from __future__ import annotations
