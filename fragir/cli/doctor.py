"""`fragir doctor`: what is found on this machine, and how to get what is not."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from fragir.cli.command import FINDING, Document, command, json_option, print_json, print_table
from fragir.errors import FragirError

if TYPE_CHECKING:
    from fragir.toolchain.find import Wanted

REQUIRED = ("click", "lark", "numpy", "rich", "xdsl")
GROUPS = ("xdsl.universe", "fragir.stages", "fragir.targets", "fragir.opcodes")
"""Entry points by which packages extend fragir."""
OPTIONAL = ("cuda-bindings", "cuda-core", "mcp", "ml-dtypes", "textual")


EXAMPLES = (
    ("What is there, and how to get what is not:", "fragir doctor"),
    ("The same for a script:", "fragir doctor --json"),
)


@command(examples=EXAMPLES)
@json_option
def main(as_json: bool) -> int | None:
    """Show what fragir finds on this machine: tools, packages, GPU.

    Exits with 1 where something is missing that compiling or assembling needs.
    """
    found = examine()
    if as_json:
        print_json(found)
    else:
        print_table(["what", "found", "where"], _rows(found))
        for problem in found["problems"]:
            print(f"problem: {problem}")
    return FINDING if found["problems"] else None


def examine() -> Document:
    """The document of `fragir doctor --json`."""
    import platform

    from fragir.toolchain import cubins
    from fragir.toolchain.find import NVDISASM, PTXAS

    problems: list[str] = []
    packages = {name: _version(name) for name in (*REQUIRED, *OPTIONAL)}
    for name in REQUIRED:
        if packages[name] is None:
            problems.append(f"{name} is not installed (pip install {name})")
    ptxas = _tools(PTXAS, problems, required=True)
    nvdisasm = _tools(NVDISASM, problems, required=False)
    gpu, reason = _gpu()
    try:
        state = cubins.state()
        cache = {
            "folder": None if state.folder is None else str(state.folder),
            "files": state.files,
            "bytes": state.size,
            "limit": state.limit,
        }
    except FragirError as error:
        problems.append(str(error))
        cache = None
    return {
        "fragir": _version("fragir"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": packages,
        "extensions": _extensions(),
        "ptxas": ptxas,
        "nvdisasm": nvdisasm,
        "gpu": gpu,
        "gpu_reason": reason,
        "core": _core(problems),
        "cache": cache,
        "problems": list(dict.fromkeys(problems)),
    }


def _version(package: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _extensions() -> list[dict[str, str | None]]:
    """What other packages add, as they say: none of them is imported."""
    from importlib.metadata import entry_points

    found: list[dict[str, str | None]] = []
    for group in GROUPS:
        for entry in entry_points(group=group):
            package = None if entry.dist is None else entry.dist.name
            if package not in ("fragir", "xdsl"):
                version = None if entry.dist is None else entry.dist.version
                row = {"package": package, "version": version, "group": group}
                found.append({**row, "name": entry.name, "value": entry.value})
    return sorted(found, key=lambda row: [str(value) for value in row.values()])


def _tools(wanted: Wanted, problems: list[str], *, required: bool) -> list[dict[str, str]]:
    from fragir.toolchain.find import every

    try:
        tools = every(wanted)
    except FragirError as error:
        problems.append(str(error))
        return []
    if required and not tools:
        problems.append(f"{wanted.name} was not found ({wanted.hint})")
    return [{"version": t.version, "path": str(t.path), "origin": t.origin} for t in tools]


def _gpu() -> tuple[dict[str, object] | None, str | None]:
    from dataclasses import asdict

    from fragir.toolchain import driver

    reason = driver.available()
    if reason is not None:
        return None, reason
    return asdict(driver.gpu()), None


def _core(problems: list[str]) -> dict[str, str | None] | None:
    """What runs the emulator's steps, and why nothing faster does."""
    from fragir.emulator.native import library

    try:
        name = library.core()
    except FragirError as error:
        problems.append(str(error))
        return None
    return {"name": name, "level": library.level(), "reason": library.why_not_faster()}


def _rows(found: Document) -> list[list[str]]:
    rows = [["fragir", found["fragir"] or "-", ""], ["python", found["python"], sys.executable]]
    for name, version in found["packages"].items():
        rows.append([name, version or "-", "" if version else "not installed"])
    for each in found["extensions"]:
        what = f"{each['group']} {each['name']} = {each['value']}"
        rows.append([each["package"] or "a package", each["version"] or "-", what])
    for name in ("ptxas", "nvdisasm"):
        for tool in found[name]:
            rows.append([name, tool["version"], f"{tool['path']} ({tool['origin']})"])
        if not found[name]:
            rows.append([name, "-", "not found"])
    gpu, core, cache = found["gpu"], found["core"], found["cache"]
    if gpu is None:
        rows.append(["GPU", "-", found["gpu_reason"]])
    else:
        memory = f"{gpu['memory'] / 2**30:.0f} GiB"
        rows.append(["GPU", gpu["target"], f"{gpu['name']}, {memory}, CUDA {gpu['driver']}"])
    if core is not None:
        rows.append(["core", core["name"], core["level"] or core["reason"]])
    if cache is not None:
        size = f"{cache['bytes'] / 2**20:.1f} of {cache['limit'] >> 20} MiB"
        rows.append(["cache", size, cache["folder"] or "switched off"])
    return rows
