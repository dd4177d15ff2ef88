"""Reads PTX files with pyptx in an environment of its own: least CPU ms for each, or null.

Requests are lines of JSON on stdin with `path` and `runs`; null where pyptx refuses the file.
"""

# pyptx is installed in another environment than the one that checks types.
# pyright: reportMissingImports=false, reportUnknownVariableType=false

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from pyptx.parser import parse


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        text = Path(request["path"]).read_text("utf-8")
        times: list[float] = []
        try:
            for _ in range(request["runs"]):
                start = time.process_time()
                parse(text)
                times.append((time.process_time() - start) * 1e3)
        except Exception:  # a parser of others, whatever it raises
            times = []
        print(json.dumps({"ms": min(times, default=None)}), flush=True)


if __name__ == "__main__":
    main()
