"""Writes the operations of one kernel as PTX, front to back."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache, singledispatchmethod

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FileLineColLoc,
    FloatAttr,
    IntegerAttr,
    LocationAttr,
    UnknownLoc,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from fragir.diagnostics import fail, note_place
from fragir.dialects import ptx
from fragir.dialects.elements import element_name
from fragir.dialects.narrow import integers, is_vector
from fragir.errors import FragirError
from fragir.isa.versions import has
from fragir.passes.limits import allocate
from fragir.passes.writer.constants import is_small_float, small_float_bits, tf32
from fragir.passes.writer.elementwise import ElementwiseWriter
from fragir.passes.writer.registers import Labels, RegisterNames
from fragir.passes.writer.sharing import dies_at, reusable
from fragir.ptx.spelling import address, float_literal, vector

Names = tuple[str, ...]


class KernelWriter:
    """The text of one kernel: `lines`, `registers` to declare, and the `opcodes` that occur.

    Every value has names: its registers in order, or literals where it is a constant. Operations
    that only pick registers give names without writing anything.
    """

    def __init__(self, target: str, memory: str, comments: bool):
        self.target, self.memory, self.comments = target, memory, comments
        self.lines: list[str] = []
        self.opcodes: dict[str, None] = {}  # in the order of their first use
        self.registers = RegisterNames()
        self.labels = Labels()
        self.names: dict[SSAValue, Names] = {}
        self._owned: set[SSAValue] = set()  # values that alone have their registers
        self._reserved: dict[SSAValue, Names] = {}
        self._fragments: dict[Operation, Names] = {}  # A of a wgmma, ready before its fence
        self.shared = 0  # bytes used so far
        self._sizes: dict[str, str] = {}
        self._location: LocationAttr = UnknownLoc()
        self.elementwise = ElementwiseWriter(self)

    def has(self, opcode: str) -> bool:
        """Whether the target has an opcode."""
        return has(opcode, self.target)

    # --- text ---------------------------------------------------------------------------------

    def emit(self, opcode: str, *operands: str, guard: str | None = None) -> None:
        """One instruction."""
        self.opcodes[opcode] = None
        prefix = f"@{guard} " if guard else ""
        tail = f" {', '.join(operands)}" if operands else ""
        self.lines.append(f"    {prefix}{opcode}{tail};")

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def _comment(self, op: Operation) -> None:
        if self.comments and op.location != self._location:
            self._location = op.location
            if isinstance(op.location, FileLineColLoc):
                place = op.location
                self.lines.append(f"    // {place.filename.data}:{place.line.data}")

    # --- values -------------------------------------------------------------------------------

    def parameter(self, argument: SSAValue, name: str, type_: str) -> None:
        """Loads a kernel parameter into a register; global pointers are made global."""
        (register,) = self.define(argument)
        self.emit(f"ld.param{type_}", register, address(name))
        if isinstance(argument.type, ptx.PointerType):
            self.emit("cvta.to.global.u64", register, register)

    def define(self, value: SSAValue) -> Names:
        """New registers for a value, or those of the loop variable that it replaces."""
        reserved = self._reserved.pop(value, None)
        if reserved is None:
            width, count, default = held(value.type)
            hint = value.name_hint or default
            reserved = tuple([self.registers.fresh(width, hint) for _ in range(count)])
        self.names[value] = reserved
        self._owned.add(value)
        return reserved

    def alias(self, value: SSAValue, names: Sequence[str]) -> None:
        """Names for a value that needs no instruction."""
        self.names[value] = tuple(names)
        reserved = self._reserved.pop(value, None)
        if reserved is not None:
            self.move(reserved, self.names[value], value.type)
            self.names[value] = reserved

    def one(self, value: SSAValue) -> str:
        """The register or literal of a scalar."""
        (name,) = self.names[value]
        return name

    def register(self, value: SSAValue) -> str:
        """A scalar's register, where the instruction takes no literal."""
        return self.in_registers(value)[0]

    def in_registers(self, value: SSAValue) -> Names:
        """The registers of a value; literals are moved to registers."""
        names = self.names[value]
        if all(name.startswith("%") for name in names):
            return names
        moved: dict[str, str] = {}
        width = ptx.register_bits(value.type)
        result: list[str] = []
        for name in names:
            if not name.startswith("%") and name not in moved:
                moved[name] = self.registers.fresh(width, default_hint(value.type))
                self.emit(move_opcode(width), moved[name], literal_bits(name))
            result.append(moved.get(name, name))
        return tuple(result)

    def move(self, targets: Sequence[str], sources: Sequence[str], type_: Attribute) -> None:
        """Copies registers, all at once: a target may be another's source."""
        width = ptx.register_bits(type_)
        self.parallel_move([(t, s, width) for t, s in zip(targets, sources, strict=True)])

    def parallel_move(self, moves: Sequence[tuple[str, str, int]]) -> None:
        """Copies (target, source, bits) as if all at once; a cycle takes a temporary."""
        pending: list[tuple[str, str, int]] = [(t, s, w) for t, s, w in moves if t != s]
        while pending:
            sources = {move[1] for move in pending}
            ready = [move for move in pending if move[0] not in sources]
            if ready:
                for target, source, width in ready:
                    self.emit(move_opcode(width), target, literal_bits(source))
                pending = [move for move in pending if move not in ready]
                continue
            target, source, width = pending[0]
            spare = self.registers.fresh(width, "swap")
            self.emit(move_opcode(width), spare, source)
            pending = [(t, spare if s == source else s, w) for t, s, w in pending]

    def take_over(self, value: SSAValue, op: Operation) -> Names | None:
        """A value's registers where `op` may overwrite them, else None."""
        names = self.names[value]
        if value in self._owned and dies_at(value, op) and len(set(names)) == len(names):
            return names
        return None

    def _own(self, value: SSAValue, names: Names) -> None:
        self.names[value] = names
        self._owned.add(value)

    # --- operations ---------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        """Writes a block's operations."""
        for op in block.ops:
            self._comment(op)
            try:
                self._writer(type(op))(self, op)
            except FragirError as error:
                fail(op, f"{op.name}: {error}")
            except Exception as error:
                note_place(error, op)
                raise

    @singledispatchmethod
    def write(self, op: Operation) -> None:
        """Elementwise arithmetic is in tables; what is in none has no PTX."""
        if not self.elementwise.write(op):
            from fragir.passes.writer.missing import hint

            raise FragirError("there is no instruction for it", hint=hint(op.name))

    @write.register
    def _(self, op: func.ReturnOp) -> None:
        self.emit("ret")

    @write.register
    def _(self, op: arith.ConstantOp) -> None:
        self.alias(op.result, constant_names(op.value, op.result.type))

    @write.register
    def _(self, op: ptx.ZeroOp) -> None:
        type_ = op.value.type
        self.alias(op.value, [zero_literal(type_)] * ptx.registers(type_))

    @write.register
    def _(self, op: ptx.SpecialOp) -> None:
        (register,) = self.define(op.value)
        self.emit("mov.u32", register, f"%{op.register.data}")

    @write.register
    def _(self, op: ptx.SharedOp) -> None:
        (register,) = self.define(op.pointer)
        offset = f"+{self.shared}" if self.shared else ""
        self.emit("mov.u32", register, f"{self.memory}{offset}")
        self.shared = allocate(op, self.shared, self.target)

    @write.register
    def _(self, op: ptx.OffsetOp) -> None:
        (result,) = self.define(op.result)
        pointer, index = self.one(op.pointer), self.one(op.index)
        factor = str(op.scale.value.data) if op.stride is None else self.one(op.stride)
        type_ = op.pointer.type
        assert isinstance(type_, ptx.PointerType)
        if not type_.is_shared:
            self.emit("mad.wide.s32", result, index, factor, pointer)
        elif factor == "1":
            self.emit("add.s32", result, pointer, index)
        else:
            self.emit("mad.lo.s32", result, index, factor, pointer)

    @write.register
    def _(self, op: ptx.LoadOp) -> None:
        value, (pointer, *guarded) = op.results[0], op.operands
        where = address(self.one(pointer), op.offset.value.data)
        names = self.define(value)
        guard: str | None = None
        if guarded:
            predicate, otherwise = guarded
            self.move(names, self.names[otherwise], value.type)
            guard = self.register(predicate)
        self.emit(access("ld", pointer.type, value.type), braced(names), where, guard=guard)

    @write.register
    def _(self, op: ptx.StoreOp) -> None:
        value, pointer, *predicates = op.operands
        where = address(self.one(pointer), op.offset.value.data)
        names = self.in_registers(value)
        guard = self.register(predicates[0]) if predicates else None
        self.emit(access("st", pointer.type, value.type), where, braced(names), guard=guard)

    @write.register
    def _(self, op: ptx.LdmatrixOp) -> None:
        names = self.define(op.value)
        trans = ".trans" if op.transposed is not None else ""
        opcode = f"ldmatrix.sync.aligned.m8n8.x{len(names)}{trans}.shared.b16"
        self.emit(opcode, vector(names), address(self.one(op.pointer), op.offset.value.data))

    @write.register
    def _(self, op: ptx.StmatrixOp) -> None:
        names = self.in_registers(op.value)
        trans = ".trans" if op.transposed is not None else ""
        opcode = f"stmatrix.sync.aligned.m8n8.x{len(names)}{trans}.shared.b16"
        self.emit(opcode, address(self.one(op.pointer), op.offset.value.data), vector(names))

    @write.register
    def _(self, op: ptx.CpAsyncOp) -> None:
        size = op.bytes.value.data
        operands = [
            address(self.one(op.target), op.target_offset.value.data),
            address(self.one(op.source), op.source_offset.value.data),
            str(size),
        ]
        if op.predicate is not None:
            spare = self.registers.fresh(32, "bytes")
            self.emit("selp.b32", spare, str(size), "0", self.register(op.predicate))
            operands.append(spare)
        # .cg, which passes by L1, exists for 16 bytes only
        kind = "cg" if size == 16 else "ca"
        self.emit(f"cp.async.{kind}.shared.global", *operands)

    @write.register
    def _(self, op: ptx.SyncOp) -> None:
        operands = [] if op.number is None else [str(op.number.value.data)]
        if op.instruction.data.startswith("wgmma.fence"):
            self._before_fence(op)
        self.emit(op.instruction.data, *operands)

    def _before_fence(self, fence: ptx.SyncOp) -> None:
        """Moves constants to registers where the products after a fence read them as A.

        Registers of A must be written before the fence (PTX ISA 9.2, section 9.7.15.7.1).
        """
        op = fence.next_op
        while op is not None and not isinstance(op, ptx.SyncOp):
            if isinstance(op, ptx.WgmmaOp) and is_vector(op.a.type) and op.a in self.names:
                self._fragments[op] = self.in_registers(op.a)
            op = op.next_op

    @write.register
    def _(self, op: ptx.MmaOp) -> None:
        self._mma(op, ())

    @write.register
    def _(self, op: ptx.MmaSparseOp) -> None:
        self._mma(op, (self.register(op.metadata), str(op.selector.value.data)))

    def _mma(self, op: ptx.MmaOp | ptx.MmaSparseOp, more: Names) -> None:
        a, b = self.in_registers(op.a), self.in_registers(op.b)
        c = self._addend(op.c)
        scales = self._scales(op)
        over = self.take_over(op.c, op) if op.c.type == op.d.type else None
        if over is not None and op.d not in self._reserved:
            self._own(op.d, over)
        d = self.names[op.d] if op.d in self.names else self.define(op.d)
        operands = (vector(d), vector(a), vector(b), vector(c), *more, *scales)
        self.emit(op.instruction.data, *operands)

    def _addend(self, c: SSAValue) -> Names:
        """C of a product: ptxas takes literals of 32 and 64 bits there, but none for two halves."""
        return self.names[c] if ptx.bits(c.type) >= 32 else self.in_registers(c)

    def _scales(self, op: ptx.MmaOp | ptx.MmaSparseOp) -> Names:
        """SFA, its byte and thread, SFB, its byte and thread."""
        if op.scale_selectors is None:
            return ()
        numbers = [str(number) for number in integers(op.scale_selectors)]
        sfa, sfb = (self.register(scale) for scale in op.scales)
        return sfa, vector(numbers[:2]), sfb, vector(numbers[2:])

    @write.register
    def _(self, op: ptx.CopyOp) -> None:
        over = self.take_over(op.source, op)
        if over is not None:
            self._own(op.result, over)
            return
        self.move(self.define(op.result), self.names[op.source], op.result.type)

    @write.register
    def _(self, op: ptx.WgmmaOp) -> None:
        self._tie(op, op.c, op.d)
        names = vector(self.names[op.d])
        registers = is_vector(op.a.type)
        a = vector(self._fragment(op)) if registers else self.register(op.a)
        scale = "1" if op.scale_d is None else self.register(op.scale_d)
        operands = [names, a, self.register(op.b)]
        if op.metadata is not None and op.selector is not None:
            operands += [self.register(op.metadata), str(op.selector.value.data)]
        operands.append(scale)
        element = op.instruction.data.rsplit(".", 1)[1]
        if element not in ("s8", "u8", "popc"):  # floats: imm-scale-a and -b
            operands += ["1" if x is None else "-1" for x in (op.a_negated, op.b_negated)]
        if element in ("f16", "bf16"):
            majors = [op.b_major.data] if registers else [op.a_major.data, op.b_major.data]
            operands += ["1" if major == "mn" else "0" for major in majors]
        self.emit(op.instruction.data, *operands)

    def _fragment(self, op: ptx.WgmmaOp) -> Names:
        return self._fragments.get(op) or self.in_registers(op.a)

    def _tie(self, op: Operation, source: SSAValue, result: SSAValue) -> None:
        over = self.take_over(source, op)
        if over is None:
            raise FragirError(
                "the accumulator is read or kept elsewhere while the product is under way, and "
                "copying it then is undefined",
                hint="use the result of ptx.wgmma_wait, and ptx.copy before wgmma.fence",
            )
        self._own(result, over)

    @write.register
    def _(self, op: ptx.WgmmaWaitOp) -> None:
        for source, result in zip(op.accumulators, op.completed, strict=True):
            self._tie(op, source, result)
        self.emit("wgmma.wait_group.sync.aligned", str(op.pending.value.data))

    @write.register
    def _(self, op: ptx.DescriptorOp) -> None:
        (result,) = self.define(op.result)
        part = self.registers.fresh(32, "start")
        # bits 4..17 of the address (PTX ISA 9.2, section 9.7.15.5.1.2)
        self.emit("bfe.u32", part, self.one(op.address), "4", "14")
        wide = self.registers.fresh(64, "start64")
        self.emit("cvt.u64.u32", wide, part)
        fields = op.fields.value.data & (1 << 64) - 1
        self.emit("or.b64", result, wide, f"0x{fields:X}")

    # --- naming registers ---------------------------------------------------------------------

    @write.register
    def _(self, op: ptx.SliceOp) -> None:
        per = max(1, 32 // ptx.bits(op.source.type)) if ptx.bits(op.source.type) < 32 else 1
        first = op.first.value.data // per
        count = ptx.registers(op.result.type)
        self.alias(op.result, self.names[op.source][first : first + count])

    @write.register
    def _(self, op: ptx.ConcatOp) -> None:
        self.alias(op.result, [name for part in op.parts for name in self.names[part]])

    @write.register
    def _(self, op: ptx.BitcastOp) -> None:
        names = self.in_registers(op.source)
        if ptx.register_bits(op.source.type) != ptx.register_bits(op.result.type):
            raise FragirError(f"no free bitcast from {op.source.type} to {op.result.type}")
        self.alias(op.result, names)

    @write.register
    def _(self, op: ptx.SplatOp) -> None:
        name, bits = self.one(op.scalar), ptx.bits(op.scalar.type)
        if 1 < bits < 32:
            if not name.startswith("%"):
                name = replicated(int(literal_bits(name), 0), bits)
            elif bits < 8:
                raise FragirError(f"{op.scalar.type} is repeated as a constant only")
            else:
                packed = self.registers.fresh(32, default_hint(op.result.type))
                self._replicate(packed, name, bits)
                name = packed
        self.alias(op.result, [name] * ptx.registers(op.result.type))

    def _replicate(self, target: str, name: str, bits: int) -> None:
        if bits == 16:
            self.emit("mov.b32", target, vector([name, name]))
        else:
            self.emit("prmt.b32", target, name, "0", "0x0000")

    @write.register
    def _(self, op: ptx.PackOp) -> None:
        bits = ptx.bits(op.result.type)
        if bits >= 32 or bits == 1:
            self.alias(op.result, [self.one(scalar) for scalar in op.scalars])
            return
        scalars = [self.register(scalar) for scalar in op.scalars]
        per = 32 // bits
        for i, target in enumerate(self.define(op.result)):
            part = scalars[i * per : (i + 1) * per]
            # the last register may not be full: what is beyond holds copies
            self._pack(target, [*part, *part[-1:] * (per - len(part))])

    def _pack(self, target: str, scalars: list[str]) -> None:
        if len(scalars) == 2:
            self.emit("mov.b32", target, vector(scalars))
            return
        low, high = self.registers.fresh(32), self.registers.fresh(32)
        self.emit("prmt.b32", low, scalars[0], scalars[1], "0x0040")
        self.emit("prmt.b32", high, scalars[2], scalars[3], "0x0040")
        self.emit("prmt.b32", target, low, high, "0x5410")

    @write.register
    def _(self, op: ptx.UnpackOp) -> None:
        bits, names = ptx.bits(op.source.type), self.names[op.source]
        if bits >= 32 or bits == 1:
            for scalar, name in zip(op.scalars, names, strict=True):
                self.alias(scalar, [name])
            return
        names = self.in_registers(op.source)
        per = 32 // bits
        for i, name in enumerate(names):
            scalars = [self.define(s)[0] for s in op.scalars[i * per : (i + 1) * per]]
            if bits == 16:
                self.emit("mov.b32", vector([*scalars, "_"][:2]), name)
                continue
            for j, scalar in enumerate(scalars):
                self.emit("bfe.u32", scalar, name, str(8 * j), "8")

    @write.register
    def _(self, op: ptx.ShuffleOp) -> None:
        source = self.one(op.source)
        names = self.in_registers(op.value)
        for result, name in zip(self.define(op.result), names, strict=True):
            self.emit("shfl.sync.idx.b32", result, name, source, "31", "-1")

    @write.register
    def _(self, op: ptx.ShuffleXorOp) -> None:
        mask = str(op.mask.value.data)
        names = self.in_registers(op.value)
        wide = ptx.register_bits(op.value.type) == 64
        for result, name in zip(self.define(op.result), names, strict=True):
            if not wide:
                self.emit("shfl.sync.bfly.b32", result, name, mask, "31", "-1")
                continue
            halves = [self.registers.fresh(32), self.registers.fresh(32)]
            self.emit("mov.b64", vector(halves), name)
            for half in halves:
                self.emit("shfl.sync.bfly.b32", half, half, mask, "31", "-1")
            self.emit("mov.b64", result, vector(halves))

    @write.register
    def _(self, op: ptx.MovmatrixOp) -> None:
        names = self.in_registers(op.value)
        for result, name in zip(self.define(op.result), names, strict=True):
            self.emit("movmatrix.sync.aligned.m8n8.trans.b16", result, name)

    # --- control ------------------------------------------------------------------------------

    @write.register
    def _(self, op: scf.ForOp) -> None:
        body = op.body.block
        moves: list[tuple[str, str, int]] = []
        for start, variable in zip(op.iter_args, body.args[1:], strict=True):
            over = self.take_over(start, op)
            if over is not None:
                self._own(variable, over)
                continue
            width = ptx.register_bits(variable.type)
            hint = variable.name_hint or start.name_hint or default_hint(variable.type)
            names = tuple(
                self.registers.fresh(width, hint) for _ in range(ptx.registers(variable.type))
            )
            self._own(variable, names)
            moves += [(t, s, width) for t, s in zip(names, self.names[start], strict=True)]
        counter = self.define(body.args[0])[0]
        kind = f"s{max(32, ptx.bits(op.lb.type))}"
        lower, upper, step = (self.one(v) for v in (op.lb, op.ub, op.step))
        self.parallel_move([*moves, (counter, lower, ptx.register_bits(op.lb.type))])
        loop, done = self.labels.fresh("loop"), self.labels.fresh("done")
        if not _runs_once(lower, upper):
            skip = self.registers.fresh(1)
            self.emit(f"setp.ge.{kind}", skip, counter, upper)
            self.emit("bra", done, guard=skip)
        self.label(loop)
        for value, variable in reusable(op).items():
            self._reserved[value] = self.names[variable]
        self.block(body)
        last = body.last_op
        assert last is not None
        back: list[tuple[str, str, int]] = []
        for value, variable in zip(last.operands, body.args[1:], strict=True):
            width = ptx.register_bits(variable.type)
            pairs = zip(self.names[variable], self.names[value], strict=True)
            back += [(t, s, width) for t, s in pairs]
        self._check_in_flight(op, body)
        self.parallel_move(back)
        again = self.registers.fresh(1)
        self.emit(f"add.{kind}", counter, counter, step)
        self.emit(f"setp.lt.{kind}", again, counter, upper)
        self.emit("bra", loop, guard=again)
        self.label(done)
        for result, variable in zip(op.results, body.args[1:], strict=True):
            self._own(result, self.names[variable])

    def _check_in_flight(self, op: scf.ForOp, body: Block) -> None:
        """Refuses to copy an accumulator that a wgmma still writes."""
        last = body.last_op
        assert last is not None
        for value, variable in zip(last.operands, body.args[1:], strict=True):
            if isinstance(value.owner, ptx.WgmmaOp) and self.names[value] != self.names[variable]:
                raise FragirError(
                    "a wgmma's accumulator is carried round the loop in other registers while it "
                    "is under way",
                    hint="give the loop's own variable to the wgmma as c",
                )

    @write.register
    def _(self, op: scf.YieldOp) -> None:
        """The loop or branch around it writes the copies."""

    @write.register
    def _(self, op: scf.IfOp) -> None:
        condition = self.register(op.cond)
        for result in op.results:
            self.define(result)
        otherwise = self.labels.fresh("else")
        self.emit("bra", otherwise, guard=f"!{condition}")
        self._branch(op, op.true_region.block)
        if op.false_region.blocks and len(list(op.false_region.block.ops)) > (not op.results):
            done = self.labels.fresh("endif")
            self.emit("bra.uni", done)
            self.label(otherwise)
            self._branch(op, op.false_region.block)
            self.label(done)
        else:
            self.label(otherwise)

    def _branch(self, op: scf.IfOp, block: Block) -> None:
        self.block(block)
        last = block.last_op
        if last is None:
            return
        moves: list[tuple[str, str, int]] = []
        for value, result in zip(last.operands, op.results, strict=True):
            width = ptx.register_bits(result.type)
            pairs = zip(self.names[result], self.names[value], strict=True)
            moves += [(t, s, width) for t, s in pairs]
        self.parallel_move(moves)

    # `write` by class: to call it as a method makes a new function every time
    _writer = staticmethod(write.dispatcher.dispatch)


def _runs_once(lower: str, upper: str) -> bool:
    """Whether constant bounds let the loop run at least once."""
    return not lower.startswith("%") and not upper.startswith("%") and int(lower) < int(upper)


def braced(names: Sequence[str]) -> str:
    """One register as it is, several in braces."""
    return names[0] if len(names) == 1 else vector(list(names))


def move_opcode(width: int) -> str:
    return "mov.pred" if width == 1 else f"mov.b{width}"


@lru_cache(maxsize=1024)
def held(type_: Attribute) -> tuple[int, int, str | None]:
    """How registers hold a value: their bits, how many, and what names them by default."""
    return ptx.register_bits(type_), ptx.registers(type_), default_hint(type_)


@lru_cache(maxsize=1024)
def default_hint(type_: Attribute) -> str | None:
    """A prefix that says what a register holds: f for f32, fd for f64."""
    name = element_name(ptx.scalar_type(type_)) if not isinstance(type_, ptx.PointerType) else ""
    return {"f32": "f", "f64": "fd"}.get(name)


@lru_cache(maxsize=1024)
def access(kind: str, pointer: Attribute, value: Attribute) -> str:
    """The opcode of a load or store: `ld.global.v4.b32`."""
    assert isinstance(pointer, ptx.PointerType)
    count = ptx.registers(value)
    width = ptx.register_bits(value) if is_vector(value) else ptx.bits(value)
    words = [kind, pointer.space.data.value, *([f"v{count}"] if count > 1 else []), f"b{width}"]
    return ".".join(words)


def zero_literal(type_: Attribute) -> str:
    """Zero as a literal of the type an instruction expects."""
    name = element_name(ptx.scalar_type(type_))
    return float_literal(0.0, name) if name in ("f32", "f64") else "0"


def constant_names(attribute: Attribute, type_: Attribute) -> list[str]:
    """The literals of a constant, one a register."""
    scalar, count = ptx.scalar_type(type_), ptx.registers(type_)
    if isinstance(attribute, DenseIntOrFPElementsAttr):
        values = list(attribute.get_values())
        if len(set(values)) != 1:
            raise FragirError("only vectors of one repeated constant are supported")
        value: float | int = values[0]
    elif isinstance(attribute, FloatAttr | IntegerAttr):
        value = attribute.value.data
    else:
        raise FragirError(f"{attribute} is no number")
    name = element_name(scalar)
    if name in ("f32", "f64", "f16", "bf16"):
        literal = float_literal(float(value), name)
        if is_vector(type_) and ptx.bits(scalar) == 16:
            literal = f"0x{int(literal, 0) * 0x10001:08X}"
        return [literal] * count
    if name == "tf32":
        return [float_literal(tf32(float(value)), "f32")] * count
    bits = ptx.bits(scalar)
    if bits == 1:
        return ["1" if value else "0"] * count
    number = small_float_bits(float(value), name) if is_small_float(name) else int(value)
    return [replicated(number, bits) if is_vector(type_) else str(number)] * count


def replicated(pattern: int, bits: int) -> str:
    """The literal of a register full of one element."""
    if bits >= 32:
        return str(pattern)
    ones = sum(1 << at for at in range(0, 32, bits))
    return f"0x{(pattern & (1 << bits) - 1) * ones:08X}"


def literal_bits(name: str) -> str:
    """A literal as an integer pattern, for instructions without a type; registers unchanged."""
    if name.startswith(("0f", "0d")):
        return f"0x{name[2:]}"
    return name


def half_bits(value: float) -> int:
    """The pattern of an f16."""
    return struct.unpack("<H", struct.pack("<e", value))[0]
