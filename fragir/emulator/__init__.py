"""Runs PTX text on the CPU: `run` a kernel, get a `Report` or an `EmulationError`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fragir.emulator.launch.launch import run
    from fragir.emulator.launch.parameters import Pointer, Struct, pointers
    from fragir.emulator.machine.tensor_map import Im2col, TensorMap
    from fragir.emulator.report import (
        KINDS,
        EmulationError,
        Finding,
        FragmentUse,
        Report,
        Severity,
        Statistics,
    )

_HOMES = {
    "EmulationError": "report",
    "Finding": "report",
    "FragmentUse": "report",
    "Im2col": "machine.tensor_map",
    "KINDS": "report",
    "Pointer": "launch.parameters",
    "Report": "report",
    "Severity": "report",
    "Statistics": "report",
    "Struct": "launch.parameters",
    "TensorMap": "machine.tensor_map",
    "pointers": "launch.parameters",
    "run": "launch.launch",
}

__all__ = [
    "KINDS",
    "EmulationError",
    "Finding",
    "FragmentUse",
    "Im2col",
    "Pointer",
    "Report",
    "Severity",
    "Statistics",
    "Struct",
    "TensorMap",
    "pointers",
    "run",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{home}"), name)
