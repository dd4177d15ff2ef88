"""Operands whose contents PTX gives no meaning, and sentences of the ISA that kernels break."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fragir.emulator.checks.hooks import Hooks
from fragir.emulator.instructions.access import get
from fragir.emulator.instructions.addresses import window_of
from fragir.emulator.instructions.register_rows import operation, whole_warps
from fragir.emulator.machine.barriers import LIVE
from fragir.emulator.machine.lanes import LANES, Mask, Select, Step
from fragir.emulator.machine.memory import WINDOW
from fragir.emulator.machine.transfers import Issue
from fragir.emulator.numbers.types import U32, Array, Bools
from fragir.emulator.tensor_cores import Mma
from fragir.emulator.tensor_cores.maps import Metadata
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.program.program import Program
    from fragir.ptx.tree import Instruction


# -- sentences -------------------------------------------------------------------------------------
# Sentences of the PTX ISA that kernels break without harm on any machine known.
#
# A finding that rests on one of them has the severity `letter`, and quotes it.

#: name -> (title of the section, sentence), PTX ISA 9.2.
SENTENCES: dict[str, tuple[str, str]] = {
    # What cp.async writes wgmma reads, and TMA signals mbarriers, as compilers emit it by default.
    "proxies": (
        "Async Proxy",
        "Accessing the same memory location across multiple proxies needs a cross-proxy fence.",
    ),
    # Of mbarriers that nobody has used: compilers reserve more than they need.
    "mbarrier.init": (
        "mbarrier.init",
        "The behavior of performing an mbarrier.init operation on a memory location containing a "
        "valid mbarrier object is undefined; invalidate the mbarrier object using mbarrier.inval "
        "first, before repurposing the memory location for any other purpose, including another "
        "mbarrier object.",
    ),
    # Cooperative groups: one lane acquires, and a shuffle tells the others.
    "warp": (
        "bar.warp.sync",
        "Thus, threads within warp that wish to communicate via memory can store to memory, "
        "execute bar.warp.sync, and then safely read values stored by other threads in warp.",
    ),
    # One thread of a block looks, a barrier tells the others: no fence behind the look.
    "acquire": (
        "Release and Acquire Patterns",
        "The acquire pattern makes some operations from other threads visible to later operations "
        "from the current thread.",
    ),
    # What of a warp has left, or goes round: machines do not wait for it.
    "aligned": (
        "barrier",
        "In conditionally executed code, an aligned barrier{.cta} instruction should only be used "
        "if it is known that all threads in the warp evaluate the condition identically, "
        "otherwise behavior is undefined.",
    ),
    "members": (
        "shfl.sync",
        "shfl.sync will cause executing thread to wait until all non-exited threads corresponding "
        "to membermask have executed shfl.sync with the same qualifiers and same membermask value "
        "before resuming execution.",
    ),
    # A number as any other, and mostly nobody uses it.
    # Machines look at its lowest bit.
    "parity": (
        "mbarrier.test_wait, mbarrier.try_wait",
        "An even phase has integer parity 0 and an odd phase has integer parity of 1. So the valid "
        "values of phaseParity operand are 0 and 1.",
    ),
    # Lanes of a warp that look at an mbarrier, of which one goes on: warps stay together mostly.
    "phase": (
        "mbarrier.test_wait, mbarrier.try_wait",
        "The .parity variant of the instructions test for the completion of the phase indicated by "
        "the operand phaseParity, which is the integer parity of either the current phase or the "
        "immediately preceding phase of the mbarrier object.",
    ),
    # A subtraction, whose result nobody may have used yet.
    "window": (
        "cvta",
        "When converting a generic address into a const, Kernel Function Parameters (.param), "
        "global, local, or shared address, the resulting address is undefined in cases where the "
        "generic address does not fall within the address window of the specified state space.",
    ),
    # A bulk store at a kernel's end: the machine lets it finish.
    "shared": (
        "Shared State Space",
        "The shared (.shared) state space is a memory that is owned by an executing CTA and is "
        "accessible to the threads of all the CTAs within a cluster.",
    ),
    # Warps of one warpgroup with roles of their own, which all give back as many registers.
    "setmaxnreg": (
        "setmaxnreg",
        "The mandatory .aligned modifier indicates that all threads in the warpgroup must execute "
        "the same setmaxnreg instruction.",
    ),
    # Blocks of a cluster run side by side, and each waits for the other at alloc.
    "pair": (
        "tcgen05.alloc",
        "When .cta_group::2 is specified, the issuing warp must make sure that peer CTA is "
        "launched and its warps eventually participate in collective operations.",
    ),
    # An arrival whose phase nobody waits for: the thread exits.
    "cluster-wait": (
        "barrier.cluster",
        "barrier.cluster.wait instruction causes the executing thread to wait for all non-exited "
        "threads of the cluster to perform barrier.cluster.arrive.",
    ),
}


def quote(name: str) -> str:
    """The sentence as a message ends with it."""
    title, sentence = SENTENCES[name]
    return f'PTX ISA, {title}: "{sentence}"'


#: Values of an operand in the lanes that execute it.
Values = Callable[[Select, Mask], Array]


@dataclass(frozen=True, slots=True)
class Content:
    """What an operand of `opcodes` (first words) must hold.

    `read`: its values, None where it is not there, or all is known to be well; `legal`: which of
    them have a meaning; `says`: of a value that has none. `letter`: the sentence in `SENTENCES`
    that is all that speaks against it.
    """

    opcodes: tuple[str, ...]
    read: Callable[[Decoder, Instruction], Values | None]
    legal: Callable[[Array, Instruction], Bools]
    says: str
    letter: str | None = None


def _operand(
    index: int, kind: str, *, unless: str = "", where: str = ""
) -> Callable[[Decoder, Instruction], Values | None]:
    """An operand that is a number of this type; only of opcodes without the word `unless` and with
    the word `where`."""

    def read(d: Decoder, ins: Instruction) -> Values | None:
        words = ins.opcode
        if index >= d.count(ins) or unless in words or (where and where not in words):
            return None
        row = d.source(ins, index, kind)
        return lambda sel, mask: get(row, sel, mask)

    return read


def _source_size(d: Decoder, ins: Instruction) -> Values | None:
    """src-size of cp.async, if that is what stands there."""
    hint = "L2::cache_hint" in ins.opcode
    if d.count(ins) - hint < 4 or any(r.width == 1 for r in d.registers(d.operand(ins, 3))):
        return None
    most, row = d.literal(ins, 2), d.source(ins, 3, "u32")
    return lambda sel, mask: get(row, sel, mask).astype(np.int64) - (most or 0)


def _address(d: Decoder, ins: Instruction) -> Values | None:
    place = d.place(ins, 0, "global")
    return lambda sel, mask: place.at(sel, mask)


def _beyond_window(d: Decoder, ins: Instruction) -> Values | None:
    """Of a generic address that becomes one of a space: how far it is behind its window's start."""
    window = window_of(ins)
    if not window or not {"shared", "shared::cta", "shared::cluster", "local"} & {*ins.opcode}:
        return None
    row, null = d.source(ins, 1, "u64"), np.uint64(0)

    def values(sel: Select, mask: Mask) -> Array:
        value = get(row, sel, mask)
        return np.where(value == null, null, value - np.uint64(window))

    return values


def _range(d: Decoder, ins: Instruction) -> Values | None:
    primary, whole = d.source(ins, 2, "u32"), d.source(ins, 3, "u32")

    def values(sel: Select, mask: Mask) -> Array:
        return get(primary, sel, mask).astype(np.int64) - get(whole, sel, mask)

    return values


def _response(d: Decoder, ins: Instruction) -> Values | None:
    """The high half of the response to a cancellation (`launch_control.py`)."""
    _, high = d.halves(ins, d.operand(ins, 1), source=True)
    return None if high is None else lambda sel, mask: get(high, sel, mask)


_STATE = "the state {:#x} comes from no mbarrier.arrive; PTX leaves the result undefined"

#: PTX ISA 9.2: sections 9.7.9.25.3.1, 9.7.1.17, 9.7.13.15.16, 9.7.13.15.17,
#: 9.7.9.18, 9.7.9.25.4.3, 9.7.13.20.2, 9.7.9.20.
CONTENTS: tuple[Content, ...] = (
    Content(
        ("cp.async.ca", "cp.async.cg"),
        _source_size,
        lambda more, ins: more <= 0,
        "src-size is {} bytes more than cp-size; PTX leaves such a copy undefined",
    ),
    Content(
        ("fns",),
        _operand(2, "u32"),
        lambda base, ins: base <= 31,
        "the base is {}; PTX leaves the result undefined above 31",
    ),
    Content(
        ("mbarrier.test_wait", "mbarrier.try_wait"),
        _operand(2, "u32", where="parity"),
        lambda parity, ins: parity <= 1,
        "the parity is {}",
        "parity",
    ),
    Content(
        ("mbarrier.test_wait", "mbarrier.try_wait"),
        _operand(2, "u64", unless="parity"),
        lambda state, ins: state & np.uint64(LIVE) != 0,
        _STATE,
    ),
    Content(
        ("mbarrier.pending_count",),
        _operand(1, "u64"),
        lambda state, ins: state & np.uint64(LIVE) != 0,
        _STATE,
    ),
    Content(
        ("createpolicy.fractional",),
        _operand(1, "f32"),
        lambda part, ins: (part > 0) & (part <= 1),
        "the fraction is {:g}; it is to be above 0 and at most 1",
    ),
    Content(
        ("createpolicy.range",),
        _range,
        lambda more, ins: more <= 0,
        "the primary size is {} bytes more than the total size",
    ),
    Content(
        ("cp.async.bulk.prefetch.L2",),
        _operand(1, "u32"),
        lambda size, ins: size % 16 == 0,
        "the size is {} bytes; PTX leaves what is no multiple of 16 undefined",
    ),
    Content(
        ("cp.async.bulk.prefetch.L2",),
        _address,
        lambda address, ins: address % 16 == 0,
        "the address {:#x} is no multiple of 16",
    ),
    Content(
        ("clusterlaunchcontrol.query_cancel.get_first_ctaid",),
        _response,
        lambda high, ins: high & np.uint64(1) != 0,
        "the cancellation has failed, so there is no first block; ask .is_canceled before",
    ),
    Content(
        ("cvta.to",),
        _beyond_window,
        lambda distance, ins: distance < np.uint64(WINDOW),
        "the address lies outside of the window of that space",
        "window",
    ),
)


class OperandContents(Hooks):
    """Looks at the operands in the table, each execution, until one has no meaning."""

    def __init__(self, machine: Machine, program: Program) -> None:
        super().__init__(machine, program)
        self._said: set[tuple[int, int]] = set()

    @classmethod
    def concerns(cls, program: Program) -> bool:
        return any(_contents(row.name) for row, _ in program.rows())

    def wrap(self, d: Decoder, group: Sequence[Instruction], step: Step) -> Step:
        ins = group[0]
        for content in _contents(d.program.opcode(ins).name):
            values = content.read(d, ins)
            if values is not None:
                step = self._looking(d, ins, content, values, step)
        return step

    def _looking(
        self, d: Decoder, ins: Instruction, content: Content, values: Values, step: Step
    ) -> Step:
        ids, key = self.machine.lane_ids, (id(ins), id(content))

        def run(sel: Select, mask: Mask) -> None:
            if key not in self._said:
                found = values(sel, mask)
                legal = content.legal(found, ins)
                if not legal.all():
                    self._said.add(key)
                    lanes = get(ids, sel, mask)
                    index = int(np.flatnonzero(~np.broadcast_to(legal, lanes.shape))[0])
                    value = np.broadcast_to(found, lanes.shape).flat[index].item()
                    self._tell(d, ins, content, value, int(lanes.flat[index]))
            step(sel, mask)

        return run

    def _tell(
        self, d: Decoder, ins: Instruction, content: Content, value: Array, lane: int
    ) -> None:
        text = f"{ins.mnemonic}: {content.says.format(value)}"
        if content.letter is not None:
            text += f". {quote(content.letter)}"
        severity = None if content.letter is None else "letter"
        self.report(d, ins, "operand", text, lane=lane, subject=content.says, severity=severity)


def _contents(name: str) -> list[Content]:
    """Those of an opcode, by the name of its row."""
    return [c for c in CONTENTS if name.split("::")[0] in c.opcodes]


# -- sparse metadata -------------------------------------------------------------------------------
# Metadata of mma.sp and wgmma.sp that PTX leaves undefined.
#
# Two of four elements, or pairs of elements, are kept: their indices differ, and rise where the
# opcode has `sp::ordered_metadata`. One of two is kept: the indices are 0b0100 or 0b1110 (PTX ISA
# 9.2, sections 9.7.14.6.1 and 9.7.14.6.2).

_FIRST, _SECOND = np.arange(16) & 3, np.arange(16) >> 2
#: Which of the 16 values of a chunk's metadata have a meaning.
_DIFFERENT: Bools = _FIRST != _SECOND
_RISING: Bools = _FIRST < _SECOND
_ONE_OF_TWO: Bools = np.isin(np.arange(16), (0b0100, 0b1110))


class SparseMetadata(Hooks):
    def __init__(self, machine: Machine, program: Program) -> None:
        super().__init__(machine, program)
        self._said: set[int] = set()

    @classmethod
    def concerns(cls, program: Program) -> bool:
        return any(_is_sparse(words) for _, words in program.rows())

    def wrap(self, d: Decoder, group: Sequence[tree.Instruction], step: Step) -> Step:
        ins = group[0]
        if d.program.opcode(ins).bits != "matrix" or not _is_sparse(ins.opcode):
            return step
        op, row, selector = operation(d, ins), d.source(ins, 4, "u32"), d.literal(ins, 5)
        if not isinstance(op, Mma) or op.plan.metadata is None or selector is None:
            return step
        metadata = op.plan.metadata

        def run(sel: Select, mask: Mask) -> None:
            warps = np.arange(self.machine.warps)[whole_warps(sel, mask)]
            self._look(ins, ins.operands[4], metadata, selector, row[warps], warps)
            step(sel, mask)

        return run

    def on_wgmma_issue(self, item: Issue) -> None:
        metadata = item.form.op.plan.metadata
        if metadata is not None and item.meta is not None:
            words = item.meta.reshape(len(item.warps), -1)
            selector = item.form.options["selector"]
            ins = item.form.instruction
            self._look(ins, ins.operands[3], metadata, selector, words, item.warps)

    def _look(
        self,
        ins: tree.Instruction,
        operand: tree.Operand,
        metadata: Metadata,
        selector: int,
        words: U32,
        warps: npt.NDArray[np.intp],
    ) -> None:
        """`words`: `[W, lanes]` of `warps`, the first ones of warpgroups."""
        if id(ins) in self._said:
            return
        single, ordered = metadata.how.kept == 1, "sp::ordered_metadata" in ins.opcode
        legal = _ONE_OF_TWO if single else _RISING if ordered else _DIFFERENT
        lane, nibble = metadata.place(selector)
        values = words[:, lane] >> (4 * nibble).astype(np.uint32) & np.uint32(0xF)
        bad = ~legal[values]
        if not bad.any():
            return
        self._said.add(id(ins))
        which, row, chunk = (int(x) for x in np.argwhere(bad)[0])
        value, at = int(values[which, row, chunk]), int(lane[row, chunk])
        wanted = (
            "is neither 0b0100 nor 0b1110"
            if single
            else f"has the indices {value & 3} and {value >> 2}, which "
            + ("do not rise" if ordered else "are equal")
        )
        text = (
            f"the metadata of row {row}, columns {chunk * metadata.how.chunk} to "
            f"{(chunk + 1) * metadata.how.chunk - 1} is 0b{value:04b}: it {wanted}; PTX leaves the "
            "product undefined"
        )
        flat = (int(warps[which]) + at // LANES) * LANES + at % LANES
        name = operand.text if isinstance(operand, tree.Name) else ""
        self.found(self.program, ins.at, "operand", text, lane=flat, subject=name)


def _is_sparse(words: Sequence[str]) -> bool:
    return "sp" in words or "sp::ordered_metadata" in words
