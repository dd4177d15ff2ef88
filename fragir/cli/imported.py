"""`MODULE:NAME` on a command line: a function or class, found from the working folder."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from fragir.errors import FragirError


def imported(text: str, usage: str) -> Any:
    """What a text names; FragirError where it cannot be imported (which says `usage`) or called."""
    module, _, name = text.partition(":")
    folder = os.getcwd()
    sys.path.insert(0, folder)
    try:
        found: Any = importlib.import_module(module)
    except (Exception, SystemExit) as error:
        words = " ".join(str(error).split())
        raise FragirError(f"cannot import {module}: {words}", hint=usage) from error
    finally:
        sys.path.remove(folder)
    for part in name.split("."):
        if not hasattr(found, part):
            raise FragirError(f"{module} has no {name}")
        found = getattr(found, part)
    if not callable(found):
        raise FragirError(f"{text} is no function")
    return found
