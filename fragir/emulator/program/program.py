"""From a syntax tree to a flat list of instructions with every name resolved.

Nothing here knows numpy arrays or warps: registers are numbered per width, variables get their
place, labels become positions. Functions that the kernel can reach follow it in the same list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TypeVar

from fragir.emulator.numbers.types import DTYPES
from fragir.emulator.program.entities import (
    Entity,
    Placed,
    Register,
    Routine,
    Scope,
    Symbol,
    constant_or_none,
    type_size,
)
from fragir.emulator.report import EmulationError
from fragir.ptx import tree
from fragir.ptx.opcodes.row import Opcode as Opcode
from fragir.ptx.opcodes.row import Opcodes
from fragir.ptx.opcodes.synchronisation import RESULTS
from fragir.ptx.visit import walk

# -- analyses --------------------------------------------------------------------------------------
# What has been found out about a program, kept with it.

T = TypeVar("T")


class Analyses(dict[type, object]):
    """By its class."""

    def once(self, kind: type[T], make: Callable[[], T]) -> T:
        """That of a kind, made where there is none yet."""
        found = self.get(kind)
        if found is None:
            found = self[kind] = make()
        assert isinstance(found, kind)
        return found


# -- declarations ----------------------------------------------------------------------------------
# Declarations that there cannot be (PTX ISA 9.2, sections 5.1 and 5.4), as ptxas refuses them.

#: What a module may declare, and what may begin with a value.
_OF_MODULES = frozenset({"global", "const", "shared", "tex"})
_INITIALISED = frozenset({"global", "const"})
#: Linkage of variables that other declarations may name again.
_SHARED = frozenset({"extern", "weak", "common"})
_VECTOR_BITS, _MOST_ALIGNED = 128, 1 << 31


def problem(node: tree.Declaration, bits: int, of_module: bool) -> str | None:
    """What is wrong with a declaration of elements of `bits` bits, None where nothing is."""
    align = node.align.value if node.align is not None else 1
    if align < 1 or align & (align - 1) or align > _MOST_ALIGNED:
        return f"an alignment is a power of two, not {align}"
    if of_module and node.space not in _OF_MODULES:
        return f"there are no variables in .{node.space} outside of functions"
    if node.vector is not None and bits * int(node.vector[1:]) > _VECTOR_BITS:
        return f".{node.vector} .{node.type} has more than {_VECTOR_BITS} bits"
    if node.type == "pred" and node.space != "reg":
        return "a .pred is a register"
    return next((text for v in node.variables if (text := _variable(node, v))), None)


def _variable(node: tree.Declaration, variable: tree.Variable) -> str | None:
    name = variable.name.text
    if variable.initializer is not None and node.space not in _INITIALISED:
        return f"{name} has an initial value, which variables in .{node.space} have not"
    if node.space in ("reg", "param") or "extern" in node.linkage:
        return None
    for index, dimension in enumerate(variable.dimensions):
        empty = isinstance(dimension, tree.Integer) and dimension.value == 0
        open_ = dimension is None and (index > 0 or variable.initializer is None)
        if empty or open_:
            return f"{name} has no size"
    return None


def twice(nodes: Iterable[tree.Declaration]) -> Iterator[tree.Variable]:
    """The variables of one scope that are declared before; not those that may be."""
    seen: set[str] = set()
    for node in nodes:
        if _SHARED & set(node.linkage):
            continue
        for variable in node.variables:
            key = f"{variable.name.text}<" if variable.count is not None else variable.name.text
            if key in seen:
                yield variable
            seen.add(key)


def functions_twice(module: tree.Module) -> Iterator[tree.Function]:
    """Functions with a body that another one of that name has already; `.weak` ones aside."""
    seen: set[str] = set()
    for function in module.functions:
        if function.body is None or "weak" in function.linkage:
            continue
        if function.name.text in seen:
            yield function
        seen.add(function.name.text)


LARGEST = 1 << 40  # bytes of a variable; what fits the machine it runs on is another question


class Program:
    """A kernel and what it calls, flat."""

    def __init__(self, module: tree.Module, entry: str | None, opcodes: Opcodes) -> None:
        self.opcodes = opcodes
        #: The row of one of its instructions.
        self.opcode: Callable[[tree.Instruction], Opcode] = opcodes.of
        self.module = module
        self.source = module.source
        entries = module.entries
        if not entries:
            raise EmulationError("the PTX has no .entry with a body", file=self._file())
        if entry is None:
            if len(entries) > 1:
                raise EmulationError(
                    f"the PTX has {len(entries)} entries; name one of: {', '.join(entries)}",
                    file=self._file(),
                )
            entry = next(iter(entries))
        if entry not in entries:
            raise EmulationError(
                f"the PTX has no entry {entry}",
                file=self._file(),
                hint=f"it has: {', '.join(entries)}",
            )
        self.entry = entry
        self.counts = {1: 0, 8: 0, 16: 0, 32: 0, 64: 0}
        self.symbols: list[Symbol] = []
        self.code: list[Placed] = []
        self.routines: dict[str, Routine] = {}
        self._pending: list[Routine] = []
        self._functions = {f.name.text: f for f in module.functions if f.body is not None}
        self._declared = {f.name.text for f in module.functions}
        #: Functions whose address is taken.
        self.addressed: set[str] = set()
        for item in module.items:
            if isinstance(item, tree.Alias) and item.target.text in self._functions:
                self._functions[item.name.text] = self._functions[item.target.text]
        #: What has been found out about the program, by its class.
        self.analyses = Analyses()
        self.root = Scope(None, None)
        for function in functions_twice(module):
            raise self.error(f"{function.name.text} is defined twice", function.name.at)
        self._check_once(module.declarations)
        for declaration in module.declarations:
            self._declare(self.root, declaration)
        self.main = self._routine(entries[entry])
        while self._pending:
            self._flatten(self._pending.pop(0))
            if not self._pending:  # functions may be named in tables only
                for symbol in self.symbols:
                    if symbol.variable is not None and symbol.variable.initializer is not None:
                        self._meet(symbol.variable.initializer, self.root, takes=True)
        self._reach = self._call_graph()
        self._sizes = [symbol.size for symbol in self.symbols]
        #: That of the table of opcodes that it was made with.
        self.version = opcodes.version
        #: Whether every instruction is one of that table, and uses its results rightly.
        self.legal = False

    def unplace(self) -> None:
        """Forget what a launch has made of the variables: their places, and sizes of its own."""
        for symbol, size in zip(self.symbols, self._sizes, strict=True):
            symbol.offset, symbol.size, symbol.framed = -1, size, False
        for routine in self.routines.values():
            routine.frame_size = 0

    def rows(self) -> Sequence[tuple[Opcode, tuple[str, ...]]]:
        """The row and the words of every instruction. ValueError as in `Opcodes.of`."""
        return self._rows

    @cached_property
    def _rows(self) -> Sequence[tuple[Opcode, tuple[str, ...]]]:
        return tuple((self.opcode(placed.ins), placed.ins.opcode) for placed in self.code)

    @cached_property
    def special_names(self) -> frozenset[str]:
        """The operands that are a name with % alone: registers, those of the machine too."""
        operands = (operand for placed in self.code for operand in placed.ins.operands)
        names = (o.text for o in operands if isinstance(o, tree.Name))
        return frozenset(name for name in names if name.startswith("%"))

    @cached_property
    def keeps_parameters(self) -> bool:
        """Whether the kernel's parameters are loaded by their names alone: none has its address
        taken, so that nothing can write there."""
        names = {p.name for p in self.main.parameters if isinstance(p, Symbol)}
        for placed in self.code:
            loads = self.opcode(placed.ins).access == "load"
            for operand in placed.ins.operands:
                if loads and isinstance(operand, tree.Address):
                    continue
                if any(isinstance(n, tree.Name) and n.text in names for n in walk(operand)):
                    return False
        return True

    @cached_property
    def takes_cluster(self) -> bool:
        """Whether any instruction may take a cluster off the launch."""
        return any(row.takes_cluster for row, _ in self.rows())

    @cached_property
    def frames(self) -> bool:
        """Whether lanes need a stack: for recursion, or for alloca."""
        if any(n in to for n, to in self._reach.items()):
            return True
        return any(row.stack for row, _ in self.rows())

    # -- who calls whom ------------------------------------------------------------------------

    def _call_graph(self) -> dict[str, set[str]]:
        """The functions that each one can reach by calls; any whose address is taken may be
        called through a register."""
        direct: dict[str, set[str]] = {name: set() for name in self.routines}
        for placed in self.code:
            if not self._is_call(placed.ins) or placed.scope.function is None:
                continue
            name = self.callee(placed.ins)
            found = None if name is None else self._functions.get(name)
            caller = direct[placed.scope.function.name]
            if found is not None:
                caller.add(found.name.text)
            elif name is not None and name not in self._declared:
                caller |= self.addressed & set(direct)
        while True:
            before = sum(map(len, direct.values()))
            for to in direct.values():
                for other in list(to):
                    to |= direct[other]
            if sum(map(len, direct.values())) == before:
                return direct

    def reenters(self, caller: Routine, callee: Routine | None) -> bool:
        """Whether a function may be called again before one that it calls returns.

        `callee` None: any that a register may name.
        """
        if caller.name not in self._reach.get(caller.name, ()):
            return False
        if callee is not None:
            return callee is caller or caller.name in self._reach[callee.name]
        return any(
            n == caller.name or caller.name in self._reach[n]
            for n in self.addressed
            if n in self._reach
        )

    def is_recursive(self, routine: Routine) -> bool:
        return routine.name in self._reach[routine.name]

    @cached_property
    def externs(self) -> set[str]:
        """Functions without a body that are called."""
        called = {self.callee(p.ins) for p in self.code if self._is_call(p.ins)}
        return {n for n in self._declared - set(self._functions) if n in called}

    def _is_call(self, ins: tree.Instruction) -> bool:
        row = self.opcodes.find(ins.opcode, len(ins.operands)).opcode
        return row is not None and row.ends == "call"

    @staticmethod
    def callee(ins: tree.Instruction) -> str | None:
        """The name that a call calls: of a function, or of a register."""
        for operand in ins.operands:
            if isinstance(operand, tree.Name):
                return operand.text
        return None

    def _file(self) -> str | None:
        return self.module.source.filename if self.module.source else None

    def error(self, message: str, at: int = -1, hint: str | None = None) -> EmulationError:
        """An error that points at a place in the PTX."""
        if self.source is None or at < 0:
            return EmulationError(message, file=self._file(), hint=hint)
        line, col = self.source.place(at)
        text = self.source.line(line)
        return EmulationError(message, self.source.filename, line, col, text, hint)

    # -- names -------------------------------------------------------------------------------

    def register(self, kind: str, owner: Routine | None, at: int = -1) -> Register:
        """A new register; `owner`: the function that declares it."""
        if kind not in DTYPES:
            raise self.error(f"registers of type .{kind} are not supported", at)
        width = DTYPES[kind][1]
        file = min(width, 64)
        made = Register(width, self.counts[file], kind)
        self.counts[file] += len(made.halves)
        if owner is not None:
            owner.registers += made.halves
        return made

    def find(self, scope: Scope, name: str) -> Entity | None:
        """What a name means there; registers come into being at their first use."""
        for s in scope.chain():
            found = s.names.get(name)
            if found is not None:
                if isinstance(found, Symbol):
                    found.used = True
                return found
            if s.ranges:
                stem = name.rstrip("0123456789")
                entry = s.ranges.get(stem)
                if entry is not None and stem != name and int(name[len(stem) :]) < entry[0]:
                    made = s.names[name] = self.register(entry[1], s.function)
                    return made
        if name in self._functions:
            routine = self._routine(self._functions[name])
            number = list(self.routines).index(routine.name) + 1  # 0 is the address of nothing
            symbol = Symbol(name, "function", 8, 8, offset=number)
            self.root.names[name] = symbol
            return symbol
        return None

    def label(self, scope: Scope, name: str) -> int | None:
        for s in scope.chain():
            if name in s.labels:
                return s.labels[name]
        return None

    def routine(self, name: str) -> Routine | None:
        """The function of that name, made reachable; None where there is no body."""
        node = self._functions.get(name)
        return None if node is None else self._routine(node)

    # -- flattening ----------------------------------------------------------------------------

    def _routine(self, node: tree.Function) -> Routine:
        name = node.name.text
        found = self.routines.get(name)
        if found is None:
            found = self.routines[name] = Routine(name, node)
            self._pending.append(found)
        return found

    def _flatten(self, routine: Routine) -> None:
        scope = Scope(self.root, routine)
        kernel = routine.node.kind == "entry"
        for target, declarations in (
            (routine.returns, routine.node.returns),
            (routine.parameters, routine.node.parameters),
        ):
            for declaration in declarations or ():
                target.extend(self._declare(scope, declaration, kernel))
        assert routine.node.body is not None
        routine.start = len(self.code)
        self._block(routine.node.body, scope)
        end = routine.node.body.end
        self.code.append(Placed(tree.Instruction(None, ("ret",), (), end), scope))
        routine.end = len(self.code)

    def _check_once(self, declarations: Iterable[tree.Declaration]) -> None:
        for variable in twice(declarations):
            raise self.error(f"{variable.name.text} is declared twice", variable.name.at)

    def _block(self, block: tree.Block, scope: Scope) -> None:
        self._check_once(item for item in block.items if isinstance(item, tree.Declaration))
        for item in block.items:
            if isinstance(item, tree.Declaration):
                self._declare(scope, item)
            elif isinstance(item, tree.Label):
                if item.name.text in scope.labels:
                    text = f"the label {item.name.text} stands here twice"
                    raise self.error(text, item.name.at)
                scope.labels[item.name.text] = len(self.code)
        label: str | None = None
        for item in block.items:
            match item:
                case tree.Instruction():
                    item = scope.componentwise(item)
                    self.code.append(Placed(item, scope))
                    self._touch(item, scope)
                    if self._is_call(item):  # results are copied when it comes back
                        back = tree.Instruction(item.guard, (RESULTS,), item.operands, item.at)
                        self.code.append(Placed(back, scope))
                case tree.Label():
                    label = item.name.text
                    scope.labels[label] = len(self.code)
                    continue
                case tree.Block():
                    self._block(item, Scope(scope, scope.function))
                case tree.BranchTargets() if label is not None:
                    scope.targets[label] = _labels(item)
                case tree.CallPrototype() if label is not None:
                    scope.prototypes[label] = item
                case _:
                    pass
            label = None

    def _touch(self, ins: tree.Instruction, scope: Scope) -> None:
        """Meet every name of an instruction, so that counts and sizes are known early."""
        if ins.guard is not None:
            self.find(scope, ins.guard.register.text)
        calls = self._is_call(ins)
        for operand in ins.operands:
            direct = calls and isinstance(operand, tree.Name)
            self._meet(operand, scope, takes=not direct)

    def _meet(self, operand: tree.Operand, scope: Scope, takes: bool = False) -> None:
        for node in walk(operand):
            if isinstance(node, tree.Name):
                found = self.find(scope, node.text)
                if takes and isinstance(found, Symbol) and found.space == "function":
                    self.addressed.add(self._functions[node.text].name.text)

    def _declare(
        self, scope: Scope, node: tree.Declaration, kernel: bool = False
    ) -> list[Symbol | Register]:
        made: list[Symbol | Register] = []
        bits = DTYPES[node.type][1] if node.type in DTYPES else 64
        wrong = problem(node, bits, scope is self.root)
        if wrong is not None:
            raise self.error(wrong, node.at)
        for variable in node.variables:
            name = variable.name.text
            if node.space == "reg":
                if variable.count is not None:
                    scope.ranges[name] = (variable.count.value, node.type)
                elif node.vector is not None:
                    scope.vectors[name] = int(node.vector[1:])
                    for part in "xyzw"[: scope.vectors[name]]:
                        scope.names[f"{name}.{part}"] = self.register(
                            node.type, scope.function, node.at
                        )
                else:
                    register = self.register(node.type, scope.function, node.at)
                    scope.names[name] = register
                    made.append(register)
                continue
            made.append(self._variable(scope, node, variable, kernel))
        return made

    def _variable(
        self, scope: Scope, node: tree.Declaration, variable: tree.Variable, kernel: bool
    ) -> Symbol:
        name = variable.name.text
        unit = type_size(node.type) if node.type in DTYPES else 8
        unit *= int(node.vector[1:]) if node.vector else 1
        size, initial = unit, variable.initializer
        for index, dimension in enumerate(variable.dimensions):
            if dimension is not None:
                size *= self.constant(dimension)
            elif index == 0 and isinstance(initial, tree.Vector):
                size *= len(initial.elements)
            else:
                size = 0
        if size > LARGEST:
            raise self.error(
                f"{name} has {size} bytes, more than any machine has", node.at, f"at most {LARGEST}"
            )
        align = node.align.value if node.align else unit
        space = node.space
        if space == "param":
            space = "param" if kernel else "local"
        if space == "shared" and "extern" in node.linkage:
            space, size = "dynamic", 0
        if node.type in ("texref", "surfref", "samplerref"):
            raise self.error(f".{node.type} variables are not supported", node.at)
        symbol = Symbol(name, space, size, align, node, variable)
        scope.names[name] = symbol
        self.symbols.append(symbol)
        if scope.function is not None:
            scope.function.variables.append(symbol)
        return symbol

    # -- constants -----------------------------------------------------------------------------

    def constant(self, node: tree.Operand) -> int:
        """The value of a constant expression; FragirError where it is none."""
        value = constant_or_none(node)
        if value is None:
            raise self.error("a constant is expected here", node.at)
        return value


def _labels(targets: tree.BranchTargets) -> tuple[tree.Name, ...]:
    """The labels of a list; `L<3>` is L0, L1 and L2 (11.2.1)."""
    if not targets.counts:
        return targets.labels
    found: list[tree.Name] = []
    for name, count in zip(targets.labels, targets.counts, strict=True):
        if count is None:
            found.append(name)
        else:
            found += [tree.Name(f"{name.text}{i}", name.at) for i in range(count.value)]
    return tuple(found)
