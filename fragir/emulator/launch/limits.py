"""Whether a kernel may be launched so: the machine's limits and what the kernel's head asks for."""

from __future__ import annotations

import re

from fragir.emulator.machine.state import Dim3
from fragir.emulator.program.entities import Symbol
from fragir.emulator.program.program import Program
from fragir.emulator.report import EmulationError
from fragir.ptx import machines, tree

# -- targets ---------------------------------------------------------------------------------------
# Which code runs on which machine (PTX ISA 9.2, section 11.1.2).

_NAME = re.compile(r"sm_([0-9]+)([af]?)")


def split_target(target: str) -> tuple[int, str]:
    """The number and the suffix of a target's name. Raises EmulationError where it is none."""
    found = _NAME.fullmatch(target)
    if found is None:
        raise EmulationError(f"{target!r} is no target", hint="they are called sm_80, sm_90a, ...")
    return int(found[1]), found[2]


def can_run(code: str, machine: str) -> bool:
    """Whether code for one target runs on another.

    Plain targets run on every later machine, `a` only on that very one, `f` on the later members
    of the family: machines whose numbers begin alike (sm_100f: 100 and 103, but not 120).
    """
    number, suffix = split_target(code)
    other, other_suffix = split_target(machine)
    if suffix == "a":
        return code == machine
    if suffix == "f":
        return other_suffix != "" and number // 20 == other // 20 and other >= number
    return other >= number


def target_of(module: tree.Module, target: str | None) -> str:
    """The machine it runs on: the PTX's own unless one is asked for that can run it."""
    own = module.target[0] if module.target else None
    if own is not None:
        split_target(own)
    if target is None:
        return own or "sm_80"
    split_target(target)
    if own is not None and not can_run(own, target):
        raise EmulationError(f"this is code for {own}, which does not run on {target}")
    return target


def cluster_of(program: Program, asked: Dim3) -> Dim3:
    """The launch's cluster, or the one that the kernel requires."""
    required = _directive(program, "reqnctapercluster")
    if required is None:
        return asked
    if asked not in ((1, 1, 1), required):
        raise EmulationError(
            f"{program.entry} requires clusters of {list(required)}, not {list(asked)}"
        )
    return required


def check_launch(
    program: Program, target: str, grid: Dim3, block: Dim3, cluster: Dim3, shared: int
) -> None:
    """EmulationError for a launch that the machine, or the kernel's head, does not allow.

    `shared`: bytes of dynamic shared memory.
    """
    problem = machines.launch_problem(target, grid=grid, block=block, cluster=cluster)
    if problem is not None:
        raise _launch_error(program, problem)
    _check_head(program, block, cluster)
    _check_parameters(program)
    static = _check_static(program)
    problem = machines.shared_problem(target, shared, static)
    if problem is not None:
        raise _launch_error(program, problem)
    _check_size(program, "const", machines.CONSTANT, "of .const variables; a module")
    _check_size(program, "local", machines.LOCAL, "of local memory; a thread")


def _launch_error(program: Program, problem: machines.Problem) -> EmulationError:
    message, hint = problem
    return EmulationError(f"{program.entry} cannot be launched so: {message}", hint=hint)


def _check_head(program: Program, block: Dim3, cluster: Dim3) -> None:
    """What the directives of the kernel say (PTX ISA 9.2, sections 11.4 and 11.5)."""
    required, most = _directive(program, "reqntid"), _directive(program, "maxntid")
    threads = machines.product(block)
    if required is not None and required != block:
        raise EmulationError(
            f"{program.entry} requires blocks of {machines.product(required)} threads "
            f"{list(required)}, not {threads} {list(block)}"
        )
    if most is not None and threads > machines.product(most):
        raise EmulationError(
            f"{program.entry} allows blocks of {machines.product(most)} threads, not {threads}"
        )
    rank = _directive(program, "maxclusterrank")
    if rank is not None and machines.product(cluster) > rank[0]:
        raise EmulationError(
            f"{program.entry} allows clusters of {rank[0]} blocks, not {machines.product(cluster)}"
        )


def _directive(program: Program, name: str) -> Dim3 | None:
    """The one to three numbers of a directive of the kernel; None without it."""
    for directive in program.main.node.directives:
        if isinstance(directive, tree.FunctionDirective) and directive.name == name:
            values = [program.constant(v) for v in directive.values]
            if not 1 <= len(values) <= 3:
                raise program.error(f".{name} takes one to three numbers", directive.at)
            x, y, z = (*values, 1, 1)[:3]
            return x, y, z
    return None


def _check_parameters(program: Program) -> None:
    end = 0
    for parameter in program.main.parameters:
        if isinstance(parameter, Symbol):
            end = _after(end, parameter)
    code = program.module
    name = code.target[0] if code.target else "sm_80"
    most = machines.parameter_bytes(name, code.version or (8, 1))
    if end > most:
        raise program.error(
            f"the parameters of {program.entry} have {end} bytes, more than {most}",
            program.main.node.at,
            hint=".version 8.1 and sm_70 allow 32764" if most < 32764 else None,
        )


def _check_static(program: Program) -> int:
    """Bytes of static shared memory; an error at the variable that is one too many."""
    own = program.module.target[0] if program.module.target else "sm_80"
    return _check_size(
        program,
        "shared",
        machines.machine(own).static_shared,
        f"of static shared memory; code for {own}",
        hint="declare it .extern .shared, and give the bytes at the launch",
    )


def _check_size(program: Program, space: str, most: int, what: str, hint: str | None = None) -> int:
    """Bytes of the variables of a space that are used, in order, as ptxas lays them out."""
    end = 0
    for symbol in program.symbols:
        if symbol.space == space and symbol.used and not symbol.framed:
            end = _after(end, symbol)
            if end > most and symbol.variable is not None:
                raise program.error(
                    f"{symbol.name} makes it {end} bytes {what} has at most {most}",
                    symbol.variable.at,
                    hint,
                )
    return end


def _after(end: int, symbol: Symbol) -> int:
    align = max(symbol.align, 1)
    return (end + align - 1) // align * align + symbol.size
