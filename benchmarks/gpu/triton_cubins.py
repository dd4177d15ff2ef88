"""Triton's kernels in a kit: compiled here by Triton itself, launched there by our driver.

Here `Maker` asks `benchmarks/workers/triton_kernels.py`, in an environment of its own, and keeps
what it answers under `data/triton`: the cubin that Triton's own ptxas has made, its PTX, and what a
launch must know. There `triton` starts it. Where Triton cannot be installed, the kit goes without.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from benchmarks.gpu.contest import Contender
from benchmarks.gpu.device import DeviceArray
from benchmarks.gpu.kit import Kit
from fragir.errors import FragirError
from fragir.toolchain import driver

if TYPE_CHECKING:
    from neighbours import Worker

    from benchmarks.gpu.build import Builder


class Maker:
    """Triton's process, while a kit is made; `make` is False for what Triton refuses."""

    def __init__(self, kit: Builder) -> None:
        self.kit = kit
        self.worker: Worker | None = kit.triton

    def make(self, name: str, request: dict[str, Any], target: str | None = None) -> bool:
        """Compiles a kernel (`request` as the worker's docstring says) and keeps it by its name.

        With a `target` our ptxas assembles its PTX for that: machine code for sm_80 is of no use.
        """
        if self.worker is None:
            return False
        answer = self.worker.ask(request)
        if "error" in answer:
            self.kit.leave_out(f"Triton: {name}", answer["error"])
            return False
        cubin, ptx = (base64.b64decode(answer.pop(key)) for key in ("cubin", "ptx"))
        if target is not None:
            cubin = self.kit.carry(ptx.decode(), target).cubin
        self.kit.keep(f"triton/{slug(name)}.cubin", cubin)
        self.kit.keep(f"ptx/{hashlib.sha256(cubin).hexdigest()}.ptx", ptx)
        self.kit.keep(f"triton/{slug(name)}.json", json.dumps(answer, sort_keys=True).encode())
        return True


def slug(name: str) -> str:
    """A file's name for a kernel's."""
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in name)


def has_triton(kit: Kit, name: str) -> bool:
    """Whether the kit has a kernel."""
    return kit.path(f"triton/{slug(name)}.json").exists()


def triton(
    kit: Kit, name: str, arguments: Sequence[DeviceArray | int | float], grid: Sequence[int]
) -> Contender:
    """A kernel of the kit on arrays of the GPU and numbers, in the order of its parameters.

    FragirError where the kit does not have it.
    """
    path = kit.path(f"triton/{slug(name)}.json")
    if not path.exists():
        raise FragirError("the kit was made without it")
    facts: dict[str, Any] = json.loads(path.read_text("utf-8"))
    cubin = path.with_suffix(".cubin").read_bytes()
    given: list[Any] = [x.address if isinstance(x, DeviceArray) else x for x in arguments]
    given += [None] * facts["scratch"]  # pointers to memory that these kernels do not ask for
    start = driver.prepare(
        cubin,
        facts["entry"],
        grid=tuple(grid),
        block=(32 * facts["warps"],),
        arguments=given,
        shared=facts["shared"],
    )
    told = {key: facts[key] for key in ("triton", "options") if key in facts}
    return Contender(start, {**told, "cubin_sha256": hashlib.sha256(cubin).hexdigest()})
