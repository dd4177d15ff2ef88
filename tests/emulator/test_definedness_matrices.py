"""Undefined elements of A, B, C, metadata and scales: which elements of D depend on them.

What is expected is found without a check: elements are given other values, and what changes in D
is what depends on them. Factors are never zero and never special, so that every change shows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest

from fragir.emulator import run
from fragir.emulator.checks.definedness.definedness import Definedness
from fragir.emulator.tensor_cores import Mma, Wgmma, tensor_instruction

Array: TypeAlias = npt.NDArray[Any]
CASES, TRIALS = 8, 4

#: Opcode, target; element of A and B, and of C, as registers hold them.
FORMS = {
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32": ("sm_80", "f16", "f32"),
    "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16": ("sm_90", "f16", "f16"),
    "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32": ("sm_80", "bf16", "f32"),
    "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32": ("sm_80", "f32", "f32"),
    "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64": ("sm_80", "f64", "f64"),
    "mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32": ("sm_80", "odd8", "s32"),
    "mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32": ("sm_80", "odd4", "s32"),
    "mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.xor.popc": ("sm_80", "b1", "s32"),
    "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32": ("sm_89", "e4m3", "f32"),
    "mma.sync.aligned.m8n8k4.col.row.f32.f16.f16.f32": ("sm_70", "f16", "f32"),
    "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32": (
        *("sm_80", "f16", "f32"),
    ),
    "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32": (
        *("sm_80", "f32", "f32"),
    ),
    "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32": (
        *("sm_80", "odd8", "s32"),
    ),
    "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X"
    ".f32.e4m3.e4m3.f32.ue8m0": ("sm_120a", "e4m3", "f32"),
    "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X"
    ".f32.e2m1.e2m1.f32.ue4m3": ("sm_120a", "odd4", "f32"),
    "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32": ("sm_70", "f16", "f32"),
    "wmma.mma.sync.aligned.row.col.m8n32k16.s32.u8.u8.s32": ("sm_80", "odd8", "s32"),
}
#: Element -> its bits; of a word those that vary, and those that are ones.
ELEMENTS = {
    "f16": (16, 0x83FF83FF, 0x3C003C00),
    "bf16": (16, 0x807F807F, 0x3F803F80),
    "f32": (32, 0x807FFFFF, 0x3F800000),
    "f64": (64, 0x800FFFFFFFFFFFFF, 0x3FF0000000000000),
    "odd8": (8, 0xFEFEFEFE, 0x01010101),
    "odd4": (4, 0xEEEEEEEE, 0x11111111),
    "b1": (1, 0xFFFFFFFF, 0),
    "ones": (1, 0, 0xFFFFFFFF),
    "s32": (32, 0x0000FFFF, 0),
    "e4m3": (8, 0x87878787, 0x38383838),
    "ue8m0": (8, 0x03030303, 0x7E7E7E7E),
    "ue4m3": (8, 0x07070707, 0x38383838),
    "e": (4, 0, 0),
}


@dataclass(frozen=True)
class Operand:
    """Registers of one operand: all together they are `count` words a lane."""

    letter: str
    count: int
    width: int
    element: str
    warps: int = 1

    def values(self, rng: np.random.Generator, pairs: bool) -> Array:
        """`pairs`: metadata says which of two elements are kept, else which two of four."""
        _, varying, ones = ELEMENTS[self.element]
        shape = self.count, CASES, 32 * self.warps
        if self.element == "e":  # of metadata only some nibbles have a meaning
            legal = (0x4, 0xE) if pairs else (0x4, 0x8, 0x9, 0xC, 0xD, 0xE)
            nibbles = rng.choice(np.array(legal, np.uint64), (8, *shape))
            words = np.zeros(shape, np.uint64)
            for i in range(8):
                words |= nibbles[i] << np.uint64(4 * i)
            return words.astype(np.uint32)
        dtype = np.uint64 if self.width == 64 else np.uint32
        words = rng.integers(0, 1 << 63, shape, np.uint64) << np.uint64(1)
        words |= rng.integers(0, 2, shape, np.uint64)
        words = words if self.width == 64 else words >> np.uint64(32)
        return (words.astype(dtype) & dtype(varying)) | dtype(ones)

    def leave_out(self, rng: np.random.Generator, masks: dict[str, Array], case: int) -> None:
        """One element, of any lane."""
        bits = min(ELEMENTS[self.element][0], self.width)
        ones = ((1 << bits) - 1) << int(rng.integers(0, self.width // bits)) * bits
        at = int(rng.integers(0, self.count)), case, int(rng.integers(0, 32 * self.warps))
        masks[self.letter][at] &= ~masks[self.letter].dtype.type(ones)


def operands(opcode: str, op: Mma, element: str, accumulator: str) -> list[Operand]:
    found = [
        Operand("a", op.a.count, op.a.width, element),
        Operand("b", op.b.count, op.b.width, element),
        Operand("c", op.c.count, op.c.width, accumulator),
    ]
    if op.e is not None:
        found.append(Operand("e", 1, 32, "e"))
    if op.scales:
        scale = opcode.rpartition(".")[2]
        found += [Operand("sfa", 1, 32, scale), Operand("sfb", 1, 32, scale)]
    return found


def loaded(operand: Operand) -> tuple[list[str], list[str]]:
    """Statements, and the registers that they load.

    Those bits that a mask leaves out are of a register that is never written.
    """
    w, lanes = operand.width, CASES * 32 * operand.warps
    names = [f"%{operand.letter}{i}" for i in range(operand.count)]
    lines = [f".reg .b{w} %{operand.letter}<{operand.count}>;"]
    lines.append(f"ld.param.u64 %p, [{operand.letter}]; ld.param.u64 %q, [m{operand.letter}];")
    lines.append(f"mad.wide.u32 %p, %t, {w // 8}, %p; mad.wide.u32 %q, %t, {w // 8}, %q;")
    for i, name in enumerate(names):
        at = i * lanes * w // 8
        lines.append(f"ld.global.b{w} {name}, [%p+{at}]; ld.global.b{w} %m{w}, [%q+{at}];")
        lines.append(f"and.b{w} {name}, {name}, %m{w}; not.b{w} %m{w}, %m{w};")
        lines.append(f"and.b{w} %m{w}, %m{w}, %never{w}; or.b{w} {name}, {name}, %m{w};")
    return lines, names


def framed(target: str, names: list[str], lines: list[str]) -> str:
    """A kernel with a mask for each of its parameters `names`."""
    parameters = ", ".join(f".param .u64 {x}, .param .u64 m{x}" for x in names)
    version = "8.8" if target == "sm_120a" else "8.5"
    return (
        f".version {version}\n.target {target}\n.address_size 64\n"
        f".visible .entry k({parameters}, .param .u64 out)\n{{ .reg .b64 %p, %q, %m64, %never64;\n"
        ".reg .b32 %t, %m32, %never32; .reg .pred %no, %some;\n"
        "mov.u32 %t, %ntid.x; mov.u32 %m32, %ctaid.x; mul.lo.u32 %m32, %m32, %t;\n"
        "mov.u32 %t, %tid.x; add.u32 %t, %t, %m32; setp.ge.u32 %no, %t, 0;\n"
        + "\n".join(lines)
        + "\nret; }\n"
    )


def stored(op: Mma | Wgmma, lanes: int) -> list[str]:
    w = op.d.width
    lines = [f"ld.param.u64 %p, [out]; mad.wide.u32 %p, %t, {w // 8}, %p;"]
    return lines + [f"st.global.b{w} [%p+{i * lanes * w // 8}], %d{i};" for i in range(op.d.count)]


def kernel(opcode: str, target: str, op: Mma, each: list[Operand]) -> str:
    lines: list[str] = []
    vectors: dict[str, str] = {}
    for operand in each:
        more, names = loaded(operand)
        lines += more
        one = operand.count == 1 and (operand.letter not in "abc" or opcode.startswith("mma.sync"))
        vectors[operand.letter] = names[0] if one else "{" + ", ".join(names) + "}"
    names = [f"%d{i}" for i in range(op.d.count)]
    lines.append(f".reg .b{op.d.width} %d<{op.d.count}>;")
    rest = "".join(f", {vectors[x]}, 0" if x == "e" else "" for x in vectors)
    rest += "".join(f", {vectors[x]}, {{0, 0}}" for x in vectors if x.startswith("sf"))
    listed = ", ".join(vectors[x] for x in "abc")
    lines.append(f"{opcode} {{{', '.join(names)}}}, {listed}{rest};")
    return framed(target, [o.letter for o in each], lines + stored(op, CASES * 32))


class Trial:
    """A kernel, its operands and masks: what changes, and what the check calls undefined."""

    def __init__(self, text: str, op: Mma | Wgmma, warps: int, values: dict[str, Array]) -> None:
        self.text, self.op, self.warps, self.values = text, op, warps, values
        self.masks = {x: ~np.zeros_like(v) for x, v in values.items()}

    def result(self, data: dict[str, Array], kept: dict[str, Array], **options: Any) -> Array:
        op, grid = self.op, 1 if self.warps == 1 else CASES
        out = np.zeros((op.d.count, CASES, 32 * self.warps), op.d.dtype)
        arguments = [array for x in data for array in (data[x].copy(), kept[x])]
        block = 32 * self.warps * CASES // grid
        run(self.text, grid=(grid,), block=(block,), arguments=[*arguments, out], **options)
        return out

    def changed(self, others: Iterable[dict[str, Array]]) -> Array:
        everything = {x: ~np.zeros_like(m) for x, m in self.masks.items()}
        first = self.result(self.values, everything)
        found = np.zeros_like(first)
        for other in others:
            mixed = {
                x: (v & self.masks[x]) | (other[x] & ~self.masks[x]) for x, v in self.values.items()
            }
            found |= first ^ self.result(mixed, everything)
        return found

    def undefined(self) -> Array:
        made: list[Definedness] = []

        def check(machine: Any, program: Any) -> Definedness:
            made.append(Definedness(machine, program))
            return made[0]

        self.result(self.values, self.masks, checks=[check])
        (definedness,) = made
        code = [p.ins for p in definedness.program.code]
        (ins,) = (i for i in code if i.opcode[:2] != ("wgmma", "fence") and i.opcode[0] in PRODUCTS
                  and len(i.operands) > 3)  # fmt: skip
        rows = [definedness.plane.row(r) for r in definedness.flow.of(ins).written]
        return np.stack([row.reshape(CASES, -1) for row in rows])

    def compare(self, changed: Array, part: Any) -> None:
        found = self.undefined()
        assert ((found.view(part) != 0) == (changed.view(part) != 0)).all()
        assert set(found.view(part).ravel().tolist()) <= {0, np.iinfo(part).max}
        assert (changed == 0).any(axis=(0, 2)).all()
        assert (changed != 0).any(axis=(0, 2)).sum() >= CASES // 2


@pytest.mark.parametrize("opcode", FORMS)
def test_what_depends_on_undefined_elements_is_undefined(opcode: str) -> None:
    target, element, accumulator = FORMS[opcode]
    op = tensor_instruction(tuple(opcode.split(".")), target)
    assert isinstance(op, Mma)
    rng = np.random.default_rng(len(opcode))
    each = operands(opcode, op, element, accumulator)
    ordered = "tf32" in opcode
    text = kernel(opcode, target, op, each)
    trial = Trial(text, op, 1, {o.letter: o.values(rng, ordered) for o in each})
    for case in range(CASES):  # one element of each operand in turn, then of two
        for number in (case, case * 3 + 1) if case >= len(each) else (case,):
            each[number % len(each)].leave_out(rng, trial.masks, case)
    changed = trial.changed(others(rng, each, trial.values, ordered))
    trial.compare(changed, np.uint16 if accumulator == "f16" else op.d.dtype)


def others(
    rng: np.random.Generator, each: list[Operand], values: dict[str, Array], ordered: bool
) -> Iterable[dict[str, Array]]:
    """Other values for all operands."""
    for trial in range(TRIALS):
        given = {o.letter: o.values(rng, ordered) for o in each}
        if trial == 0:  # one of two values may come again
            given |= {o.letter: ~values[o.letter] for o in each if o.element in ("b1", "ones")}
        yield given


#: Of wgmma with N = 8: the element, the accumulator, whether A is in registers, transposes.
GROUPS = {
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16": ("f16", "f32", False, ", 0, 0"),
    "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 ": ("f16", "f16", True, ", 0"),
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16": ("bf16", "f32", False, ", 1, 1"),
    "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32": ("f32", "f32", True, ""),
    "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3": ("e4m3", "f32", False, ""),
    "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.u8": ("odd8", "s32", True, ""),
    "wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc": ("ones", "s32", False, ""),
    "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16": ("f16", "f32", False, ", 0, 0"),
    "wgmma.mma_async.sp.sync.aligned.m64n8k64.s32.u8.u8": ("odd8", "s32", True, ""),
}
PRODUCTS = ("mma", "wmma", "wgmma")


@pytest.mark.parametrize("form", GROUPS)
def test_what_depends_on_undefined_elements_of_a_warpgroup(form: str) -> None:
    element, accumulator, held, transposes = GROUPS[form]
    opcode = form.strip()
    op = tensor_instruction(tuple(opcode.split(".")), "sm_90a")
    assert isinstance(op, Wgmma)
    rng, sparse = np.random.default_rng(len(form)), ".sp." in opcode
    integer = accumulator == "s32"
    each = [Operand("c", op.d.count, 32, accumulator, 4)]
    each += [Operand("a", 4, 32, element, 4)] * held + [Operand("e", 1, 32, "e", 4)] * sparse
    # Shared memory is one operand more: a word a thread and row, A first, then B.
    size = 0 if held else 2048
    rows = -(-(size + 256 * (1 + sparse)) // 512)
    shared = Operand("s", rows, 32, element, 4)
    lines = [".shared .align 1024 .b8 buffer[4096]; .reg .b32 %at; .reg .b64 %da, %db;"]
    names: dict[str, list[str]] = {}
    for operand in (*each, shared):
        more, names[operand.letter] = loaded(operand)
        lines += more
    lines += ["mov.u32 %m32, %tid.x; mov.u32 %at, buffer; mad.lo.u32 %at, %m32, 4, %at;"]
    lines += [f"st.shared.b32 [%at+{512 * i}], {name};" for i, name in enumerate(names["s"])]
    lines += ["fence.proxy.async; bar.sync 0; mov.u32 %at, buffer; shr.u32 %at, %at, 4;"]
    # Core matrices: 128 bytes apart along K, and all of K along M and N.
    lines += ["cvt.u64.u32 %da, %at; or.b64 %da, %da, 0x1000080000;"]
    fields = size // 16 + (0x2000080000 if sparse else 0x1000080000)
    lines += [f"cvt.u64.u32 %db, %at; add.u64 %db, %db, {fields};"]
    d = [f"%d{i}" for i in range(op.d.count)]
    lines += [f".reg .b32 %d<{op.d.count}>;"]
    lines += [f"mov.b32 {x}, {y};" for x, y in zip(d, names["c"], strict=True)]
    a = "{" + ", ".join(names["a"]) + "}" if held else "%da"
    meta = ", %e0, 0" if sparse else ""
    scales = "" if integer else ", 1, 1"
    rest = f"{meta}, 1{scales}{transposes};"
    lines += [f"wgmma.fence.sync.aligned; {opcode} {{{', '.join(d)}}}, {a}, %db{rest}"]
    lines += ["wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"]
    every = [*each, shared]
    text = framed("sm_90a", [o.letter for o in every], lines + stored(op, CASES * 128))
    trial = Trial(text, op, 4, {o.letter: o.values(rng, False) for o in every})
    for case in range(CASES):
        every[case % len(every)].leave_out(rng, trial.masks, case)
    changed = trial.changed(others(rng, every, trial.values, False))
    trial.compare(changed, np.uint16 if accumulator == "f16" else np.uint32)


#: Columns 4 to 7 of B, in shared memory, are those behind a tile's residue: nobody writes them.
RESIDUE = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out) {
 .reg .b64 %rd<4>; .reg .b32 %r<20>; .reg .f32 %f<9>; .reg .pred %p<5>;
 .shared .align 16 .b8 s[256]; .shared .b32 t[32];
 ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, s; mov.u32 %r3, 0x3C003C00;
 shl.b32 %r4, %r1, 4; add.u32 %r4, %r4, %r2; and.b32 %r6, %r1, 7; and.b32 %r5, %r1, 3;
 setp.lt.u32 %p1, %r6, 4; setp.lt.and.u32 %p1, %r1, 16, %p1;
 @%p1 st.shared.v4.u32 [%r4], {%r3, %r3, %r3, %r3};
 bar.sync 0;
 and.b32 %r8, %r1, 15; shl.b32 %r8, %r8, 4; add.u32 %r8, %r8, %r2;
 ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r10, %r11}, [%r8];
 mov.f32 %f1, 0f00000000;
 mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
  {%f2, %f3, %f4, %f5}, {%r3, %r3, %r3, %r3}, {%r10, %r11}, {%f1, %f1, %f1, %f1};
 shl.b32 %r9, %r1, 2; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;
 mov.u32 %r12, t; add.u32 %r12, %r12, %r9;
"""
#: What is done with D; True where the columns behind the residue are used.
USES = {
    "setp.lt.u32 %p2, %r5, 2; @%p2 st.global.f32 [%rd1], %f2;": False,
    "setp.lt.u32 %p2, %r5, 3; @%p2 st.global.f32 [%rd1], %f2;": True,
    # A row's sum by shuffles has all columns.
    "shfl.sync.bfly.b32 %f6, %f2, 1, 31, -1; setp.lt.u32 %p2, %r5, 2; "
    "@%p2 st.global.f32 [%rd1], %f6;": False,
    "shfl.sync.bfly.b32 %f6, %f2, 2, 31, -1; setp.lt.u32 %p2, %r5, 2; "
    "@%p2 st.global.f32 [%rd1], %f6;": True,
    # Through shared memory, and through another product as a row of A.
    "st.shared.f32 [%r12], %f2; bar.sync 0; ld.shared.f32 %f6, [%r12]; "
    "setp.lt.u32 %p2, %r5, 2; @%p2 st.global.f32 [%rd1], %f6;": False,
    "st.shared.f32 [%r12], %f2; bar.sync 0; ld.shared.f32 %f6, [%r12]; "
    "st.global.f32 [%rd1], %f6;": True,
    "cvt.rn.f16x2.f32 %r13, %f3, %f2; "
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f6, %f7, %f8, %f1}, "
    "{%r13, %r3, %r3, %r3}, {%r3, %r3}, {%f1, %f1, %f1, %f1}; st.global.f32 [%rd1], %f8;": False,
    "cvt.rn.f16x2.f32 %r13, %f3, %f2; "
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f6, %f7, %f8, %f1}, "
    "{%r13, %r3, %r3, %r3}, {%r3, %r3}, {%f1, %f1, %f1, %f1}; st.global.f32 [%rd1], %f6;": True,
    # A branch that only chooses a value, and one that does more.
    "setp.eq.f32 %p3, %f2, 0f00000000; mov.f32 %f6, %f1; @%p3 bra L; rcp.approx.f32 %f6, %f2; L: "
    "setp.lt.u32 %p2, %r5, 2; @%p2 st.global.f32 [%rd1], %f6;": False,
    "setp.eq.f32 %p3, %f2, 0f00000000; mov.f32 %f6, %f1; @%p3 bra L; rcp.approx.f32 %f6, %f2; L: "
    "st.global.f32 [%rd1], %f6;": True,
    "setp.eq.f32 %p3, %f2, 0f00000000; mov.f32 %f6, %f1; @%p3 bra L; mov.f32 %f6, %f2; bra M; "
    "L: neg.f32 %f6, %f2; M: setp.lt.u32 %p2, %r5, 2; @%p2 st.global.f32 [%rd1], %f6;": False,
    "setp.eq.f32 %p3, %f2, 0f00000000; mov.f32 %f6, %f1; @%p3 mov.f32 %f6, %f2; "
    "st.global.f32 [%rd1], %f6;": True,
    "setp.eq.f32 %p3, %f2, 0f00000000; mov.f32 %f6, %f1; @%p3 mov.f32 %f6, %f2; "
    "setp.lt.u32 %p2, %r5, 2; @%p2 st.global.f32 [%rd1], %f6;": False,
    "setp.eq.f32 %p3, %f2, 0f00000000; @%p3 bra L; st.global.f32 [%rd1], %f1; L:": True,
    "cvt.rzi.u32.f32 %r13, %f2; mul.wide.u32 %rd2, %r13, 0; add.u64 %rd2, %rd1, %rd2; "
    "st.global.f32 [%rd2], %f1;": True,
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("schedule", [None, 5])
def test_what_is_done_with_undefined_columns(use: str, schedule: int | None) -> None:
    text = RESIDUE + use + "\nret; }\n"
    line = next(i for i, each in enumerate(text.splitlines(), 1) if each.startswith(" mma."))
    report = run(text, arguments=[np.zeros(64, np.float32)], check=True, schedule=schedule)
    found = [f for f in report.findings if f.severity == "error"]
    assert bool(found) == USES[use]
    for finding in found:
        assert (finding.kind, finding.line, finding.subject) == ("uninitialised", line, "%r10")
        start = "%r10 is not initialised in 16 lanes; it is an operand of mma, and what comes of it"
        assert finding.message.startswith(start)
        assert f" at line {line + 4}" in finding.message
    assert len(found) <= 1  # one cause, one finding
