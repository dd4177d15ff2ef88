"""The smallest complete PTX module that uses an instruction: a probe kernel.

The kernel has one pointer for every operand, in the order of the operand names in
`parameters`. Every block is a case of its own: its fragments lie behind those of the block before,
lane by lane, a lane's registers in order. A matrix in shared memory is passed as its image, which
the kernel copies: the packed canonical layout of the smallest tile (`shared_tile`), by default
K-major without swizzle, core matrices of the same 8 rows next to each other. Addresses of matrix
copies go up by 16 bytes a lane. D is written back; for `stmatrix` the shared memory is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from fragir.errors import FragirError
from fragir.isa.canonical import SWIZZLES, Major
from fragir.isa.model import Instruction, Operand
from fragir.isa.probe_texts import (
    PLACE,
    copy_in,
    copy_out,
    declared,
    descriptor,
    moved,
    vector,
    word,
)
from fragir.isa.targets import ONLY_PTXAS_12, newest, require_target

if TYPE_CHECKING:
    from fragir.isa.operand_tiles import CanonicalTile

_TENSOR_COLUMNS = 512


class InShared(NamedTuple):
    """How the operands of a wgmma lie in shared memory: the majors of A and B, the swizzle."""

    a: Major = "k"
    b: Major = "k"
    swizzle: int = 0

    def major(self, operand: Operand) -> Major:
        """That of operand a-shared or b."""
        return self.b if operand.name == "b" else self.a


_PLAIN = InShared()


def emit_ptx(
    instruction: Instruction, target: str, a: str = "registers", shared: InShared = _PLAIN
) -> str:
    """A module for `target` with one kernel, `probe`; `a` says where A is: one of
    the instruction's `variants`.

    Errors where the target does not have the instruction, or it must not be emitted, and where its
    operands cannot lie in memory as `shared` says.
    """
    return emit_module([(instruction, a)], target, shared=shared)


def emit_module(
    wanted: Iterable[tuple[Instruction, str]],
    target: str,
    version: str | None = None,
    shared: InShared = _PLAIN,
) -> str:
    """One module with a kernel for each instruction: `probe`, or `probe_0`, `probe_1`, ...

    `.version` is the lowest that all of them allow, unless given; `shared` as of `emit_ptx`.
    """
    require_target(target)
    chosen = list(wanted)
    for instruction, _ in chosen:
        check(instruction, target)
    lowest = version or newest(i.targets[target] for i, _ in chosen)
    names = ["probe"] if len(chosen) == 1 else [f"probe_{i}" for i in range(len(chosen))]
    kernels = [kernel(i, a, name, shared) for (i, a), name in zip(chosen, names, strict=True)]
    return "\n".join((f".version {lowest}\n.target {target}\n.address_size 64\n", *kernels))


def default_variant(instruction: Instruction) -> str:
    """Where A is in the first form of an instruction: "registers", but of tcgen05.mma."""
    return (*instruction.variants, "registers")[0]


def default_target(instruction: Instruction) -> str:
    """The first target that runs it natively and that today's ptxas knows, else the first."""
    recent = [target for target in instruction.targets if target not in ONLY_PTXAS_12]
    native = [target for target in recent if instruction.lowering.get(target) == "native"]
    return [*native, *recent, *instruction.targets][0]


def check(instruction: Instruction, target: str) -> None:
    """An error where `instruction` must not be emitted for `target`."""
    if instruction.refused:
        raise FragirError(f"{instruction.mnemonic} is refused: {instruction.refused}")
    if target not in instruction.targets:
        raise FragirError(
            f"{instruction.mnemonic} does not exist on {target}",
            hint=f"it does on {', '.join(instruction.targets)}",
        )


def parameters(instruction: Instruction, a: str = "registers") -> tuple[str, ...]:
    """The operands whose pointers the probe kernel takes, in order."""
    if instruction.family == "ldmatrix":
        return ("shared", "registers")
    if instruction.family == "stmatrix":
        return ("registers", "shared")
    names = [n for n in instruction.operands if n not in ("a-shared", "address", "idesc")]
    if a == "descriptor":
        names[names.index("a")] = "a-shared"
    return tuple(names)


def kernel(
    instruction: Instruction, a: str = "registers", name: str = "probe", shared: InShared = _PLAIN
) -> str:
    """The text of the probe kernel alone, whatever the target."""
    _check_shared(instruction, a, shared)
    if a not in (instruction.variants or ("registers",)):
        raise FragirError(f"{instruction.mnemonic} has no form with A as {a!r}")
    names = parameters(instruction, a)
    pointers = ",\n".join(f"\t.param .u64 {name}_{word(n)}" for n in names)
    body = "".join(f"\t{line}\n" for line in _body(instruction, a, name, names, shared))
    pair = " .reqnctapercluster 2" if "cta_group::2" in instruction.form.flags else ""
    return f".visible .entry {name}(\n{pointers}\n){pair}\n{{\n{body}\tret;\n}}\n"


def _check_shared(instruction: Instruction, a: str, shared: InShared) -> None:
    if shared == _PLAIN:
        return
    if not instruction.family.startswith("wgmma"):
        mnemonic = instruction.mnemonic
        if not instruction.family.startswith("tcgen05.mma"):
            raise FragirError(f"no operand of {mnemonic} lies in shared memory")
        raise FragirError(f"probes of {mnemonic} are K-major, without a swizzle")
    if a != "descriptor" and shared.a != "k":
        raise FragirError("A in registers is not MN-major", hint="--a descriptor")
    for name in ("a-shared", "b") if a == "descriptor" else ("b",):
        shared_tile(instruction.operands[name], shared)


def shared_tile(operand: Operand, shared: InShared = _PLAIN) -> CanonicalTile:
    """The packed canonical layout of an operand's image; FragirError where it cannot be so."""
    from fragir.isa.operand_tiles import check_major, operand_tiles

    if shared.swizzle not in SWIZZLES:
        raise FragirError(f"there is no swizzle of {shared.swizzle} bytes", hint="0, 32, 64 or 128")
    major = shared.major(operand)
    check_major(operand.element, major, str(shared.swizzle), tcgen05=False)
    return operand_tiles(operand)[major][shared.swizzle]


def statement(instruction: Instruction, a: str = "registers", shared: InShared = _PLAIN) -> str:
    """The instruction alone, on registers named after its operands: %a0, %a1, ..., %address.

    Scales of wgmma are 1, transposes those of MN-major operands, selectors the lowest.
    """
    operands = instruction.operands
    words: list[str]
    if instruction.family == "movmatrix":
        words = ["%d0", "%a0"]
    elif instruction.family.startswith("tcgen05.mma"):
        from fragir.isa.tensor_probes import operands_of

        words = operands_of(instruction, a)
    elif "registers" in operands:
        words = [vector(operands["registers"]), "[%address]"]
        if "reduced" in operands:
            words.insert(1, "%reduced0")
        words += ["0" for _ in instruction.tail]
        if instruction.family in ("stmatrix", "tcgen05.st"):
            words = [*words[1:], words[0]]
    elif instruction.family.startswith("wgmma"):
        skipped = "imm-trans-a" if a == "registers" else ""
        words = [
            vector(operands["d"]),
            "%a_shared" if a == "descriptor" else vector(operands["a"]),
            "%b",
            *_selector_words(instruction),
            *(_tail(what, shared) for what in instruction.tail if what != skipped),
        ]
    else:
        words = [*(vector(operands[n]) for n in "dabc"), *_selector_words(instruction)]
        words += ["%sfa0", "{0, 0}", "%sfb0", "{0, 0}"] if "sfa" in operands else []
    return f"{_opcode(instruction)} {', '.join(words)};"


def _opcode(instruction: Instruction) -> str:
    """The mnemonic; of a matrix copy with its state space."""
    if instruction.family not in ("ldmatrix", "stmatrix"):
        return instruction.mnemonic
    element = instruction.types.a
    return f"{instruction.mnemonic.removesuffix(element)}shared.{element}"


def _selector_words(instruction: Instruction) -> tuple[str, ...]:
    selectors = instruction.selectors
    return ("%e0", str(selectors[0])) if selectors else ()


def _body(
    instruction: Instruction, a: str, name: str, names: tuple[str, ...], shared: InShared
) -> Iterator[str]:
    yield ".reg .pred %p;"
    yield ".reg .b32 %thread, %block, %index, %at, %word, %address;"
    yield ".reg .b64 %base, %offset;"
    if instruction.family.startswith("wgmma"):
        yield from _warpgroup(instruction, a, name, names, shared)
    elif instruction.family.startswith("tcgen05.mma"):
        from fragir.isa.tensor_probes import body

        yield from body(instruction, a, name, names)
    elif instruction.family.startswith("tcgen05"):
        yield from _tensor_memory(instruction, name)
    elif instruction.family in ("ldmatrix", "stmatrix"):
        yield from _matrix_copy(instruction, name)
    else:
        yield from _warp(instruction, name, names)


def _warp(instruction: Instruction, name: str, names: tuple[str, ...]) -> Iterator[str]:
    operands = [instruction.operands[n] for n in names]
    yield from (declared(operand) for operand in operands)
    yield from PLACE
    for operand in operands:
        if operand.name != "d":
            yield from moved(operand, name, "ld")
    yield statement(instruction)
    yield from moved(instruction.operands["d"], name, "st")


def _warpgroup(
    instruction: Instruction, a: str, name: str, names: tuple[str, ...], placed: InShared
) -> Iterator[str]:
    held = [instruction.operands[n] for n in names if n not in ("a-shared", "b", "c")]
    yield from (declared(operand) for operand in held)
    yield from PLACE
    shared = [instruction.operands[n] for n in names if n in ("a-shared", "b")]
    for operand in shared:
        size = image_bytes(operand, placed)
        align = max(128, 8 * placed.swizzle)  # a swizzle's pattern begins with the image
        yield f".shared .align {align} .b8 {name}_{word(operand.name)}_image[{size}];"
        yield f".reg .b64 %{word(operand.name)};"
        yield from copy_in(operand.name, name, size, 128)
        yield from _descriptor(operand, name, placed)
    for operand in held:
        source = "c" if operand.name == "d" else operand.name
        yield from moved(operand, name, "ld", source)
    yield "fence.proxy.async;"
    yield "bar.sync 0;"
    yield "wgmma.fence.sync.aligned;"
    yield statement(instruction, a, placed)
    yield "wgmma.commit_group.sync.aligned;"
    yield "wgmma.wait_group.sync.aligned 0;"
    yield from moved(instruction.operands["d"], name, "st")


def _tail(what: str, shared: InShared) -> str:
    """An operand after the matrices: scales are 1, transposes say what is MN-major."""
    majors = {"imm-trans-a": shared.a, "imm-trans-b": shared.b}
    return str(int(majors.get(what, "mn") == "mn"))


def image_bytes(operand: Operand, shared: InShared = _PLAIN) -> int:
    """Bytes of a matrix in shared memory."""
    tile = shared_tile(operand, shared)
    return tile.mn * tile.k * tile.unit_bits // 8


def _descriptor(operand: Operand, name: str, shared: InShared) -> Iterator[str]:
    from fragir.isa.warpgroup import TARGET

    return descriptor(word(operand.name), name, shared_tile(operand, shared).shared, TARGET)


def _matrix_copy(instruction: Instruction, name: str) -> Iterator[str]:
    registers = instruction.operands["registers"]
    yield declared(registers)
    yield f".shared .align 128 .b8 {name}_shared_image[512];"
    yield from PLACE
    if instruction.family == "ldmatrix":
        yield from copy_in("shared", name, 512, 32)
        yield "bar.sync 0;"
    yield f"mov.u32 %address, {name}_shared_image;"
    yield "mad.lo.u32 %address, %thread, 16, %address;"
    if instruction.family == "ldmatrix":
        yield statement(instruction)
        yield from moved(registers, name, "st")
    else:
        yield from moved(registers, name, "ld")
        yield statement(instruction)
        yield "bar.sync 0;"
        yield from copy_out("shared", name, 512, 32)


def _tensor_memory(instruction: Instruction, name: str) -> Iterator[str]:
    registers = instruction.operands["registers"]
    reduced = instruction.operands.get("reduced")
    yield declared(registers)
    if reduced is not None:
        yield declared(reduced)
    yield f".shared .align 4 .b32 {name}_allocated;"
    yield from PLACE
    yield (
        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 "
        f"[{name}_allocated], {_TENSOR_COLUMNS};"
    )
    yield "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"
    yield f"ld.shared.b32 %address, [{name}_allocated];"
    if instruction.family == "tcgen05.st":
        yield from moved(registers, name, "ld")
        yield statement(instruction)
        yield "tcgen05.wait::st.sync.aligned;"
    else:
        yield statement(instruction)
        yield "tcgen05.wait::ld.sync.aligned;"
        yield from moved(registers, name, "st")
        if reduced is not None:
            yield from moved(reduced, name, "st")
    yield f"tcgen05.dealloc.cta_group::1.sync.aligned.b32 %address, {_TENSOR_COLUMNS};"
