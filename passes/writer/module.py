"""A module as PTX text: header, shared memory, one entry a function."""

from __future__ import annotations

from typing import NamedTuple

from xdsl.dialects import func
from xdsl.dialects.builtin import FileLineColLoc, IntegerAttr, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from fragir.dialects import ptx
from fragir.dialects.elements import element_name
from fragir.dialects.frag.kernels import kernels_of
from fragir.dialects.shorthands import integers, is_array, operations_in
from fragir.errors import FragirError, pass_on
from fragir.isa.targets import newest, require_target, version_key
from fragir.isa.versions import module_version
from fragir.mlir.diagnostics import fail
from fragir.passes.remarks import align_buffer
from fragir.passes.tile_passes import check_level
from fragir.passes.writer.kernel import KernelWriter
from fragir.passes.writer.text import TENSOR_MAP, LineOrigin, Origins, file_directives
from fragir.ptx.machines import LARGE_PARAMETERS, STATIC_SHARED, parameter_bytes
from fragir.ptx.spelling import identifier

_TENSOR_MAP_BYTES, _TENSOR_MAP_ALIGNMENT = 128, 64  # (PTX ISA 9.2, section 5.5.8)
_PARAMETER = {"f32": ".f32", "f64": ".f64", "f16": ".b16", "bf16": ".b16", "s32": ".s32"}


#: A module that has any of these has its own `.target`.
FOREIGN = ("ptx.function", "ptx.text")


class Written(NamedTuple):
    """What became of a kernel."""

    text: str
    """Its `.entry`, and its memory outside of it."""
    opcodes: tuple[str, ...]
    """Those that it uses, in the order of their first use."""
    externs: tuple[str, ...]
    """Declarations that its module has."""
    origins: tuple[tuple[int, FileLineColLoc], ...]
    """(line of `text`, place in the program): what each line and those after it come from."""


def write_module(
    module: ModuleOp, target: str, *, comments: bool = False, lines: bool = False
) -> str:
    """The PTX of every function of a module at lane level; `lines`: with `.loc` and `.file`.

    FragirError for operations that have no PTX and targets that do not have an instruction.
    """
    return write_with_origins(module, target, comments=comments, lines=lines)[0]


def write_with_origins(
    module: ModuleOp,
    target: str,
    *,
    comments: bool = False,
    lines: bool = False,
    writer: type[KernelWriter] = KernelWriter,
) -> tuple[str, Origins]:
    """The PTX as of `write_module`, and from where in the program its lines come.

    `writer` is told of every operation: who wants to know more of a kernel's text brings another.
    """
    files = dict[str, int]() if lines else None
    if any(op.name in FOREIGN for op in module.ops):
        from fragir.passes.writer.foreign import write_foreign

        return write_foreign(module, comments=comments, files=files), ()
    require_target(target)
    functions = list(kernels_of(module))
    if not functions:
        raise FragirError("the module has no function to compile")
    kernels = [_at_lane_level(function, target, comments, files, writer) for function in functions]
    parameters = max(check_parameters(function, target) for function in functions)
    opcodes = dict.fromkeys(opcode for kernel in kernels for opcode in kernel.opcodes)
    version = module_version(opcodes, target)
    if parameters > parameter_bytes(target, version_key(version)):
        version = newest((version, LARGE_PARAMETERS))
    head = f".version {version}\n.target {target}\n.address_size 64\n"
    externs = dict.fromkeys(f"{line}\n" for kernel in kernels for line in kernel.externs)
    head += "\n" + file_directives(files) if files else ""
    parts, origins = [head, *("\n" + text for text in externs)], list[LineOrigin]()
    for kernel in kernels:
        before = sum(part.count("\n") for part in parts) + 2
        origins += [LineOrigin.of(before + line, place) for line, place in kernel.origins]
        parts.append("\n" + kernel.text)
    return "".join(parts), tuple(origins)


def _at_lane_level(
    function: func.FuncOp,
    target: str,
    comments: bool,
    files: dict[str, int] | None,
    writer: type[KernelWriter],
) -> Written:
    try:
        return write_kernel(function, target, comments, files, writer)
    except Exception as error:
        pass_on(error)
        check_level(function, "ptx")  # says more where the function is not at lane level yet
        raise


def shared_bytes(function: func.FuncOp) -> int:
    """Shared memory of a kernel in bytes."""
    allocated = (op for op in operations_in(function) if isinstance(op, ptx.SharedOp))
    return sum(align_buffer(op.bytes.value.data) for op in allocated)


def write_kernel(
    function: func.FuncOp,
    target: str,
    comments: bool,
    files: dict[str, int] | None = None,
    kind: type[KernelWriter] = KernelWriter,
) -> Written:
    """One `.entry`; `files` numbers those of the places that it says, and gets those it lacks."""
    name = identifier(function.sym_name.data)
    if len(function.body.blocks) != 1:
        raise FragirError(f"{function.sym_name.data} has branches between blocks; use scf")
    writer = kind(target, name, comments, files)
    memory = writer.memory
    parameters = _parameters(function)
    for argument, (parameter, type_) in zip(function.body.block.args, parameters, strict=True):
        writer.parameter(argument, parameter, type_)
    writer.block(function.body.block)
    threads = function.attributes.get("ptx.ntid")
    total = writer.shared
    dynamic = total > STATIC_SHARED
    lines = writer.constants()
    if dynamic:
        lines.append(f"// {total} bytes of dynamic shared memory: the launch gives them")
        lines.append(f".extern .shared .align 1024 .b8 {memory}[];")
    declared = ",\n".join(
        f"    .param {_declaration(argument, type_, parameter)}"
        for argument, (parameter, type_) in zip(function.body.block.args, parameters, strict=True)
    )
    lines.append(
        f".visible .entry {name}(\n{declared}\n)" if parameters else f".visible .entry {name}()"
    )
    if isinstance(threads, IntegerAttr):
        lines.append(f".reqntid {threads.value.data}, 1, 1")
    cluster = function.attributes.get("ptx.cluster")
    if cluster is not None:
        lines.append(_cluster(writer, cluster))
    resident = function.attributes.get("ptx.minnctapersm")
    if isinstance(resident, IntegerAttr):
        lines.append(f".minnctapersm {resident.value.data}")
    lines.append("{")
    lines += [f"    {line}" for line in writer.registers.declarations()]
    if total and not dynamic:
        lines.append(f"    .shared .align 1024 .b8 {memory}[{total}];")
    if writer.local:
        lines.append(f"    .local .align 8 .b8 {writer.local_memory}[{writer.local}];")
    lines.append("")
    above = sum(1 + line.count("\n") for line in lines)
    lines += writer.lines
    lines.append("}")
    return Written(
        "\n".join(lines) + "\n",
        tuple(writer.opcodes),
        tuple(writer.externs),
        tuple([(above + line, place) for line, place in writer.places]),
    )


def check_parameters(function: func.FuncOp, target: str) -> int:
    """Bytes of a kernel's parameters; ends the pass where no kernel can have so many."""
    end = 0
    for _, type_ in _parameters(function):
        size = _TENSOR_MAP_BYTES if type_ == TENSOR_MAP else int(type_[2:]) // 8
        align = min(size, _TENSOR_MAP_ALIGNMENT)
        end = -(-end // align) * align + size
    most = parameter_bytes(target, version_key(LARGE_PARAMETERS))
    if end > most:
        fail(function, f"its parameters have {end} bytes, a kernel's at most {most}")
    return end


def _parameters(function: func.FuncOp) -> list[tuple[str, str]]:
    """(name, PTX type) of every parameter."""
    result: list[tuple[str, str]] = []
    taken: set[str] = set()
    for i, argument in enumerate(function.body.block.args):
        base = identifier(argument.name_hint or f"p{i}")
        name, number = base, 0
        while name in taken:
            number += 1
            name = f"{base}_{number}"
        taken.add(name)
        result.append((name, _parameter_type(argument)))
    return result


def _parameter_type(argument: SSAValue) -> str:
    if isinstance(argument.type, ptx.PointerType):
        return ".u64"
    if argument.type.name == "ptx.tensor_map":
        return TENSOR_MAP
    try:
        return _PARAMETER.get(element_name(argument.type), f".b{max(8, ptx.bits(argument.type))}")
    except KeyError:
        raise FragirError(f"a kernel cannot take an argument of type {argument.type}") from None


def _declaration(argument: SSAValue, type_: str, name: str) -> str:
    if isinstance(argument.type, ptx.PointerType):
        return f"{type_} .ptr .global .align 16 {name}"
    if argument.type.name == "ptx.tensor_map":
        return f".align {_TENSOR_MAP_ALIGNMENT} {type_} {name}[{_TENSOR_MAP_BYTES}]"
    return f"{type_} {name}"


def _cluster(writer: KernelWriter, cluster: Attribute) -> str:
    """The directive that says the blocks of a cluster (PTX ISA 9.2, section 11.3.1)."""
    writer.opcodes["barrier.cluster.arrive"] = None  # has the same targets and version
    assert is_array(cluster)
    return f".reqnctapercluster {', '.join(map(str, integers(cluster)))}"


def operations(function: func.FuncOp) -> list[Operation]:
    """Every operation of a function."""
    return list(function.walk())
