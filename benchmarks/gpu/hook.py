"""Puts the stand-in before fragir's driver where that is imported: a `sitecustomize` of rehearsals.

It is copied, and imports nothing of fragir before a process does so itself.
"""

import importlib.abc
import importlib.util
import json
import os
import sys
from typing import Any

NAME = "fragir.toolchain.driver"


class Loader(importlib.abc.Loader):
    """Loads the driver's module, then replaces what it calls."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def create_module(self, spec: Any) -> Any:
        return self.loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        self.loader.exec_module(module)
        from benchmarks.gpu.stand_in import replace

        replace(module, json.loads(os.environ["FRAGIR_STAND_IN"]))


class Finder(importlib.abc.MetaPathFinder):
    """Finds the driver's module once, for `Loader`."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != NAME:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None:
            spec.loader = Loader(spec.loader)
        return spec


if "FRAGIR_STAND_IN" in os.environ:
    sys.meta_path.insert(0, Finder())
