"""Launching a kernel without fragir: what must be known of it, and host programs that do it.

| module | what it has |
|---|---|
| `plan` | `LaunchPlan`: entry, grid formula, block, parameters in order, shared memory, clusters |
| `c_program` | a C program: driver API, the cubin in it |
| `python_program` | a Python module: `ctypes`, the cubin in it |
| `document` | the plan as JSON |
| `mlir_module` | `gpu.binary` and `gpu.launch_func`, of programs too |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fragir.errors import FragirError, check_one_of

if TYPE_CHECKING:
    from fragir.compilation.kernel import Compiled

LANGUAGES = ("c", "python", "json", "mlir")


def launcher(kernel: Compiled, language: str) -> str:
    """A program, a JSON document, or a module of MLIR, by which others launch a kernel: `c`,
    `python`, `json` or `mlir`, which programs of several kernels have too.

    Programs in C and Python have the cubin in them, which takes a ptxas. FragirError where there is
    none.
    """
    check_one_of(language, LANGUAGES, "the language of a launcher")
    if language == "mlir":
        from fragir.launchers.mlir_module import module

        return module(kernel)
    from fragir.compilation.kernel import Kernel

    if not isinstance(kernel, Kernel):
        raise FragirError(
            f"{kernel.name} launches several kernels ({', '.join(k.name for k in kernel.parts)})",
            hint="name one with --entry, in a program of frag.host, or take --launcher mlir; in "
            "Python, fragir.compile(..., alone=True) makes one kernel of a product",
        )
    from fragir.launchers.plan import plan_of

    plan = plan_of(kernel)
    if language == "json":
        from fragir.launchers.plan import document

        return document(plan, kernel)
    if language == "c":
        from fragir.launchers.c_program import program

        return program(plan, kernel.cubin)
    from fragir.launchers.python_program import program as python

    return python(plan, kernel.cubin)
