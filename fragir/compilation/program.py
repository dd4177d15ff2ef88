"""A program on its way: parsed, checked, lowered through its passes, written as PTX."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, ShapedType, StringAttr, SymbolRefAttr
from xdsl.ir import Dialect, Operation
from xdsl.passes import ModulePass

from fragir.compilation import pipeline
from fragir.compilation.pipeline import Given, Level, Observer
from fragir.dialects.frag.kernels import is_host
from fragir.errors import FragirError, check_kind, check_one_of, pass_on
from fragir.isa.targets import require_target
from fragir.mlir import diagnostics
from fragir.passes.stages import is_lanes
from fragir.plugins import FragirContext

if TYPE_CHECKING:
    from fragir.passes.writer.text import Origins


def context() -> FragirContext:
    """A context that knows every dialect of xDSL and ours, each imported when it is used, and
    those of installed packages (entry point `xdsl.universe`)."""
    return FragirContext()


def parse(text: str, filename: str = "<input>", *, dialects: Sequence[Dialect] = ()) -> ModuleOp:
    """A verified module from MLIR text; FragirError with file, line and column.

    `dialects` are those that no package brings: of a script, or a notebook.
    """
    check_kind(text, str, "parse takes the text of a program")
    check_kind(filename, str, "a file's name is a str")
    ctx = context()
    for dialect in dialects:
        check_kind(dialect, Dialect, "dialects are xdsl.ir.Dialect objects")
        if dialect.name in ctx.registered_dialect_names:
            raise FragirError(
                f"there is a dialect {dialect.name} already", hint="give yours another name"
            )
        ctx.register_dialect(dialect.name, lambda found=dialect: found)
    return diagnostics.parse_module(ctx, text, filename)


def lift(text: str, filename: str = "<ptx>") -> ModuleOp:
    """A verified module of the `ptx` dialect from PTX text, which `emit` writes back.

    FragirError with its place for what is no PTX, or has no counterpart.
    """
    check_kind(text, str, "lift takes PTX text")
    from fragir.passes.lifting.module import lift as lifted

    module = lifted(text, filename)
    diagnostics.verify(module, text)
    return module


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
    check_kind(module, ModuleOp, "lower takes a ModuleOp", "fragir.parse(text) makes one")
    check_one_of(to, ("placed", "lane"), "the level")
    require_target(target)
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
            raise diagnostics.error_at_operation(function, broken, source)
        inputs, results = function.function_type.inputs, function.function_type.outputs
        for types, all_given in ((inputs, function.arg_attrs), (results, function.res_attrs)):
            for i, (type_, given) in enumerate(zip(types, all_given or (), strict=False)):
                shape = type_.get_shape() if isinstance(type_, ShapedType) else ()
                message = frag.sizes_error(given.data.get("frag.sizes"), shape)
                if message is not None:
                    which = _name_of(function, i) if types is inputs else f"result {i}"
                    raise diagnostics.error_at_operation(function, f"{which}: {message}", source)


def _name_of(function: func.FuncOp, index: int) -> str:
    if function.is_declaration:
        return f"argument {index}"
    return f"%{function.body.block.args[index].name_hint or index}"


def emit(
    module: ModuleOp,
    target: str = "sm_80",
    *,
    comments: bool = False,
    lines: bool = False,
    source: str | None = None,
) -> str:
    """PTX text of a module at lane level.

    `lines`: with `.file` and `.loc`, by which debuggers and profilers find the program's lines.
    """
    return emit_with_origins(module, target, comments=comments, lines=lines, source=source)[0]


def emit_with_origins(
    module: ModuleOp,
    target: str = "sm_80",
    *,
    comments: bool = False,
    lines: bool = False,
    source: str | None = None,
) -> tuple[str, Origins]:
    """PTX text of a module at lane level, and from which operations its lines come."""
    check_kind(module, ModuleOp, "emit takes a ModuleOp", "fragir.lower(...) makes one")
    from fragir.passes.writer.module import write_with_origins

    try:
        return write_with_origins(module, target, comments=comments, lines=lines)
    except Exception as error:
        pass_on(error)
        raise diagnostics.from_exception(error, source) from diagnostics.cause_of(error)


def choose_entry(module: ModuleOp, entry: str | None) -> str:
    """The function to compile; FragirError that lists them where the choice is open."""
    names = [
        op.sym_name.data
        for op in module.ops
        if isinstance(op, func.FuncOp) and not op.is_declaration
    ]
    if not names and any(op.name == "ptx.function" for op in module.ops):
        raise FragirError(
            "the program is lifted PTX, whose functions are compiled together",
            hint="`fragir compile --to ptx` writes it, `fragir emulate` and fragir.emulator run it",
        )
    if not names:
        raise FragirError("the program has no function", hint="write func.func @name(...) {...}")
    if len(names) > 1 and entry is None:
        called = _called_names(module)
        names = [name for name in names if name not in called] or names
    hosts = [op.sym_name.data for op in module.ops if isinstance(op, func.FuncOp) and is_host(op)]
    if entry is None and 1 in (len(names), len(hosts)):
        return names[0] if len(names) == 1 else hosts[0]
    if entry in names:
        return str(entry)
    what = "no entry is named" if entry is None else f"there is no function {entry}"
    raise FragirError(f"{what}; the program has {', '.join(names)}", hint="--entry NAME")


def _called_names(module: ModuleOp) -> set[str]:
    """The names of functions that others call."""
    return {op.callee.string_value() for op in module.walk() if isinstance(op, func.CallOp)}


def keep_only(module: ModuleOp, name: str, source: str | None = None) -> None:
    """Removes every other function but those that it launches or calls, which become private."""
    kept = {name}
    if len(module.ops) > 1 and _called_names(module):
        kept |= _make_private(function_of(module, name), source)
    function = function_of(module, name)
    if is_host(function):
        launches = (op for op in function.walk() if op.name == "frag.launch")
        kept |= {symbol.string_value() for op in launches for symbol in _symbols(op)}
    for op in list(module.ops):
        if isinstance(op, func.FuncOp) and op.sym_name.data not in kept:
            op.detach()


def _make_private(function: func.FuncOp, source: str | None) -> set[str]:
    """Makes the functions that one calls private; their names."""
    from fragir.dialects.calls import CallError, called_by  # few programs need it

    try:
        called = called_by(function)
    except CallError as error:
        raise diagnostics.error_at_operation(error.op, str(error), source) from error
    for callee in called:
        callee.sym_visibility = StringAttr("private")
    return {callee.sym_name.data for callee in called}


def _symbols(op: Operation) -> list[SymbolRefAttr]:
    return [value for value in op.properties.values() if isinstance(value, SymbolRefAttr)]


def function_of(module: ModuleOp, name: str) -> func.FuncOp:
    """The function of a name; FragirError where a module has none."""
    for op in module.ops:
        if isinstance(op, func.FuncOp) and op.sym_name.data == name:
            return op
    raise FragirError(f"there is no function {name}")
