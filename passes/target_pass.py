"""What the passes have in common that are told for which target they work."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.passes import ModulePass


@dataclass(frozen=True)
class TargetPass(ModulePass):
    """A pass with the option `target`, such as sm_90a; a pipeline gives it the compilation's."""

    target: str = "sm_80"
