"""The whole road as functions: a program -> placed tiles -> lanes -> PTX -> cubin -> launch."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal

from xdsl.context import Context
from xdsl.dialects import func, get_all_dialects
from xdsl.dialects.builtin import (
    IntegerAttr,
    MemRefType,
    ModuleOp,
    ShapedType,
)
from xdsl.ir import Attribute
from xdsl.passes import ModulePass

from fragir import diagnostics
from fragir.arguments import View, follows, row_major, scalar, whole
from fragir.arguments import view as view_of
from fragir.borrowed import Borrowed
from fragir.errors import FragirError, extent, kind_of, one_of, whole_number
from fragir.isa.targets import known
from fragir.ptx import machines

if TYPE_CHECKING:
    from fragir.dialects.frag import GridAttr
    from fragir.toolchain.ptxas import Assembled

Level = Literal["placed", "lane"]
Place = Literal["emulator", "gpu", "auto"]
PLACES: tuple[Place, ...] = ("emulator", "gpu", "auto")
Observer = Callable[[str, ModuleOp], None]


def context() -> Context:
    """A context that knows every dialect of xDSL and ours, each imported when it is used."""
    from fragir.universe import FRAGIR_UNIVERSE

    ctx = Context()
    for name, dialect in {**get_all_dialects(), **FRAGIR_UNIVERSE.all_dialects}.items():
        ctx.register_dialect(name, dialect)
    return ctx


def parse(text: str, filename: str = "<input>") -> ModuleOp:
    """A verified module from MLIR text; FragirError with file, line and column."""
    _check_kind(text, str, "parse takes the text of a program")
    _check_kind(filename, str, "a file's name is a str")
    return diagnostics.parse_module(context(), text, filename)


def passes_for(module: ModuleOp, to: Level, target: str) -> list[ModulePass]:
    """The passes that a module still needs on its way to a level, by what it contains."""
    from fragir.dialects import frag

    dialects = {op.name.partition(".")[0] for op in module.walk()}
    result: list[ModulePass] = []
    functions = [op for op in module.ops if isinstance(op, func.FuncOp)]
    if any("ptx.ntid" in function.attributes for function in functions):
        return result
    if "tensor" in dialects or _has_tensors(functions):
        from fragir.passes.frag_bufferize import FragBufferizePass

        result.append(FragBufferizePass())
    if "linalg" in dialects:
        from fragir.passes.convert_linalg_to_frag import ConvertLinalgToFragPass

        result.append(ConvertLinalgToFragPass())
    if "linalg" in dialects or any(isinstance(op, frag.MatmulOp) for op in module.walk()):
        from fragir.passes.frag_tile import FragTilePass

        result.append(FragTilePass(target))
    from fragir.passes.frag_place import FragPlacePass

    result.append(FragPlacePass(target))
    if to == "lane":
        from fragir.passes.convert_frag_to_ptx import ConvertFragToPtxPass

        result.append(ConvertFragToPtxPass(target))
    return result


def _has_tensors(functions: Sequence[func.FuncOp]) -> bool:
    from xdsl.dialects.builtin import TensorType

    return any(
        isinstance(type_, TensorType)
        for function in functions
        for type_ in (*function.function_type.inputs, *function.function_type.outputs)
    )


def lower(
    module: ModuleOp,
    to: Level = "lane",
    target: str = "sm_80",
    *,
    source: str | None = None,
    observe: Observer | None = None,
    stages: dict[str, float] | None = None,
) -> ModuleOp:
    """Lowers a module in place; `observe(pass name, module)` sees it, verified, after each pass.

    `source` is the text the module came from, for messages; `stages` gets each pass's time in ms.
    """
    _check_kind(module, ModuleOp, "lower takes a ModuleOp", "fragir.parse(text) makes one")
    one_of(to, ("placed", "lane"), "the level")
    known(target)
    ctx = context()
    _check_sizes(module, source)
    for one in passes_for(module, to, target):
        start = time.perf_counter()
        try:
            one.apply(ctx, module)
        except Exception as error:
            raise diagnostics.from_exception(error, source) from error
        if stages is not None:
            stages[one.name] = (time.perf_counter() - start) * 1e3
        if observe is not None:
            diagnostics.verify(module, source)
            observe(one.name, module)
    return module


def _check_sizes(module: ModuleOp, source: str | None) -> None:
    """FragirError for `frag.sizes` and `frag.divisible` that are not what they should be."""
    from fragir.dialects import frag

    for function in module.ops:
        if not isinstance(function, func.FuncOp) or "ptx.ntid" in function.attributes:
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
    _check_kind(module, ModuleOp, "emit takes a ModuleOp", "fragir.lower(...) makes one")
    from fragir.passes.writer.module import write_module

    try:
        return write_module(module, target, comments=comments)
    except Exception as error:
        raise diagnostics.from_exception(error, source) from error


def _check_kind(value: object, kind: type | UnionType, what: str, hint: str | None = None) -> None:
    if not isinstance(value, kind):
        raise FragirError(f"{what}, not {kind_of(value)}", hint=hint)


@dataclass(frozen=True)
class Argument:
    """One argument of a kernel as the program declares it.

    `dims` has a number for a static dimension of a memref and a name for a dynamic one; `strides`
    (elements) likewise, None for row-major order. A scalar has neither.
    """

    name: str
    type: Attribute
    dims: tuple[int | str, ...] = ()
    strides: tuple[int | str, ...] | None = None

    @property
    def is_memory(self) -> bool:
        return isinstance(self.type, MemRefType)

    @property
    def is_pointer(self) -> bool:
        """Whether a program written at lane level takes an address."""
        return self.type.name == "ptx.ptr"


@dataclass
class Kernel:
    """A compiled entry: PTX, what it takes, and how to run it.

    `promises` says which sizes are multiples of what (`frag.divisible`); a launch is held to it.
    """

    name: str
    target: str
    ptx: str
    signature: tuple[Argument, ...]
    grid_attribute: GridAttr | None
    block: tuple[int, int, int]
    shared: int
    stages: dict[str, float] = field(default_factory=dict[str, float])
    promises: dict[str, int] = field(default_factory=dict[str, int])

    @cached_property
    def assembled(self) -> Assembled:
        """What ptxas says of it: cubin, registers, spills, warnings."""
        from fragir.toolchain import ptxas

        return ptxas.assemble(self.ptx, self.target)

    @cached_property
    def notes(self) -> list[str]:
        """A sentence for each of its tensor-core instructions that the target has not natively,
        and one for spills, where there is a ptxas to tell."""
        from fragir.lowering_notes import instruction_notes, spill_notes
        from fragir.toolchain.find import PTXAS, find

        words = (line.split(None, 1) for line in self.ptx.splitlines())
        opcodes = (found[0] for found in words if found)
        used = dict.fromkeys(
            opcode for opcode in opcodes if opcode.startswith(("mma.", "wgmma.mma"))
        )
        try:
            find(PTXAS)
        except FragirError:
            return instruction_notes(used, self.target)
        return instruction_notes(used, self.target) + spill_notes(self.assembled.entries)

    @property
    def cubin(self) -> bytes:
        """The machine code."""
        return self.assembled.cubin

    def grid(self, sizes: Mapping[str, int]) -> tuple[int, int, int]:
        """Blocks to launch for these sizes."""
        self.check(sizes)
        if self.grid_attribute is None:
            return 1, 1, 1
        try:
            return self.grid_attribute.evaluate(dict(sizes))
        except KeyError as error:
            raise FragirError(
                f"the grid of {self.name} needs the size {error.args[0]}",
                hint="name a dimension so, with frag.sizes",
            ) from None

    def sizes(self, arguments: Sequence[object]) -> dict[str, int]:
        """The named sizes that the arrays' shapes give; FragirError where they contradict."""
        return self._bind(self._views(arguments))

    def check(self, sizes: Mapping[str, int]) -> None:
        """FragirError for sizes that break what the program promises of them."""
        _check_kind(sizes, Mapping, "sizes are a dict", 'write {"m": 256}')
        for name, size in sizes.items():
            whole_number(size, f"the size {name}")
            divisor = self.promises.get(name, 1)
            if size % divisor:
                raise FragirError(
                    f"{name} = {size}, but {self.name} is promised multiples of {divisor}",
                    hint="pad the arrays, or compile without this frag.divisible",
                )

    def _bind(self, views: Sequence[View | None]) -> dict[str, int]:
        found: dict[str, int] = {}
        for argument, view in zip(self.signature, views, strict=True):
            if view is None:
                continue
            for name, size in zip(argument.dims, view.shape, strict=True):
                wanted = name if isinstance(name, int) else found.setdefault(name, size)
                if wanted != size:
                    raise FragirError(
                        f"{argument.name} has shape {view.shape}; {self.name} takes "
                        f"({', '.join(map(str, argument.dims))})"
                        + ("" if isinstance(name, int) else f" with {name} = {wanted}")
                    )
            for name, stride in zip(argument.strides or (), view.strides, strict=False):
                if isinstance(name, str):
                    self.check({name: stride})
        self.check(found)
        return found

    def _views(self, arguments: Sequence[object]) -> list[View | None]:
        """The arrays among the arguments, each checked against its declaration."""
        pairs = zip(self.signature, self._counted(arguments), strict=True)
        return [
            _array(value, argument) if argument.is_memory else None for argument, value in pairs
        ]

    def _counted(self, arguments: Sequence[object]) -> Sequence[object]:
        _check_kind(arguments, Sequence, "arguments are a tuple or list")
        if len(arguments) != len(self.signature):
            names = ", ".join(argument.name for argument in self.signature)
            raise FragirError(
                f"{self.name} takes {len(self.signature)} arguments ({names}), not {len(arguments)}"
            )
        return arguments

    def parameters(self, arguments: Sequence[object]) -> list[object]:
        """The arguments as PTX's parameters: arrays, each followed by its dynamic sizes."""
        views = self._views(arguments)
        self._bind(views)
        return self._parameters(arguments, views, self._borrowed(views))

    def _borrowed(self, views: Sequence[View | None]) -> Borrowed:
        pairs = zip(self.signature, views, strict=True)
        return Borrowed({argument.name: view for argument, view in pairs if view is not None})

    def _parameters(
        self, arguments: Sequence[object], views: Sequence[View | None], borrowed: Borrowed
    ) -> list[object]:
        result: list[object] = []
        for argument, value, view in zip(self.signature, arguments, views, strict=True):
            if argument.is_pointer:
                result.append(value)  # any buffer: a program of lanes says nothing of its shape
                continue
            if view is None:
                result.append(scalar(value, argument.type, argument.name))
                continue
            result.append(borrowed.lend(view, argument.name))
            extents = zip(view.shape, argument.dims, strict=True)
            strides = zip(view.strides, argument.strides or (), strict=argument.strides is not None)
            for number, declared in (*extents, *strides):
                if isinstance(declared, str):
                    result.append(whole(number, f"{declared} of {argument.name}"))
        return result

    def __call__(self, *arguments: object, on: Place = "auto", **options: Any) -> Any:
        """Runs on arrays, written in place, with the grid that their sizes ask for.

        `options` as of `launch`: `kernel(a, b, c, check=True)` returns a report with findings.
        """
        grid = self.grid(self.sizes(arguments))
        if 0 in grid:
            self.parameters(arguments)
            return self._nothing_to_do(on, options)
        return self.launch(grid, self.block, *arguments, on=on, **options)

    def _nothing_to_do(self, on: Place, options: Mapping[str, Any]) -> Any:
        """What a run of no blocks gives, as for matrices without rows or columns."""
        one_of(on, PLACES, "on")
        if on == "gpu":
            return None
        from fragir.emulator import Report

        return Report()

    def launch(
        self,
        grid: Sequence[int] | int,
        block: Sequence[int] | int | None,
        *arguments: object,
        on: Place = "auto",
        shared: int | None = None,
        cluster: tuple[int, int, int] = (1, 1, 1),
        stream: object = None,
        **options: Any,
    ) -> Any:
        """Runs a grid; the emulator's report, or None from a GPU.

        `on` is "emulator", "gpu", or "auto": a GPU where there is one. Further options (`check`,
        `limit`, ...) are those of `fragir.emulator.run`; with one of them "auto" is the emulator.
        """
        one_of(on, PLACES, "on")
        views = self._views(arguments)
        self._bind(views)
        borrowed = self._borrowed(views)
        parameters = self._parameters(arguments, views, borrowed)
        blocks = extent(grid, "the grid")
        threads = extent(self.block if block is None else block, "the block")
        cluster = extent(cluster, "the cluster")
        memory = self.shared if shared is None else whole_number(shared, "shared")
        machine = options.get("target") or self.target
        problem = machines.launch_problem(
            machine, grid=blocks, block=threads, cluster=cluster, shared=memory
        )
        if problem is not None:
            raise FragirError(f"{self.name} cannot be launched so: {problem[0]}", hint=problem[1])
        asked = [
            name for name, value in options.items() if value is not None and value is not False
        ]
        if on == "auto":
            from fragir.toolchain import driver

            on_gpu = any(view is not None and view.on_gpu for view in views)
            has_gpu = not asked and driver.available() is None
            on = "gpu" if on_gpu or has_gpu else "emulator"
        report = None
        if on == "gpu":
            if asked:
                raise FragirError(
                    f"a GPU knows no {' and no '.join(asked)}", hint='run it with on="emulator"'
                )
            from fragir.toolchain import driver

            driver.launch(
                self.cubin,
                self.name,
                grid=blocks,
                block=threads,
                arguments=parameters,
                shared=memory,
                cluster=cluster,
                stream=stream,
            )
        else:
            from fragir import emulator

            for argument, view in zip(self.signature, views, strict=True):
                if view is not None and view.on_gpu:
                    raise FragirError(
                        f"{argument.name} lies on a GPU, the emulator runs on the host",
                        hint='copy it to the host, or run with on="gpu"',
                    )
            report = emulator.run(
                self.ptx,
                self.name,
                grid=blocks,
                block=threads,
                arguments=parameters,
                shared=memory,
                cluster=cluster,
                **options,
            )
        borrowed.give_back()
        return report


def _array(value: object, argument: Argument) -> View:
    """An argument as an array of the declared elements, rank and strides."""
    from fragir.dialects.narrow import memref_type

    view = view_of(value, memref_type(argument.type).element_type, argument.name)
    if len(view.shape) != len(argument.dims):
        raise FragirError(
            f"{argument.name} has {len(view.shape)} dimensions, "
            f"the kernel takes {len(argument.dims)}"
        )
    wanted = row_major(view.shape) if argument.strides is None else argument.strides
    if not follows(view.shape, view.strides, wanted):
        raise FragirError(
            f"{argument.name} has strides {view.strides} (elements), the kernel takes "
            f"({', '.join(map(str, wanted))})",
            hint="pass a contiguous copy, or declare the strides: strided<[...]> in a program, "
            "strides=... in Python",
        )
    return view


def signature_of(function: func.FuncOp) -> tuple[Argument, ...]:
    """What a function takes, with the names of its dynamic sizes."""
    from fragir.dialects import frag
    from fragir.dialects.narrow import is_memref

    result: list[Argument] = []
    for i, argument in enumerate(function.body.block.args):
        name = argument.name_hint or f"arg{i}"
        type_ = argument.type
        if not is_memref(type_):
            result.append(Argument(name, type_))
            continue
        result.append(Argument(name, type_, *frag.size_names(function, i)))
    return tuple(result)


def compile(
    program: ModuleOp | str,
    *,
    target: str = "sm_80",
    entry: str | None = None,
    filename: str = "<input>",
    comments: bool = False,
    observe: Observer | None = None,
) -> Kernel:
    """Compiles a program, MLIR text or a module (which stays as it is), to a kernel.

    `entry` names the function where there are several. FragirError for everything that is wrong
    with the program, with its place.
    """
    from fragir.dialects import frag
    from fragir.passes.writer.module import shared_bytes

    _check_kind(program, str | ModuleOp, "compile takes the text of a program or a ModuleOp")
    if entry is not None:
        _check_kind(entry, str, "entry is the name of a function")
    known(target)
    stages: dict[str, float] = {}
    start = time.perf_counter()
    text = program if isinstance(program, str) else None
    module = parse(program, filename) if isinstance(program, str) else program.clone()
    stages["parse"] = (time.perf_counter() - start) * 1e3
    name = choose_entry(module, entry)
    for op in list(module.ops):
        if isinstance(op, func.FuncOp) and op.sym_name.data != name:
            op.detach()
    lower(module, "placed", target, source=text, observe=observe, stages=stages)
    function = _function(module, name)
    signature, grid = signature_of(function), function.attributes.get("frag.grid")
    promises = frag.promises_of(function)
    lower(module, "lane", target, source=text, observe=observe, stages=stages)
    start = time.perf_counter()
    ptx = emit(module, target, comments=comments, source=text)
    stages["emit"] = (time.perf_counter() - start) * 1e3
    function = _function(module, name)
    threads = function.attributes.get("ptx.ntid")
    return Kernel(
        name=name,
        target=target,
        ptx=ptx,
        signature=signature,
        grid_attribute=grid if isinstance(grid, frag.GridAttr) else None,
        block=(threads.value.data if isinstance(threads, IntegerAttr) else 32, 1, 1),
        shared=dynamic_shared(shared_bytes(function)),
        stages=stages,
        promises=promises,
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


def _function(module: ModuleOp, name: str) -> func.FuncOp:
    for op in module.ops:
        if isinstance(op, func.FuncOp) and op.sym_name.data == name:
            return op
    raise FragirError(f"there is no function {name}")
