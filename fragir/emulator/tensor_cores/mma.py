"""mma.sync and mma.sp: fragments in registers to fragments in registers; which there are.

Shapes and targets: PTX ISA 9.7.14.5.14 and 9.7.14.6.3, checked against ptxas 13.2 where the two
differ (docs/arithmetic.md lists the differences).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import numpy as np

from fragir.emulator.native.threads import pieces, side_by_side
from fragir.emulator.numbers.types import U32
from fragir.emulator.tensor_cores.arithmetic import (
    Architecture,
    Fused,
    TargetName,
    fused_parameters,
)
from fragir.emulator.tensor_cores.compute import (
    Compute,
    Double,
    ElementPlace,
    EmulatedFp8,
    FusedMma,
    IntegerProducts,
    ScaleCodes,
    Scaled,
    ScaledGroups,
    SoftwareM8N8K4,
)
from fragir.emulator.tensor_cores.forms import (
    BITS,
    Forms,
    Mnemonic,
    OperandRegisters,
    RegisterWords,
    Settings,
    TensorOp,
)
from fragir.emulator.tensor_cores.maps import (
    Codes,
    Fragment,
    Ints,
    Metadata,
    formula,
    fragment,
    granularity,
    packed_column,
)
from fragir.errors import FragirError

# Products computed at once: large enough to hide numpy's overhead, small enough for the cache.
_CHUNK = 1 << 19
# Instances that a thread gets at least: with fewer, threads wait for Python's lock.
SHARED = 128


@dataclass(frozen=True, slots=True)
class MmaPlan:
    """What `Mma.execute` needs besides the arrays.

    Fragments load A as `[k, (product,) m, W]`, B as `[k, (product,) n, W]`, C and D as
    `[(product,) m, n, W]`; `product` only in m8n8k4 of f16, which computes four.
    """

    a: Fragment
    b: Fragment
    c: Fragment
    d: Fragment
    compute: Compute
    metadata: Metadata | None = None
    scale_blocks: int = 0


@dataclass(frozen=True, slots=True)
class Mma(TensorOp):
    """`mma... d, a, b, c[, e, f][, sfa, {byte, thread}, sfb, {byte, thread}]`.

    PTX ISA 9.7.14.5.14 and 9.7.14.6.3. `a`, `b`, `c`, `d`: the register operands. `e`: the metadata
    register of a sparse instruction, else None. `selectors`: the values that its immediate `f` may
    have (empty where dense). `scales`: true where the statement carries sfa and sfb with their
    selectors.
    """

    a: OperandRegisters
    b: OperandRegisters
    c: OperandRegisters
    d: OperandRegisters
    plan: MmaPlan = field(repr=False, compare=False)
    e: OperandRegisters | None = None
    selectors: tuple[int, ...] = ()
    scales: bool = False

    def execute(
        self,
        a: RegisterWords,
        b: RegisterWords,
        c: RegisterWords,
        *,
        e: U32 | None = None,
        selector: int = 0,
        sfa: U32 | None = None,
        select_a: tuple[int, int] = (0, 0),
        sfb: U32 | None = None,
        select_b: tuple[int, int] = (0, 0),
        jobs: int = 1,
    ) -> RegisterWords:
        """D = A*B + C for W warps, or for W independent instructions.

        `a`, `b`, `c`: `[count, W, 32]` with the operand's count; returns `[d.count, W, 32]`. `e`,
        `sfa`, `sfb`: `[1, W, 32]`, where the instruction has them; `select_a` and `select_b` are
        the immediates `{byte-id, thread-id}`. `jobs`: threads that may share the work. Raises
        FragirError for a selector out of range.
        """
        plan = self.plan
        if jobs > 1 and len(parts := pieces(a.shape[1], jobs, SHARED)) > 1:

            def share(part: slice) -> RegisterWords:
                options = {"e": e, "sfa": sfa, "sfb": sfb}
                given: Any = {k: None if x is None else x[:, part] for k, x in options.items()}
                given |= {"selector": selector, "select_a": select_a, "select_b": select_b}
                return self.execute(a[:, part], b[:, part], c[:, part], **given)

            shares = side_by_side(jobs, [partial(share, part) for part in parts])
            return np.concatenate(shares, axis=1)
        left, right, addend = plan.a.load(a), plan.b.load(b), plan.c.load(c)
        kept: Ints | None = None
        if plan.metadata is not None:
            if e is None or selector not in self.selectors:
                raise FragirError(
                    f"{self.mnemonic}: sparsity selector {selector} is not one of {self.selectors}"
                )
            kept = plan.metadata.columns(e[0], selector)
        scales: ScaleCodes | None = None
        if plan.scale_blocks:
            if sfa is None or sfb is None:
                raise FragirError(f"{self.mnemonic}: the scale operands are missing")
            scales = ScaleCodes(
                self._scale(sfa[0], plan.scale_blocks, select_a, rows=True),
                self._scale(sfb[0], plan.scale_blocks, select_b, rows=False),
            )
        warps = a.shape[1]
        depth = right.shape[0] if kept is None else left.shape[0]
        chunk = max(1, _CHUNK // (depth * max(1, addend.size // max(1, warps))))
        if warps <= chunk:
            return plan.d.store(plan.compute(left, right, addend, kept, scales))
        results: list[Codes] = []
        for start in range(0, warps, chunk):
            part = slice(start, start + chunk)
            results.append(
                plan.compute(
                    left[..., part],
                    right[..., part],
                    np.ascontiguousarray(addend[..., part]),
                    None if kept is None else kept[..., part],
                    None if scales is None else scales[part],
                )
            )
        return plan.d.store(cast(Codes, np.concatenate(cast(list[Any], results), axis=-1)))

    def check_scales(self, select: tuple[int, int], *, rows: bool) -> None:
        """FragirError for scale selectors `{byte-id, thread-id}` that are not legal."""
        byte, thread = select
        bytes_ = range(0, 4, self.plan.scale_blocks)
        if byte not in bytes_ or thread not in range(2 if rows else 4):
            raise FragirError(f"{self.mnemonic}: scale selector {{{byte}, {thread}}} is not legal")

    def scale_codes(self, words: U32, select: tuple[int, int], *, left: bool) -> Codes:
        """The scales in words `[W, 32]` by the selectors: `[rows or columns, blocks, W]`."""
        return self._scale(words, self.plan.scale_blocks, select, rows=left)

    def _scale(self, words: U32, blocks: int, select: tuple[int, int], *, rows: bool) -> Codes:
        """Scale codes `[rows or columns, blocks, W]`: block b of K uses byte `byte + b`."""
        self.check_scales(select, rows=rows)
        byte, thread = select
        found = words[:, scale_lanes(thread, rows=rows)].T  # [rows or columns, W]
        parts = [found >> np.uint32(8 * (byte + b)) & np.uint32(0xFF) for b in range(blocks)]
        return np.stack(parts, 1)


def scale_lanes(thread: int, *, rows: bool) -> Ints:
    """The lane that holds the scales of each row or column (PTX ISA 9.7.14.3).

    Rows: of each quad the lanes 2*thread and 2*thread+1 hold rows g and g+8. Columns: lane
    `thread` of each quad holds column g.
    """
    quads = 4 * np.arange(8)
    if rows:
        return np.concatenate([quads + 2 * thread, quads + 2 * thread + 1])
    return quads + thread


# -- forms -----------------------------------------------------------------------------------------

FORMS = Forms(
    "kind part product shape results target scale",
    # ptxas also takes kind::f8f6f4 of fp8 on sm_100a and its kin, and m16n8k16, which the ISA does
    # not list.
    """
    -         dense   f16        m8n8k4                    f32.f32|f16.f16|f32.f16  sm_70    -
    -         dense   f16        m16n8k8                   f32.f32|f16.f16          sm_75    -
    -         dense   f16        m16n8k16                  f32.f32|f16.f16          sm_80    -
    -         dense   bf16       m16n8k8|m16n8k16          f32.f32                  sm_80    -
    -         dense   tf32       m16n8k4|m16n8k8           f32.f32                  sm_80    -
    -         dense   f64        m8n8k4                    f64.f64                  sm_80    -
    -         dense   f64        m16n8k4|m16n8k8|m16n8k16  f64.f64                  sm_90    -
    -         dense   s8|u8      m8n8k16                   s32.s32                  sm_75    -
    -         dense   s8|u8      m16n8k16|m16n8k32         s32.s32                  sm_80    -
    -         dense   s4|u4      m8n8k32                   s32.s32                  sm_75    -
    -         dense   s4|u4      m16n8k32|m16n8k64         s32.s32                  sm_80    -
    -         dense   b1         m8n8k128                  s32.s32                  sm_75    -
    -         dense   b1         m16n8k128|m16n8k256       s32.s32                  sm_80    -
    -         dense   e4m3|e5m2  m16n8k16|m16n8k32         f32.f32|f16.f16          sm_89    -
    -         sparse  f16        m16n8k16|m16n8k32         f32.f32|f16.f16          sm_80    -
    -         sparse  bf16       m16n8k16|m16n8k32         f32.f32                  sm_80    -
    -         sparse  tf32       m16n8k8|m16n8k16          f32.f32                  sm_80    -
    -         sparse  s8|u8      m16n8k32|m16n8k64         s32.s32                  sm_80    -
    -         sparse  s4|u4      m16n8k64|m16n8k128        s32.s32                  sm_80    -
    -         sparse  e4m3|e5m2  m16n8k64                  f32.f32|f16.f16          sm_89    -
    f8f6f4    dense   F8F6F4     m16n8k16|m16n8k32         f32.f32|f16.f16          sm_120f  -
    f8f6f4    dense   e4m3|e5m2  m16n8k16|m16n8k32         f32.f32|f16.f16          sm_100f  -
    f8f6f4    sparse  F8F6F4     m16n8k64                  f32.f32|f16.f16          sm_120f  -
    f8f6f4    sparse  e4m3|e5m2  m16n8k64                  f32.f32                  sm_100f  -
    mxf8f6f4  dense   F8F6F4     m16n8k32   f32.f32  sm_120f  1X.ue8m0
    mxf8f6f4  sparse  F8F6F4     m16n8k64   f32.f32  sm_120f  1X.ue8m0
    mxf4      dense   e2m1       m16n8k64   f32.f32  sm_120f  2X.ue8m0
    mxf4      sparse  e2m1       m16n8k128  f32.f32  sm_120a  2X.ue8m0
    mxf4nvf4  dense   e2m1       m16n8k64   f32.f32  sm_120f  2X.ue8m0|4X.ue8m0|4X.ue4m3
    mxf4nvf4  sparse  e2m1       m16n8k128  f32.f32  sm_120a  2X.ue8m0|4X.ue8m0|4X.ue4m3
    """.replace("F8F6F4", "e4m3|e5m2|e3m2|e2m3|e2m1"),
    """
    => kind ! there is no kind::{kind}
    kind:- => product ! there is no product of {a} and {b}
    kind:- !sp => part shape ! mma of {a} has no shape {shape}
    kind:- sp => part shape ! sparse mma of {a} has no shape {shape}
    kind:- sp a:e4m3|a:e5m2 d:f16 => ordered sm_120f\
        ! f16 results need sp::ordered_metadata and sm_120a
    kind:- => results ! products of {a} are not added to C of {c} giving D of {d}
    kind:- => target ! target {target} does not have it ! it needs {least}
    kind:- a:b1 and => sm_80 ! target {target} does not have it ! .and needs sm_80
    kind:f8f6f4 => part product shape results ! kind::f8f6f4 has no such form
    !kind:- => part shape results ! kind::{kind} has no such shape or accumulator
    !kind:- => product ! kind::{kind} does not multiply {a} and {b}
    !kind:- !kind:f8f6f4 => scale ! block_scale, scale_vec and the scale type do not fit the kind
    !kind:- => target ! target {target} does not have it ! it needs sm_120a
    kind:f8f6f4 shape:m16n8k16 => a:e4m3|a:e5m2 b:e4m3|b:e5m2 ! m16n8k16 is for e4m3 and e5m2
    !kind:- sp => ordered ! sparse forms with a .kind need sp::ordered_metadata
    => layout:row.col|shape:m8n8k4 layout:row.col|a:f16 ! this shape exists only as .row.col
    satfinite => d:s32 ! .satfinite is for s32 results only
    """,
)


def build_mma(words: Mnemonic, target: TargetName, settings: Settings) -> Mma:
    """Raises FragirError where PTX has no such instruction or the target does not run it."""
    d, a, b, c, scale = (*words.types, "")[:5]
    vector = words.vector or {"mxf8f6f4": "1X", "mxf4": "2X"}.get(words.kind, "")
    form = FORMS.find(
        words,
        target,
        part="sparse" if "sp" in words.flags else "dense",
        product=f"{a} {b}",
        results=f"{d}.{c}",
        scale=f"{vector}.{scale}",
        **{"a": a, "b": b, "c": c, "d": d},
    )
    blocks = 0 if "-" in form["scale"] else int(vector[0])
    fragments, metadata = _fragments(words, packed=words.kind[:4] == "mxf4" or a in ("s4", "u4"))
    compute = _compute(words, target, settings)
    plan = MmaPlan(*fragments, compute=compute, metadata=metadata, scale_blocks=blocks)
    left, right, addend, result = (OperandRegisters(each.count, each.width) for each in fragments)
    return Mma(
        words.opcode,
        target.name,
        left,
        right,
        addend,
        result,
        plan,
        OperandRegisters(1) if metadata else None,
        tuple(range(metadata.selectors)) if metadata else (),
        bool(blocks),
    )


def _fragments(
    words: Mnemonic, packed: bool
) -> tuple[tuple[Fragment, Fragment, Fragment, Fragment], Metadata | None]:
    d, a, b, c = words.types[:4]
    m, n, k = words.m, words.n, words.k
    width, half = 64 if a == "f64" else 32, {"f16": 16}
    if words.shape == "m8n8k4" and a == "f16":

        def four(operand: str, names: tuple[str, ...], rows: int, size: int = 16) -> Fragment:
            form = formula("DENSE", "m8n8k4", "f16", operand)
            return fragment(form, names, (4, rows, 8), size)

        layout_a, layout_b = words.layouts
        accumulators = ("product", "row", "col")
        return (
            four(f"a.{layout_a}", ("col", "product", "row"), 4),
            four(f"b.{layout_b}", ("row", "product", "col"), 4),
            four(f"c.{c}", accumulators, 8, half.get(c, 32)),
            four(f"c.{d}", accumulators, 8, half.get(d, 32)),
        ), None
    part = "SPARSE" if "sp" in words.flags else "DENSE"
    bits = 4 if packed else BITS[a]
    form = formula(part, words.shape, a, "a")
    right = fragment(formula(part, words.shape, b, "b"), ("row", "col"), (k, n), bits, width=width)
    # All m16n8 accumulators are alike, and so are all m8n8; sparse pages refer to dense ones.
    shape, element = (words.shape, a) if part == "DENSE" else ("m16n8k16", "f16")
    sums = formula("DENSE", shape, element, "c")
    addend = fragment(sums, ("row", "col"), (m, n), half.get(c, width), width=width)
    result = addend
    if c != d:
        result = fragment(sums, ("row", "col"), (m, n), half.get(d, width), width=width)
    if part == "DENSE":
        return (
            fragment(form, ("col", "row"), (k, m), bits, width=width),
            right,
            addend,
            result,
        ), None
    left = Fragment([packed_column(form, 32 // bits), form.evaluate("row")], (k // 2, m), bits)
    metadata = Metadata(formula(part, words.shape, a, "e"), granularity(a, packed), m, k)
    return (left, right, addend, result), metadata


def _compute(words: Mnemonic, target: TargetName, settings: Settings) -> Compute:
    d, a, b, c = words.types[:4]
    architecture = target.architecture
    if d == "s32":
        return IntegerProducts(a, b, clamp="satfinite" in words.flags, xor="xor" in words.flags)
    if d == "f64":
        return Double.of(words.flags)
    if a == "f16" and words.shape == "m8n8k4":
        if target.number >= 80:
            return SoftwareM8N8K4(half_addend=c == "f16", half_result=d == "f16")
        how = fused_parameters(architecture, "f16", d, volta=True)
        return FusedMma(
            ElementPlace("f16"), ElementPlace("f16"), how, half_addend=d == "f32" and c == "f16"
        )
    if words.kind in ("mxf4", "mxf4nvf4"):
        return ScaledGroups(words.types[4])
    left, right = (_element(each) for each in (a, b))
    if words.kind == "mxf8f6f4":
        return Scaled(left, right, fused_parameters(architecture, "e4m3", "f32"))
    if a in ("e4m3", "e5m2") and architecture in (Architecture.HOPPER, Architecture.BLACKWELL):
        how: Fused = fused_parameters(architecture, "f16", d)
        return EmulatedFp8(left, right, how, chained=settings.ptxas >= (12, 8) or d == "f16")
    return FusedMma(left, right, fused_parameters(architecture, a, d))


def _element(name: str) -> ElementPlace:
    """Where a type of at most 8 bits lies in its byte (PTX ISA 9.7.14.2): e2m1 in bits 5:2."""
    if name == "e2m1":
        return ElementPlace(name, shift=2, mask=0xF)
    return ElementPlace(name, mask=0x3F) if name in ("e3m2", "e2m3") else ElementPlace(name)
