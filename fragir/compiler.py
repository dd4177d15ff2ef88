"""The whole road as functions: a program -> placed tiles -> lanes -> PTX -> cubin -> launch."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, ShapedType
from xdsl.passes import ModulePass

from fragir import diagnostics, pipeline
from fragir.compiled import PLACES, Argument, Interface, Kernel, Place, interface_of
from fragir.errors import FragirError, of_kind, one_of
from fragir.isa.targets import known
from fragir.passes.stages import is_lanes
from fragir.pipeline import Given, Level, Observer
from fragir.plugins import FragirContext
from fragir.ptx import machines

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
    "lower",
    "parse",
]


def context() -> FragirContext:
    """A context that knows every dialect of xDSL and ours, each imported when it is used, and
    those of installed packages (entry point `xdsl.universe`)."""
    return FragirContext()


def parse(text: str, filename: str = "<input>") -> ModuleOp:
    """A verified module from MLIR text; FragirError with file, line and column."""
    of_kind(text, str, "parse takes the text of a program")
    of_kind(filename, str, "a file's name is a str")
    return diagnostics.parse_module(context(), text, filename)


def lower(
    module: ModuleOp,
    to: Level = "lane",
    target: str = "sm_80",
    *,
    passes: str | Sequence[Given] | None = None,
    source: str | None = None,
    observe: Observer | None = None,
    stages: dict[str, float] | None = None,
) -> ModuleOp:
    """Lowers a module in place; `observe(pass name, module)` sees it, verified, after each pass.

    `passes` are those to apply, as of `compile`, in place of what the module needs on its way to a
    level. `source` is the text the module came from, for messages; `stages` gets each pass's time
    in ms.
    """
    of_kind(module, ModuleOp, "lower takes a ModuleOp", "fragir.parse(text) makes one")
    one_of(to, ("placed", "lane"), "the level")
    known(target)
    check_sizes(module, source)
    chosen = steps(module, to, target, passes)
    pipeline.run(chosen, module, source=source, observe=observe, times=stages)
    return module


def steps(
    module: ModuleOp, to: Level, target: str, passes: str | Sequence[Given] | None
) -> Iterable[ModulePass]:
    """The passes that are listed, or else those that a module needs, for `pipeline.run`."""
    if passes is None:
        return pipeline.needed(module, to, target)
    return pipeline.passes_of(passes, target)


def check_sizes(module: ModuleOp, source: str | None) -> None:
    """FragirError for `frag.sizes` and `frag.divisible` that are not what they should be."""
    from fragir.dialects import frag

    for function in module.ops:
        if not isinstance(function, func.FuncOp) or is_lanes(function):
            continue
        broken = frag.promises_error(function.attributes.get(frag.DIVISIBLE))
        if broken is not None:
            raise diagnostics.located(function, broken, source)
        inputs, results = function.function_type.inputs, function.function_type.outputs
        for types, all_given in ((inputs, function.arg_attrs), (results, function.res_attrs)):
            for i, (type_, given) in enumerate(zip(types, all_given or (), strict=False)):
                shape = type_.get_shape() if isinstance(type_, ShapedType) else ()
                message = frag.sizes_error(given.data.get("frag.sizes"), shape)
                if message is not None:
                    which = _name_of(function, i) if types is inputs else f"result {i}"
                    raise diagnostics.located(function, f"{which}: {message}", source)


def _name_of(function: func.FuncOp, index: int) -> str:
    if function.is_declaration:
        return f"argument {index}"
    return f"%{function.body.block.args[index].name_hint or index}"


def emit(
    module: ModuleOp, target: str = "sm_80", *, comments: bool = False, source: str | None = None
) -> str:
    """PTX text of a module at lane level."""
    of_kind(module, ModuleOp, "emit takes a ModuleOp", "fragir.lower(...) makes one")
    from fragir.passes.writer.module import write_module

    try:
        return write_module(module, target, comments=comments)
    except Exception as error:
        raise diagnostics.from_exception(error, source) from error


def compile(
    program: ModuleOp | str,
    *,
    target: str = "sm_80",
    entry: str | None = None,
    passes: str | Sequence[Given] | None = None,
    filename: str = "<input>",
    comments: bool = False,
    observe: Observer | None = None,
) -> Kernel:
    """Compiles a program, MLIR text or a module (which stays as it is), to a kernel.

    `entry` names the function where there are several. `passes` are those that lead to the lane
    level, in place of what the program needs: names, pass-pipeline text (`toy-fuse{depth=2}`),
    `ModulePass` objects or classes; one with a field `target` gets this one, unless its text says
    another. FragirError for everything that is wrong with the program, with its place.
    """
    from fragir.passes.writer.module import shared_bytes

    of_kind(program, str | ModuleOp, "compile takes the text of a program or a ModuleOp")
    if entry is not None:
        of_kind(entry, str, "entry is the name of a function")
    known(target)
    stages: dict[str, float] = {}
    start = time.perf_counter()
    text = program if isinstance(program, str) else None
    module = parse(program, filename) if isinstance(program, str) else program.clone()
    stages["parse"] = (time.perf_counter() - start) * 1e3
    name = choose_entry(module, entry)
    keep_only(module, name)
    check_sizes(module, text)
    found: list[Interface] = []

    def look(module: ModuleOp) -> None:
        """Takes down what the kernel takes, as long as the program still says so."""
        function = function_of(module, name)
        if not found or not is_lanes(function):
            found[:] = [interface_of(function)]

    chosen = steps(module, "lane", target, passes)
    pipeline.run(chosen, module, source=text, before=look, observe=observe, times=stages)
    look(module)
    start = time.perf_counter()
    ptx = emit(module, target, comments=comments, source=text)
    stages["emit"] = (time.perf_counter() - start) * 1e3
    function = function_of(module, name)
    threads = function.attributes.get("ptx.ntid")
    return Kernel(
        name=name,
        target=target,
        ptx=ptx,
        signature=found[0].signature,
        grid_attribute=found[0].grid,
        block=(threads.value.data if isinstance(threads, IntegerAttr) else 32, 1, 1),
        shared=dynamic_shared(shared_bytes(function)),
        stages=stages,
        promises=found[0].promises,
    )


def dynamic_shared(total: int) -> int:
    """How much of a kernel's shared memory the launch must give: all beyond 48 KiB, else none."""
    return total if total > machines.STATIC_SHARED else 0


def choose_entry(module: ModuleOp, entry: str | None) -> str:
    """The function to compile; FragirError that lists them where the choice is open."""
    names = [
        op.sym_name.data
        for op in module.ops
        if isinstance(op, func.FuncOp) and not op.is_declaration
    ]
    if not names:
        raise FragirError("the program has no function", hint="write func.func @name(...) {...}")
    if entry is None and len(names) == 1:
        return names[0]
    if entry in names:
        return str(entry)
    what = "no entry is named" if entry is None else f"there is no function {entry}"
    raise FragirError(f"{what}; the program has {', '.join(names)}", hint="--entry NAME")


def keep_only(module: ModuleOp, name: str) -> None:
    """Removes every other function."""
    for op in list(module.ops):
        if isinstance(op, func.FuncOp) and op.sym_name.data != name:
            op.detach()


def function_of(module: ModuleOp, name: str) -> func.FuncOp:
    """The function of a name; FragirError where a module has none."""
    for op in module.ops:
        if isinstance(op, func.FuncOp) and op.sym_name.data == name:
            return op
    raise FragirError(f"there is no function {name}")
