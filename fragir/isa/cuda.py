"""CUDA C++ wrappers: inline assembly with a typed fragment for every operand.

A header has a namespace for the instruction. In it, every fragment is a struct with the registers
of one lane, and `row(lane, i)`, `col(lane, i)` say where element i of a lane stands, as the table
has it; they are constexpr, on host and device. Where some lanes hold nothing, `held(lane, i)` says
which do. The header needs nothing but the CUDA toolkit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from fragir.errors import FragirError
from fragir.isa.emit import check
from fragir.isa.model import BITS, Instruction, Operand
from fragir.isa.query import View

# Element type -> (C++ type, header that has it). Others are read and written as unsigned bits.
_TYPES: dict[str, tuple[str, str]] = {
    "f16": ("__half", "cuda_fp16.h"),
    "bf16": ("__nv_bfloat16", "cuda_bf16.h"),
    "tf32": ("float", ""),
    "f32": ("float", ""),
    "f64": ("double", ""),
    "s32": ("int", ""),
    "u32": ("unsigned", ""),
    "s8": ("signed char", ""),
    "u8": ("unsigned char", ""),
    "e4m3": ("__nv_fp8_e4m3", "cuda_fp8.h"),
    "e5m2": ("__nv_fp8_e5m2", "cuda_fp8.h"),
}
# PTX register type -> (C++ type, constraint of inline assembly).
_REGISTERS = {
    "b32": ("unsigned", "r"),
    "s32": ("int", "r"),
    "f32": ("float", "f"),
    "f64": ("double", "d"),
    "b64": ("unsigned long long", "l"),
}
_STRUCTS = {"registers": "Fragment", "reduced": "Reduced", "e": "Metadata"}
_SCALES = ("sfa", "sfb")


def namespace(instruction: Instruction, a: str = "registers") -> str:
    """The C++ namespace of an instruction: its mnemonic with the common words left out."""
    text = instruction.mnemonic.replace(".sync.aligned", "").replace(".mma_async", "")
    words = re.sub(r"\W+", "_", text)
    return words + {"descriptor": "_a_shared", "tensor-memory": "_a_tensor"}.get(a, "")


def header(instruction: Instruction, target: str, a: str = "registers") -> str:
    """A C++ header with the fragments of `instruction` and a function that executes it.

    `target` is checked and named in a comment; `a` says where A is: one of
    the instruction's `variants`.
    """
    check(instruction, target)
    if a not in (instruction.variants or ("registers",)):
        raise FragirError(f"{instruction.mnemonic} has no form with A as {a!r}")
    structs = [o for o in instruction.operands.values() if _is_struct(instruction, o, a)]
    needed = {_TYPES[o.element][1] for o in structs if o.element in _TYPES}
    includes = "".join(f"#include <{name}>\n" for name in sorted(needed | {"cstring"}) if name)
    name = namespace(instruction, a)
    parts = [_struct(instruction, operand) for operand in structs]
    if _is_accumulating(instruction):
        parts.append("using FragmentC = FragmentD;\n")
    body = "\n".join([*parts, _function(instruction, a)])
    lowering = instruction.lowering[target]
    return (
        f"// {instruction.mnemonic}\n"
        f"// {target}, PTX {instruction.targets[target]} and newer; {lowering} there.\n"
        f"#pragma once\n{includes}\n"
        f"namespace fragir {{\nnamespace {name} {{\n\n{body}\n"
        f"}}  // namespace {name}\n}}  // namespace fragir\n"
    )


def _is_accumulating(instruction: Instruction) -> bool:
    """Whether C is a fragment like D, so that D of one product can be C of the next."""
    c, d = instruction.operands.get("c"), instruction.operands.get("d")
    return c is not None and d is not None and (c.element, c.layout) == (d.element, d.layout)


def _is_struct(instruction: Instruction, operand: Operand, a: str) -> bool:
    if operand.registers.cls in ("descriptor", "address", "scale", "instruction"):
        return False
    if operand.name == "c" and _is_accumulating(instruction):
        return False
    return not (operand.name == "a" and a == "descriptor")


def struct_name(operand: str) -> str:
    """`FragmentA` for a; `Fragment` of a matrix copy; `Metadata` for e."""
    return _STRUCTS.get(operand, f"Fragment{operand.upper()}")


def _struct(instruction: Instruction, operand: Operand) -> str:
    """One operand: the registers, where its elements stand, and access to them."""
    register, _ = _REGISTERS[operand.registers.type]
    count = operand.registers.count
    lines = [f"struct {struct_name(operand.name)} {{", f"    {register} registers[{count}];"]
    if operand.layout is not None:
        view = View.of(instruction, operand.name)
        lines += [f"    static constexpr int elements = {view.elements};"]
        sizes = zip(view.dims, view.shape, strict=True)
        lines += [f"    static constexpr int {dim}_count = {size};" for dim, size in sizes]
        lines += [f"    {line}" for line in _coordinates(view)]
        lines += [f"    {line}" for line in _access(view)]
    return "\n".join([*lines, "};", ""])


def _coordinates(view: View) -> list[str]:
    """row(lane, i), col(lane, i), ... from the layout's formula."""
    text = view.layout.formula().replace("%laneid", "lane").replace("/", " / ")
    formulas, _, where = text.partition("\nheld where ")
    if formulas.startswith("thread = "):  # of a warpgroup; the caller passes it
        formulas = formulas.partition("\n")[2]
    lines: list[str] = []
    head = "__host__ __device__ static constexpr"
    for dim, line in zip(view.dims, formulas.splitlines(), strict=True):
        value = line.partition(" = ")[2].partition(" for ")[0]
        lines.append(f"{head} int {dim}({_parameters(value)}) {{ return {value}; }}")
    held = where or "true"
    lines.append(f"{head} bool held({_parameters(held)}) {{ return {held}; }}")
    return lines


def _parameters(expression: str) -> str:
    """Parameters that the expression does not use have no name."""
    used = set(re.findall(r"[a-z]+", expression))
    first = "thread" if "thread" in used else "lane"
    return ", ".join(f"int {name}" if name in used else "int" for name in (first, "i"))


def _access(view: View) -> list[str]:
    """get(i) and set(i, x) of one element of this lane."""
    element = view.operand.element
    place = view.place(0, 0)
    slot = view.place(0, 1).low - place.low if view.elements > 1 else 32
    bits = place.high - place.low + 1
    register, _ = _REGISTERS[view.operand.registers.type]
    known = _TYPES.get(element)
    whole = view.operand.registers.count == view.elements
    if known is not None and known[0] == register and whole:
        return [
            f"using element = {register};",
            "__host__ __device__ element get(int i) const { return registers[i]; }",
            "__host__ __device__ void set(int i, element x) { registers[i] = x; }",
        ]
    if known is not None and BITS[element] == bits:
        return [
            f"using element = {known[0]};",
            "__host__ __device__ element get(int i) const {",
            "    element x;",
            "    memcpy(&x, reinterpret_cast<const char*>(registers) + i * sizeof x, sizeof x);",
            "    return x;",
            "}",
            "__host__ __device__ void set(int i, element x) {",
            "    memcpy(reinterpret_cast<char*>(registers) + i * sizeof x, &x, sizeof x);",
            "}",
        ]
    per = max(1, 32 // abs(slot)) if not whole else 1
    step = 32 // per
    shift = f"i % {per} * {step} + {place.low}" if per > 1 else str(place.low)
    mask = "0xffffffffu" if bits == 32 else f"{(1 << bits) - 1:#x}u"
    return [
        f"using element = unsigned;  // {bits} bits",
        f"__host__ __device__ element get(int i) const {{ return registers[i / {per}] >> "
        f"({shift}) & {mask}; }}",
        "__host__ __device__ void set(int i, element x) {",
        f"    registers[i / {per}] = (registers[i / {per}] & ~({mask} << ({shift}))) | "
        f"(x & {mask}) << ({shift});",
        "}",
    ]


class _Assembly:
    """The operands of one asm statement, numbered as they come."""

    def __init__(self) -> None:
        self.outputs: list[str] = []
        self.inputs: list[str] = []
        self._count = 0

    def vector(self, name: str, operand: Operand, how: str, braces: bool = True) -> str:
        """Registers of an operand: `how` is "=" (written), "+" (both) or "" (read)."""
        constraint = _REGISTERS[operand.registers.type][1]
        found = [
            self._add(how, constraint, f"{name}.registers[{i}]")
            for i in range(operand.registers.count)
        ]
        text = ", ".join(found)
        return f"{{{text}}}" if braces else text

    def value(self, constraint: str, text: str) -> str:
        """One value that is read."""
        return self._add("", constraint, text)

    def _add(self, how: str, constraint: str, text: str) -> str:
        (self.outputs if how else self.inputs).append(f'"{how}{constraint}"({text})')
        self._count += 1
        return f"%{self._count - 1}"

    def statement(self, lines: Sequence[str], memory: bool) -> str:
        code = "\n".join(f'        "{line}\\n"' for line in lines)
        clobber = '\n        : "memory"' if memory else ""
        return (
            f"    asm volatile(\n{code}\n        : {_parameter_list(self.outputs)}\n"
            f"        : {_parameter_list(self.inputs)}{clobber});\n"
        )


def _parameter_list(operands: Sequence[str]) -> str:
    return ",\n          ".join(operands)


def _function(instruction: Instruction, a: str) -> str:
    if instruction.family.startswith("wgmma"):
        return _warpgroup(instruction, a)
    if instruction.family.startswith("tcgen05.mma"):
        return _tensor_product(instruction, a)
    if instruction.family in ("ldmatrix", "stmatrix") or instruction.family.startswith("tcgen05"):
        return _copy(instruction)
    return _warp(instruction)


def _warp(instruction: Instruction) -> str:
    """mma, mma.sp, movmatrix: every operand in registers."""
    asm = _Assembly()
    operands = instruction.operands
    moving = instruction.family == "movmatrix"
    words = [asm.vector("d", operands["d"], "=", not moving)]
    parameters = ["FragmentD& d"]
    template: list[str] = []
    for name in ("a",) if moving else ("a", "b", "c"):
        words.append(asm.vector(name, operands[name], "", not moving))
        parameters.append(f"const {struct_name(name)}& {name}")
    if instruction.selectors:
        words.append(asm.vector("e", operands["e"], "", False))
        words.append(asm.value("n", "Selector"))
        parameters.append("const Metadata& e")
        template.append(f"int Selector = {instruction.selectors[0]}")
    for name in (name for name in _SCALES if name in operands):
        byte, thread = f"Byte{name[-1].upper()}", f"Thread{name[-1].upper()}"
        words.append(asm.value("r", name))
        words.append(f"{{{asm.value('n', byte)}, {asm.value('n', thread)}}}")
        parameters.append(f"unsigned {name}")
        template += [f"int {byte} = 0", f"int {thread} = 0"]
    lines = [f"{instruction.mnemonic} {', '.join(words)};"]
    return _definition("execute", template, parameters, asm.statement(lines, False))


def _warpgroup(instruction: Instruction, a: str) -> str:
    """wgmma: D in place; the caller fences, commits and waits."""
    asm = _Assembly()
    operands = instruction.operands
    words = [asm.vector("d", operands["d"], "+")]
    parameters, template = ["FragmentD& d"], list[str]()
    if a == "descriptor":
        words.append(asm.value("l", "a"))
        parameters.append("unsigned long long a")
    else:
        words.append(asm.vector("a", operands["a"], ""))
        parameters.append("const FragmentA& a")
    words.append(asm.value("l", "b"))
    parameters.append("unsigned long long b")
    if instruction.selectors:
        words.append(asm.vector("e", operands["e"], "", False))
        words.append(asm.value("n", "Selector"))
        parameters.append("const Metadata& e")
        template.append(f"int Selector = {instruction.selectors[0]}")
    parameters.append("bool add = true")
    accumulate = asm.value("r", "static_cast<int>(add)")
    words.append("p")
    for what in instruction.tail[1:]:
        if what == "imm-trans-a" and a == "registers":
            continue
        name = "".join(part.capitalize() for part in what.split("-")[1:])
        template.append(f"int {name} = {0 if 'trans' in what else 1}")
        words.append(asm.value("n", name))
    lines = [
        "{",
        ".reg .pred p;",
        f"setp.ne.b32 p, {accumulate}, 0;",
        f"{instruction.mnemonic} {', '.join(words)};",
        "}",
    ]
    comment = "// Asynchronous: wgmma.fence before, wgmma.commit_group and wait_group after it.\n"
    return comment + _definition("execute", template, parameters, asm.statement(lines, True))


def _tensor_product(instruction: Instruction, a: str) -> str:
    """tcgen05.mma: addresses in tensor memory, descriptors; one thread issues and commits."""
    asm = _Assembly()
    words: list[str] = []
    parameters: list[str] = []
    for name in ("d", "a", "b", "table", "e", "idesc", "sfa", "sfb"):
        operand = instruction.operands.get(name)
        if operand is None:
            continue
        if name == "a" and a == "descriptor":
            operand = instruction.operands["a-shared"]
        kind, constraint = _REGISTERS[operand.registers.type]
        word = asm.value(constraint, name)
        words.append(f"[{word}]" if operand.registers.cls == "address" else word)
        parameters.append(f"{kind} {name}")
    parameters.append("bool add = true")
    lines = [
        "{",
        ".reg .pred p;",
        f"setp.ne.b32 p, {asm.value('r', 'static_cast<int>(add)')}, 0;",
        f"{instruction.mnemonic} {', '.join([*words, 'p'])};",
        "}",
    ]
    comment = "// Asynchronous: of one thread; tcgen05.commit tells an mbarrier when it is done.\n"
    return comment + _definition("execute", (), parameters, asm.statement(lines, True))


def _copy(instruction: Instruction) -> str:
    """ldmatrix, stmatrix, tcgen05.ld, tcgen05.st: registers and a 32-bit address."""
    asm = _Assembly()
    operands = instruction.operands
    storing = instruction.family in ("stmatrix", "tcgen05.st")
    held = asm.vector("fragment", operands["registers"], "" if storing else "=")
    words = [held]
    parameters = [f"{'const ' if storing else ''}Fragment& fragment"]
    template: list[str] = []
    if "reduced" in operands:
        words.append(asm.vector("reduced", operands["reduced"], "=", False))
        parameters.append("Reduced& reduced")
    address = [f"[{asm.value('r', 'address')}]"]
    parameters.append("unsigned address")
    if instruction.tail:
        template.append("int Offset")
        address.append(asm.value("n", "Offset"))
    words = [*address, *words] if storing else [*words, *address]
    mnemonic = instruction.mnemonic
    if instruction.family in ("ldmatrix", "stmatrix"):
        element = instruction.types.a
        mnemonic = f"{mnemonic.removesuffix(element)}shared.{element}"
    lines = [f"{mnemonic} {', '.join(words)};"]
    return _definition("execute", template, parameters, asm.statement(lines, True))


def _definition(name: str, template: Sequence[str], parameters: Sequence[str], body: str) -> str:
    head = f"template <{', '.join(template)}>\n" if template else ""
    return f"{head}__device__ inline void {name}({', '.join(parameters)}) {{\n{body}}}\n"
