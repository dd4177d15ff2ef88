"""Elements under mma, wmma.mma and wgmma: sums of products, sparse and scaled ones too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fragir.algebra.fields import P, Q
from fragir.algebra.numpy_door import Values
from fragir.algebra.values import NONE, any_of, products, where
from fragir.emulator.checks.algebra.numbers import ElementNumbers, Looked
from fragir.emulator.checks.planes import PlaneDecoder
from fragir.emulator.instructions.products import Products
from fragir.emulator.instructions.products import products as decoded_products
from fragir.emulator.instructions.register_rows import whole_warps
from fragir.emulator.machine.lanes import LANES, Mask, Select, Step
from fragir.emulator.machine.transfers import WARPGROUP, Issue
from fragir.emulator.native.fields import field_products
from fragir.emulator.numbers.types import I64, U32, Array, Bools
from fragir.emulator.tensor_cores.compute import (
    Double,
    ElementPlace,
    IntegerProducts,
    ScaledGroups,
    SoftwareM8N8K4,
    scale_values,
)
from fragir.emulator.tensor_cores.maps import Codes, Fragment
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.machine.tensor_work import ProductPart, TensorWork
    from fragir.emulator.tensor_cores.compute import Compute

#: Says that bits of elements were used for something else, at an instruction.
Says = Callable[[tree.Instruction | None], None]
#: Those of which A and B have one format.
_ONE_FORM: dict[type, str] = {Double: "f64", SoftwareM8N8K4: "f16", ScaledGroups: "e2m1"}
_SUMS = {16: "f16", 32: "f32", 64: "f64"}


def forms_of(compute: Compute) -> tuple[ElementPlace, ElementPlace] | None:
    """The formats of A and B; None of integers."""
    if isinstance(compute, IntegerProducts):
        return None
    a = getattr(compute, "a", None)
    b = getattr(compute, "b", None)
    if isinstance(a, ElementPlace) and isinstance(b, ElementPlace):
        return a, b
    place = ElementPlace(_ONE_FORM[type(compute)])
    return place, place


class MatrixElements:
    def __init__(self, machine: Machine, numbers: ElementNumbers, says: Says) -> None:
        self.machine, self.numbers, self.says = machine, numbers, says

    # -- mma and wmma.mma --------------------------------------------------------------------------

    def mma(self, d: Decoder, group: Sequence[tree.Instruction], step: Step) -> Step:
        real = decoded_products(d, group)
        planes = [decoded_products(PlaneDecoder(d, p), group) for p in self.numbers.planes]
        op, plan = real.op, real.op.plan
        forms = forms_of(plan.compute)
        scale = group[0].opcode[-1] if op.scales else ""

        def run(sel: Select, mask: Mask) -> None:
            sel = whole_warps(sel, mask)
            if forms is None:
                self._integers(group[0], sel, planes)
                step(sel, None)
                self._clear(sel, plan.d, planes)
                return
            fragments = (plan.a, plan.b, plan.c)
            names = (forms[0], forms[1], ElementPlace(_SUMS[plan.c.bits]))
            found: list[Values] = []
            for letter, fragment, place in zip("abc", fragments, names, strict=True):
                words = [p.sources[letter].read(sel) for p in planes]
                bits = real.sources[letter].read(sel)
                looked = self._look(fragment, words, bits, place)
                self._say(group[0], looked)
                found.append(looked.values)
            a, b, c = found
            kept = None
            if plan.metadata is not None:
                meta = real.words["e"][sel]
                kept = plan.metadata.columns(meta, real.fixed.get("selector", 0))
                kept = np.tile(kept, (1, 1, len(group)))
            if op.scales:
                a, b = self._scaled(group[0], real, planes, sel, scale, a, b)
            result = multiply(a, b, c, kept)
            step(sel, None)
            bits = None if real.result is None else plan.d.load(real.result.read(sel))
            self._write(result, plan.d, bits, lambda words: _write_all(planes, sel, words))

        return run

    def _integers(self, ins: tree.Instruction, sel: Select, planes: Sequence[Products]) -> None:
        if any(p.sources[letter].read(sel).any() for p in planes for letter in "ab"):
            self.says(ins)

    def _clear(self, sel: Select, fragment: Fragment, planes: Sequence[Products]) -> None:
        for plane in planes:
            shape = plane.sources["a"].read(sel).shape[1:]
            dtype = np.uint64 if fragment.width == 64 else np.uint32
            plane.write(sel, np.zeros((fragment.count, *shape), dtype))

    def _look(
        self, fragment: Fragment, words: Sequence[Array], bits: Array, place: ElementPlace
    ) -> Looked:
        """The elements of a fragment: `words` of the planes and real ones `[count, W, lanes]`."""
        codes = [fragment.load(w) for w in words]
        return self._looked(codes, fragment.load(bits), fragment.bits, place)

    def _looked(
        self, codes: Sequence[Codes], real: Codes, width: int, place: ElementPlace
    ) -> Looked:
        if width < 8:
            return self._nibbles(codes, real, place)
        narrow = np.dtype(f"u{width // 8}")
        if place.shift:
            real = real >> real.dtype.type(place.shift)
        if place.mask != ElementPlace("").mask:
            real = real & real.dtype.type(place.mask)
        words = [c.astype(narrow) for c in codes]
        return self.numbers.look(words, real.astype(narrow), place.name)

    def _nibbles(self, codes: Sequence[Codes], real: Codes, place: ElementPlace) -> Looked:
        """Two elements of a byte, neighbours along K: rows of the table that follow each other."""
        bytes_ = [(c[0::2] | c[1::2] << c.dtype.type(4)).astype(np.uint8) for c in codes]
        low, high = self.numbers.look_pair(bytes_, real[0::2], real[1::2], place.name)
        return Looked(_interleave(low.values, high.values), low.broken)

    def _scaled(
        self,
        ins: tree.Instruction,
        real: Products,
        planes: Sequence[Products],
        sel: Select,
        kind: str,
        a: Values,
        b: Values,
    ) -> tuple[Values, Values]:
        """A and B times their scales. Those that are powers of two are what their bits say, and the
        sign of others does not count."""
        found: list[Values] = []
        blocks = real.op.plan.scale_blocks
        for name, side, rows in (("sfa", a, True), ("sfb", b, False)):
            select = real.fixed.get("select_a" if rows else "select_b", (0, 0))

            def codes_of(one: Products, name: str = name, rows: bool = rows) -> Array:
                words = one.words[name][sel]
                return real.op.scale_codes(words, select, left=rows)  # [m or n, blocks, W]

            codes = codes_of(real)
            if kind == "ue8m0":
                significand, exponent = scale_values(kind, codes)
                factor = Values.of(np.ldexp(significand, exponent), side.rounds)
            else:
                numbers = [codes_of(one).astype(np.uint8) for one in planes]
                looked = self.numbers.look(numbers, codes.astype(np.uint8), "e4m3")
                self._say(ins, looked)
                factor = abs(looked.values)
            block = np.arange(side.shape[0]) * blocks // side.shape[0]
            factor = factor.moved(lambda x, block=block: np.moveaxis(x, 1, 0)[block])
            count = side.shape[-1] // factor.shape[-1]
            found.append(side * factor.moved(lambda x, count=count: np.tile(x, (1, 1, count))))
        return found[0], found[1]

    def _say(self, ins: tree.Instruction, looked: Looked) -> None:
        if looked.broken is not None:
            self.says(ins)

    def _write(
        self,
        result: Values,
        fragment: Fragment,
        bits: Codes | None,
        write: Callable[[list[Array]], None],
    ) -> None:
        """Elements of D into the planes; `bits`: what they are, None where some are dropped."""
        form = _SUMS[fragment.bits]
        keep = np.ones(result.shape, np.bool_) if bits is None else is_finite(bits, form)
        ids = self.numbers.name(result, form, keep)
        dtype = np.dtype(np.uint64 if fragment.width == 64 else np.uint32)
        write([fragment.store(w) for w in self.numbers.words([ids], form, dtype)])
        self.numbers.collect()

    # -- wgmma -------------------------------------------------------------------------------------

    def wgmma(self, item: Issue) -> Callable[[], None]:
        """What a wgmma that is about to be computed makes of its elements; to be called then."""
        form, count = item.form, len(item.warps)
        op, plan, memory = form.op, form.op.plan, self.machine.memory
        forms = forms_of(plan.compute)
        warps = item.warps[:, None] + np.arange(WARPGROUP)
        home = self.machine.block_of[item.warps].astype(np.int64) * memory.shared_stride
        files = [p.machine.files[32] for p in self.numbers.planes]
        own = self.machine.files[32]

        def flat(file: Array, rows: Array) -> Array:
            return file[rows[:, None, None], warps].reshape(-1, count, WARPGROUP * LANES)

        def shared(bytes_: Array, words: Array, left: bool) -> Codes:
            chunks = bytes_.reshape(-1, 16)
            turned = bool(form.options.get(f"transpose_{'a' if left else 'b'}", False))

            def read(at: Array) -> Array:
                where_ = (at.astype(np.int64) + home[:, None]) >> 4
                return chunks[np.minimum(where_, len(chunks) - 1)]

            codes = op.read_operand(words, read, left=left, transposed=turned)
            return np.moveaxis(codes, 0, -1)  # [k, m or n, G]

        def write(words: list[Array]) -> None:
            for file, word in zip(files, words, strict=True):
                shape = (len(form.d), count, WARPGROUP, LANES)
                file[form.d[:, None, None], warps] = word.reshape(shape)

        if forms is None:
            written = [np.zeros((len(form.d), count, WARPGROUP * LANES), np.uint32) for _ in files]
            return lambda: write(written)
        looked: list[Looked] = []
        for left, place in ((True, forms[0]), (False, forms[1])):
            words = item.a if left else item.b
            if left and form.a is not None:
                rows = form.a
                looked.append(
                    self._look(plan.a, [flat(f, rows) for f in files], flat(own, rows), place)
                )
                continue
            assert words is not None
            codes = [shared(p.memory.shared.bytes, words, left) for p in self.numbers.planes]
            real = shared(memory.shared.bytes, words, left)
            looked.append(self._looked(codes, real, plan.bits, place))
        sum_form = ElementPlace(_SUMS[plan.d.bits])
        before = self._look(plan.d, [flat(f, form.d) for f in files], flat(own, form.d), sum_form)
        for one in looked:
            self._say(form.instruction, one)
        a, b = (one.values for one in looked)
        zero = Values.of(np.zeros(before.values.shape), a.rounds)
        on = np.broadcast_to(np.asarray(item.scale, np.bool_), (count,))
        c = where(np.broadcast_to(on, before.values.shape), before.values, zero)
        if before.broken is not None and (before.broken & on).any():
            self.says(form.instruction)
        if int(form.options.get("scale_a", 1)) * int(form.options.get("scale_b", 1)) < 0:
            a = -a
        kept = None
        if plan.metadata is not None and item.meta is not None:
            meta = item.meta.reshape(count, WARPGROUP * LANES)
            kept = plan.metadata.columns(meta, int(form.options.get("selector", 0)))
        result = multiply(a, b, c, kept)

        def finish() -> None:
            bits = plan.d.load(flat(own, form.d))
            self._write(result, plan.d, bits, write)

        return finish

    # -- tcgen05 -----------------------------------------------------------------------------------

    def tensor(self, work: TensorWork) -> None:
        """mma, cp or shift of tcgen05, which is about to happen, done to the planes."""
        planes, real = self.numbers.planes, self.machine.tensor.words
        shared = self.machine.memory.shared.bytes
        if work.parts is None:
            for plane in planes:
                work.run(plane.memory.shared.bytes, plane.tensor.words, real)
            return
        every = [work.parts(p.memory.shared.bytes, p.tensor.words, real) for p in planes]
        for own, *parts in zip(work.parts(shared, real, real), *every, strict=True):
            found = self._tensor_part(work.form.instruction, own, parts)
            for plane, part, words in zip(planes, parts, found, strict=True):
                part.put(plane.tensor.words, words)

    def _tensor_part(
        self, ins: tree.Instruction, own: ProductPart, parts: Sequence[ProductPart]
    ) -> list[U32]:
        """D of a part in every plane."""
        product = own.product
        nothing = [np.zeros_like(own.c) for _ in parts]
        forms = forms_of(product.compute)
        widths = product.packed_bits(product.a), product.packed_bits(product.b)
        if forms is None or own.scales is not None or own.shift or 6 in widths:
            if any(part.a.any() or part.b.any() or part.c.any() for part in parts):
                self.says(ins)
            return nothing
        found: list[Values] = []
        for name, place, width in zip("ab", forms, widths, strict=True):
            codes = [getattr(part, name)[..., None] for part in parts]
            looked = self._looked(codes, getattr(own, name)[..., None], width, place)
            self._say(ins, looked)
            found.append(looked.values)
        form = product.d
        width = 16 if form == "f16" else 32
        codes = [part.c[..., None] for part in parts]
        looked = self._looked(codes, own.c[..., None], width, ElementPlace(form))
        self._say(ins, looked)
        a, b = found
        if product.negate[0] != product.negate[1]:
            a = -a
        kept = None if own.kept is None else own.kept[..., None]
        result = multiply(a, b, looked.values, kept)
        bits = product.multiply(own.a, own.b, own.c, own.kept)
        ids = self.numbers.name(result, form, is_finite(bits, form)[..., None])
        words = self.numbers.words([ids], form, np.dtype(np.uint32))
        self.numbers.collect()
        return [word[..., 0] for word in words]


def is_finite(bits: Array, form: str) -> Bools:
    """Whether a result is a number."""
    fraction, width = {"f16": (10, 16), "bf16": (7, 16), "f32": (23, 32), "f64": (52, 64)}[form]
    top = ((1 << (width - 1)) - 1) >> fraction << fraction
    kind = np.uint64 if width == 64 else np.uint32
    return bits.astype(kind, copy=False) & kind(top) != kind(top)


def _write_all(planes: Sequence[Products], sel: Select, words: Sequence[Array]) -> None:
    for plane, word in zip(planes, words, strict=True):
        plane.write(sel, word)


def _interleave(low: Values, high: Values) -> Values:
    """Rows of one and of the other in turns, along the first dimension."""

    def both(x: Array, y: Array) -> Array:
        return np.stack([x, y], 1).reshape(2 * len(x), *x.shape[1:])

    return Values(*(both(getattr(low, n), getattr(high, n)) for n in Values.PARTS))


def multiply(a: Values, b: Values, c: Values, kept: I64 | None) -> Values:
    """A `[k, (product,) m, W]` times B `[k, (product,) n, W]`, added to C `[(product,) m, n, W]`.

    `kept` `[k, m, W]`: which row of B each element of a sparse A meets.
    """

    def spread(x: Array, y: Array) -> tuple[Array, Array]:  # the last dimension: rounds
        left = x[..., None, :, :]
        if kept is None:
            return left, y[..., None, :, :, :]
        columns, warps = y.shape[1:3]
        met = y[kept[:, :, None, :], np.arange(columns)[:, None], np.arange(warps)]
        return left, met

    def summed(x: Array, y: Array, z: Array, modulus: int) -> Array:
        """In whichever way is quick."""
        if kept is None and x.ndim == 4:
            width = x.shape[2] * x.shape[3]
            flat = [v.reshape(*v.shape[:2], width) for v in (x, y, z)]
            found = field_products(flat[0], flat[1], flat[2], modulus)
            if found is not None:
                return found.reshape(z.shape)
        return (products(*spread(x, y), modulus) + z) % np.uint64(modulus)

    zero = np.uint64(0)
    p = summed(a.p, b.p, c.p, P)
    none_a, none_b, none_c = (v.q == NONE for v in (a, b, c))
    q_a, q_b, q_c = (np.where(n, zero, v.q) for n, v in zip((none_a, none_b, none_c), (a, b, c)))
    q = summed(q_a, q_b, q_c, Q)

    def along(x: Bools, y: Bools, z: Bools) -> Bools:
        """Where any that goes into a sum is set. Of a sparse A every row of B counts."""
        return any_of(x, 0)[..., None, :, :] | any_of(y, 0)[..., None, :, :, :] | z

    def some(x: Bools, y: Bools, z: Bools) -> Bools:
        if not (x.any() or y.any() or z.any()):
            return np.zeros(z.shape, np.bool_)
        return along(x, y, z)

    none = some(none_a, none_b, none_c)
    doubt = some(a.doubt, b.doubt, c.doubt)
    data = some(a.data[..., None], b.data[..., None], c.data[..., None])[..., 0]
    return Values(p, np.where(none, NONE, q), np.zeros(c.shape), doubt, data)
