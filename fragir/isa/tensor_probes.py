"""Probe kernels of `tcgen05.mma`: what `fragir.isa.emit` writes for them.

A block of 128 threads is a case; with two CTAs, a cluster of two blocks. What lies in tensor memory
(D, which is added to, A, metadata, scale factors) is passed as an image of 32-bit words: lane by
lane, a lane's columns in order, thread t having lane t. A and B in shared memory are images of
K-major matrices without swizzle, 8 rows of 16 bytes next to each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from fragir.isa.canonical import CanonicalLayout
from fragir.isa.descriptors import instruction_descriptor
from fragir.isa.model import Instruction, Operand, Registers
from fragir.isa.probe_texts import PLACE, copy_in, declared, descriptor, moved, vector
from fragir.isa.target_rows import BLACKWELL_SERVER
from fragir.isa.tensor_mma import product_of
from fragir.isa.tensor_products import KINDS

THREADS = 128
#: Columns of D, and rows of a block's part of it: legal in every kind and form.
N, ROWS = 64, 128
#: Operand -> its first column in tensor memory, and how many an image has.
COLUMNS: dict[str, tuple[int, int]] = {
    "d": (0, N),
    "a": (256, 8),
    "e": (272, 4),
    "sfa": (288, 4),
    "sfb": (304, 4),
    "table": (320, 16),
}
_ALLOCATED = 512
_CORE = 128  # bytes of 8 rows of 16
_STEP = 32  # bytes of K of a row of A


class ProbedProduct(NamedTuple):
    """What a probe multiplies: M and N of all CTAs, types, the instruction descriptor."""

    m: int
    n: int
    a: str
    d: str
    scale: str
    descriptor: int


def probed(instruction: Instruction) -> ProbedProduct:
    """The product of a probe: the first type of the kind, the widest type of D."""
    kind, group, ws, sparse = product_of(instruction.form)
    found = KINDS[kind]
    a, d, scale = next(iter(found.types)), found.results[-1], ""
    if found.scales:
        fours = instruction.form.flags & {"scale_vec::4X", "block16"}
        scale = found.scales[max(found.scales) if fours else min(found.scales)][-1]
    m = ROWS * group
    word = instruction_descriptor(
        kind, m=m, n=N, a=a, d=d, scale=scale, cta_group=group, ws=ws, sparse=int(sparse)
    )
    return ProbedProduct(m, N, a, d, scale, word)


def image_words(operand: Operand) -> int:
    """Columns of an operand in tensor memory: words of a thread."""
    return COLUMNS[operand.name][1]


def image_bytes(instruction: Instruction, operand: str) -> int:
    """Bytes of a block's part of A or B in shared memory."""
    _, group, _, sparse = product_of(instruction.form)
    return ROWS * _STEP if operand == "a-shared" else N // group * _STEP * (2 if sparse else 1)


def body(instruction: Instruction, a: str, name: str, names: tuple[str, ...]) -> Iterator[str]:
    """The statements of a probe, after the declarations of `emit`."""
    _, group, _, _ = product_of(instruction.form)
    held = [_image(instruction.operands[n]) for n in names if n in COLUMNS]
    shared = [n for n in names if n in ("a-shared", "b")]
    yield ".reg .pred %first, %issues;"
    yield ".reg .b32 %memory, %lane, %idesc;"
    yield f".shared .align 8 .b64 {name}_done;"
    yield f".shared .align 4 .b32 {name}_allocated;"
    for operand in held:
        yield declared(operand)
        yield f".reg .b32 %at_{operand.name};"
    yield from PLACE
    yield "setp.lt.u32 %first, %thread, 32;"
    yield "setp.eq.u32 %issues, %thread, 0;"
    yield f"@%issues mbarrier.init.shared::cta.b64 [{name}_done], 1;"
    yield "fence.mbarrier_init.release.cluster;"
    yield (
        f"@%first tcgen05.alloc.cta_group::{group}.sync.aligned.shared::cta.b32 "
        f"[{name}_allocated], {_ALLOCATED};"
    )
    yield f"@%first tcgen05.relinquish_alloc_permit.cta_group::{group}.sync.aligned;"
    for operand in shared:
        word, size = operand.replace("-", "_"), image_bytes(instruction, operand)
        yield f".shared .align 128 .b8 {name}_{word}_image[{size}];"
        yield f".reg .b64 %{word};"
        yield from copy_in(operand, name, size, THREADS)
        row_bytes = size // ROWS if operand == "a-shared" else size // (N // group)
        cores = CanonicalLayout("k", 0, 1, _CORE, row_bytes // 16 * _CORE)
        yield from descriptor(word, name, cores, BLACKWELL_SERVER[0])
    yield "bar.sync 0;"
    yield f"ld.shared.b32 %memory, [{name}_allocated];"
    yield "and.b32 %lane, %thread, 96;"  # a warp reaches its own 32 lanes
    yield "shl.b32 %lane, %lane, 16;"
    yield "add.u32 %lane, %lane, %memory;"
    for operand in held:
        yield from moved(operand, name, "ld")
        yield f"tcgen05.st.{_access(operand)} {_place(operand)}, {vector(operand)};"
        yield f"add.u32 %at_{operand.name}, %memory, {COLUMNS[operand.name][0]};"
    yield "tcgen05.wait::st.sync.aligned;"
    yield "fence.proxy.async;"
    yield from _meeting(group)
    yield f"mov.b32 %idesc, {probed(instruction).descriptor:#x};"
    yield from _issue(instruction, a, name, group)
    yield f"{name}_waiting:"
    yield f"mbarrier.try_wait.parity.shared::cta.b64 %p, [{name}_done], 0;"
    yield f"@!%p bra {name}_waiting;"
    yield "tcgen05.fence::after_thread_sync;"
    result = held[[operand.name for operand in held].index("d")]
    yield f"tcgen05.ld.{_access(result)} {vector(result)}, {_place(result)};"
    yield "tcgen05.wait::ld.sync.aligned;"
    yield from moved(result, name, "st")
    yield from _meeting(group)
    yield (f"@%first tcgen05.dealloc.cta_group::{group}.sync.aligned.b32 %memory, {_ALLOCATED};")


def _issue(instruction: Instruction, a: str, name: str, group: int) -> Iterator[str]:
    """One thread, of the first block of a pair, multiplies and commits for all."""
    arrives = f"tcgen05.commit.cta_group::{group}.mbarrier::arrive::one.shared::cluster"
    yield f"mov.u32 %at, {name}_done;"
    if group == 1:
        yield f"@%issues {_statement(instruction, a)}"
        yield f"@%issues {arrives}.b64 [%at];"
        return
    yield ".reg .b16 %pair;"
    yield "mov.b16 %pair, 3;"
    yield "mov.u32 %word, %cluster_ctarank;"
    yield "setp.eq.and.u32 %issues, %word, 0, %issues;"
    yield f"@%issues {_statement(instruction, a)}"
    yield f"@%issues {arrives}.multicast::cluster.b64 [%at], %pair;"


def _statement(instruction: Instruction, a: str) -> str:
    return f"{instruction.mnemonic} {', '.join(operands_of(instruction, a))};"


def _meeting(group: int) -> Iterator[str]:
    """All threads of the product come together."""
    yield "tcgen05.fence::before_thread_sync;"
    if group == 1:
        yield "bar.sync 0;"
    else:
        yield "barrier.cluster.arrive.release.aligned;"
        yield "barrier.cluster.wait.acquire.aligned;"
    yield "tcgen05.fence::after_thread_sync;"


def _image(operand: Operand) -> Operand:
    """What a thread holds of an operand in tensor memory."""
    return replace(operand, registers=Registers(image_words(operand), "b32"))


def _access(operand: Operand) -> str:
    return f"sync.aligned.32x32b.x{operand.registers.count}.b32"


def _place(operand: Operand) -> str:
    return f"[%lane+{COLUMNS[operand.name][0]}]"


def operands_of(instruction: Instruction, a: str) -> list[str]:
    """The operands of the statement, on registers named after them: %at_d, %b, %idesc, ..."""
    names = instruction.operands
    addresses = {n: [f"[%at_{n}]"] if n in names else [] for n in COLUMNS}
    return [
        *addresses["d"],
        *(["%a_shared"] if a == "descriptor" else addresses["a"]),
        "%b",
        *addresses["table"],
        *addresses["e"],
        "%idesc",
        *addresses["sfa"],
        *addresses["sfb"],
        "1",
    ]
