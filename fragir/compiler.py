"""The whole road as functions: a program -> placed tiles -> lanes -> PTX -> cubin -> launch."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, cast

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    NoneAttr,
    ShapedType,
)
from xdsl.ir import Attribute
from xdsl.passes import ModulePass

from fragir.compilation import pipeline
from fragir.compilation.kernel import PLACES, Kernel, Place
from fragir.compilation.pipeline import Given, Level, Observer
from fragir.compilation.program import (
    check_sizes,
    choose_entry,
    context,
    emit,
    emit_with_origins,
    function_of,
    keep_only,
    lift,
    lower,
    parse,
    steps,
)
from fragir.compilation.signature import Argument, Interface, has_open_sizes, interface_of
from fragir.dialects.elements import element_name
from fragir.dialects.frag.kernels import is_host, kernels_of
from fragir.dialects.shorthands import is_memref
from fragir.errors import check_kind
from fragir.isa.targets import require_target
from fragir.passes.stages import is_lanes
from fragir.ptx import machines

if TYPE_CHECKING:
    from fragir.compilation.kernel import Compiled
    from fragir.passes.writer.text import Origins

__all__ = [
    "PLACES",
    "Argument",
    "Kernel",
    "Level",
    "Observer",
    "Place",
    "compile",
    "context",
    "emit",
    "lift",
    "lower",
    "parse",
]


def compile(
    program: ModuleOp | str,
    *,
    target: str = "sm_80",
    entry: str | None = None,
    passes: str | Sequence[Given] | None = None,
    filename: str = "<input>",
    comments: bool = False,
    lines: bool = False,
    alone: bool = False,
    observe: Observer | None = None,
) -> Kernel:
    """Compiles a program, MLIR text or a module (which stays as it is), to a kernel.

    `lines`: the PTX has `.file` and `.loc`, by which debuggers and profilers find the program's
    lines. `entry` names the function where there are several. One that needs several kernels, or
    launches them (`frag.host`), is a `fragir.host.Program`, which is called as a kernel is: both
    are `fragir.compilation.kernel.Compiled`, but the type said is that of nearly all.
    `passes` are those that lead to the lane level, in place of what the program needs: names,
    pass-pipeline text (`toy-fuse{depth=2}`), `ModulePass` objects or classes; one with a field
    `target` gets this one, unless its text says another. `alone`: the PTX is all that a call runs,
    as others launch it. Else, where no passes are listed, a call whose sizes are multiples of 16
    bytes runs an entry that relies on it (`Kernel.entry_for`), and the sums of a product of few
    tiles may have parts in memory that a call allocates, which makes a program of it. FragirError
    for everything that is wrong with the program, with its place.
    """
    check_kind(program, str | ModuleOp, "compile takes the text of a program or a ModuleOp")
    if entry is not None:
        check_kind(entry, str, "entry is the name of a function")
    require_target(target)
    stages: dict[str, float] = {}
    start = time.perf_counter()
    text = program if isinstance(program, str) else None
    module = parse(program, filename) if isinstance(program, str) else program.clone()
    kept = None
    if isinstance(program, ModuleOp) and not alone and _is_open(program):
        kept = program.clone()  # whose owner may change it
    stages["parse"] = (time.perf_counter() - start) * 1e3
    name = choose_entry(module, entry)
    keep_only(module, name, text)
    check_sizes(module, text)
    hosted = is_host(function_of(module, name))
    if hosted:
        from fragir.host.running import check_host

        check_host(function_of(module, name), text)
    found: dict[str, Interface] = {}

    def look(module: ModuleOp) -> None:
        """Takes down what the kernels take, as long as the program still says so."""
        for function in module.ops:
            if isinstance(function, func.FuncOp) and not function.is_declaration:
                known = function.sym_name.data
                if known not in found or not is_lanes(function):
                    found[known] = _declared_interface(interface_of(function), found.get(known))

    chosen = steps(module, "lane", target, passes)
    if not alone and passes is None:
        chosen = map(_allocating, chosen)
    pipeline.run(chosen, module, source=text, before=look, observe=observe, times=stages)
    look(module)
    start = time.perf_counter()
    ptx, origins = emit_with_origins(module, target, comments=comments, lines=lines, source=text)
    stages["emit"] = (time.perf_counter() - start) * 1e3
    kernels = {
        function.sym_name.data: _kernel(module, function, found, target, ptx, origins)
        for function in kernels_of(module)
    }
    made: Compiled
    if name in kernels:
        made = kernels[name]
        made.stages = stages
    else:
        from fragir.host.program import program_of  # few programs need it

        host = function_of(module, name)
        made = program_of(host, found[name], kernels, target, ptx, origins, stages, text)
    source = text if kept is None else kept
    if not alone and passes is None and source is not None:

        def again(
            which: Compiled, promises: Mapping[str, int], source: ModuleOp | str = source
        ) -> Kernel:
            from fragir.compilation.second_entry import promised

            once_more = parse(source, filename) if isinstance(source, str) else source.clone()
            promised(once_more, which.name, which.signature, promises)
            return compile(
                once_more,
                target=target,
                entry=which.name,
                filename=filename,
                comments=comments,
                lines=lines,
                alone=True,
            )

        # kernels that a program of the host launches stand in the text, others are made of it
        for each in kernels.values() if hosted else (made,):
            if has_open_sizes(each.signature):
                each.again = partial(again, each)
    return cast("Kernel", made)


def _is_open(module: ModuleOp) -> bool:
    """Whether a size or stride of an argument is known to a call only."""
    inputs = [
        type_
        for function in module.ops
        if isinstance(function, func.FuncOp)
        for type_ in function.function_type.inputs
        if isinstance(type_, ShapedType)
    ]
    return any(
        DYNAMIC_INDEX in type_.get_shape()
        or not isinstance(getattr(type_, "layout", NoneAttr()), NoneAttr)
        for type_ in inputs
    )


def _allocating(one: ModulePass) -> ModulePass:
    """A pass, told that a call allocates what it asks for."""
    return replace(one, allocates=True) if hasattr(one, "allocates") else one


def _declared_interface(now: Interface, before: Interface | None) -> Interface:
    """What a function takes. Of memory of i1, and of such that a pass reads as bytes with another
    sign than the program says, it is noted.
    """
    if before is None or len(before.signature) != len(now.signature):
        return now
    pairs = list(zip(now.signature, before.signature, strict=True))
    if all(a.type == b.type and not b.either_sign for a, b in pairs):
        return now
    signature = tuple(
        replace(a, either_sign=True) if b.either_sign or _loses_sign(b.type, a.type) else a
        for a, b in pairs
    )
    return replace(now, signature=signature)


def _loses_sign(before: Attribute, now: Attribute) -> bool:
    """Whether bytes are read without the sign that they have; of i1 there is none."""
    was = getattr(before, "element_type", None)
    if not is_memref(now) or was not in (IntegerType(1), IntegerType(8)):
        return False
    return element_name(now.element_type) in (("u8",) if was == IntegerType(8) else ("u8", "s8"))


def _kernel(
    module: ModuleOp,
    function: func.FuncOp,
    found: dict[str, Interface],
    target: str,
    ptx: str,
    origins: Origins,
) -> Kernel:
    """A function of lanes as the kernel that it is in a module's PTX."""
    from fragir.passes.writer.module import shared_bytes

    name = function.sym_name.data
    threads = function.attributes.get("ptx.ntid")
    kernel = Kernel(
        name=name,
        target=target,
        ptx=ptx,
        signature=found[name].signature,
        grid_attribute=found[name].grid,
        block=(threads.value.data if isinstance(threads, IntegerAttr) else 32, 1, 1),
        shared=dynamic_shared_bytes(shared_bytes(function)),
        promises=found[name].promises,
        origins=origins,
        lanes=function,
    )
    if "ptx.counts" in function.attributes:
        from fragir.dialects.ptx.tensor_maps import counts_of  # few kernels have any

        kernel.counts = counts_of(function)
    if "ptx.tensor_maps" in function.attributes or "ptx.cluster" in function.attributes:
        _note_launch(kernel, function)
    if "ptx.remarks" in function.attributes:
        from fragir.compilation.notes import remarks_of

        kernel.remarks = tuple(remarks_of(module))
    return kernel


def _note_launch(kernel: Kernel, function: func.FuncOp) -> None:
    """Takes down tensor maps and clusters, which few kernels have."""
    from fragir.dialects.ptx.tensor_maps import launched_cluster, records_of

    if not any(argument.is_tensor_map for argument in kernel.signature):
        kernel.tensor_maps = records_of(function)
    kernel.cluster, kernel.whole_clusters = launched_cluster(function)


def dynamic_shared_bytes(total: int) -> int:
    """How much of a kernel's shared memory the launch must give: all beyond 48 KiB, else none."""
    return total if total > machines.STATIC_SHARED else 0
