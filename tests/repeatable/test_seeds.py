"""The same input gives the same PTX, messages and findings, whatever the order of sets is.

The processes of `batch.py` differ in their PYTHONHASHSEED, which decides it. FRAGIR_SEEDS=8
compares all outputs in so many processes; a difference is looked at with
`PYTHONHASHSEED=1 python tests/repeatable/batch.py --show NAME`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

BATCH = Path(__file__).with_name("batch.py")
SEEDS = int(os.environ.get("FRAGIR_SEEDS", "0"))
ONE_OF = 1 if SEEDS else 9  # of all outputs


def started(seed: int) -> subprocess.Popen[str]:
    command = [sys.executable, str(BATCH), "--one-of", str(ONE_OF)]
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def test_outputs_do_not_depend_on_the_hash_seed() -> None:
    processes = [started(seed) for seed in range(1, 1 + max(SEEDS, 2))]
    outputs = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes)
    digests: list[dict[str, str]] = [json.loads(output) for output in outputs]
    first, *others = digests
    assert len(first) > 600 // ONE_OF
    different = {name for other in others for name in first if first[name] != other[name]}
    assert sorted(different) == []
