"""What machine this is, and whether its driver takes the cubins of the kit."""

from __future__ import annotations

import platform
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

from benchmarks.gpu.device import clocks
from benchmarks.gpu.kit import TARGET, Kit, Work
from fragir.errors import FragirError

if TYPE_CHECKING:
    from benchmarks.gpu.build import Builder

SMALLEST = """.version 7.0
.target sm_80
.address_size 64
.visible .entry smallest(.param .u64 out)
{
	.reg .b32 %r<2>;
	.reg .b64 %rd<2>;
	ld.param.u64 %rd0, [out];
	mov.u32 %r0, %tid.x;
	mad.wide.u32 %rd1, %r0, 4, %rd0;
	st.global.u32 [%rd1], %r0;
	ret;
}
"""


def units(kit: Kit) -> list[str]:
    """Facts, and the driver's word."""
    return ["machine", "cubins"]


def prepare(kit: Builder) -> None:
    """The kernel that the driver is shown first."""
    kit.carry(SMALLEST, TARGET)


def run(work: Work) -> dict[str, Any]:
    """What later steps and the report go by."""
    if work.unit == "cubins":
        return taken()
    return {"machine": machine(), "versions": versions(), "clocks": clocks()._asdict()}


def machine() -> dict[str, Any]:
    """What results hold for; FragirError where there is no GPU."""
    from fragir.toolchain import driver
    from fragir.toolchain.find import PTXAS, find

    gpu = driver.gpu()
    try:
        ptxas = find(PTXAS).version
    except FragirError:
        ptxas = None
    return {
        "gpu": gpu.name,
        "target": gpu.target,
        "cuda": gpu.driver,
        "driver": _driver(),
        "memory": gpu.memory,
        "ptxas_there": ptxas,
    }


def _driver() -> str | None:
    """The driver's version as nvidia-smi says it: `580.159.04`."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return None
    command_ = [tool, "--query-gpu=driver_version", "--format=csv,noheader", "-i", "0"]
    try:
        done = subprocess.run(command_, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip().splitlines()[0] if done.stdout.strip() else None


def versions() -> dict[str, str]:
    """Of Python and the packages that are measured."""
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version(), "system": platform.platform()}
    for name in ("fragir", "numpy", "torch", "triton", "cuda-bindings", "nvidia-cublas"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def taken() -> dict[str, Any]:
    """Whether the driver loads and runs a carried cubin, and else its words."""
    import numpy as np

    from fragir.toolchain import cubins, driver

    carried = cubins.carried_cubin(TARGET, SMALLEST)
    if carried is None:
        return {"taken": False, "words": "the kit's cubins are not there"}
    out = np.zeros(32, np.uint32)
    try:
        driver.launch(carried[0], "smallest", grid=(1,), block=(32,), arguments=(out,))
    except FragirError as error:
        return {"taken": False, "words": str(error)}
    if out.tolist() != list(range(32)):
        return {"taken": False, "words": f"a kernel that counts to 32 wrote {out.tolist()}"}
    return {"taken": True, "words": ""}
