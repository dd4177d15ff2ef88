"""Operations of arith and math that take several instructions, and arith.bitcast."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from fragir.dialects import ptx
from fragir.dialects.elements import FLOATS, element_name
from fragir.errors import FragirError
from fragir.passes.writer import arith as tables
from fragir.passes.writer.convert import HALVES, Convert
from fragir.passes.writer.sequences import SUBJECTS, sequence
from fragir.passes.writer.sequences.sequence import Sequence
from fragir.passes.writer.text import KernelText, Names

# of 64 bits to 32: beyond 2^31 a power of f32 is 0, 1 or infinite, and the lowest bit its sign
_EXPONENT = Sequence(
    "x",
    """
    max.s64 n, x, -2147483646
    min.s64 n, n, 2147483646
    cvt.u32.u64 a, n
    cvt.u32.u64 b, x
    lop3.b32 d, a, b, 1, 0xD8
""",
)


def write(w: KernelText, convert: Convert, op: Operation) -> bool:
    """Writes an operation; False where it is not one of these."""
    if op.name == "arith.bitcast":
        _bitcast(w, op)
    elif op.name not in SUBJECTS:
        return False
    elif (name := element_name(ptx.scalar_type(op.results[0].type))) in FLOATS:
        _floats(w, convert, op, name)
    else:
        _integers(w, op)
    return True


def write_fast(w: KernelText, convert: Convert, op: Operation) -> bool:
    """Writes an operation as its fastmath flags allow; False where they change nothing."""
    from fragir.passes.writer.sequences.rounding import fast

    name = element_name(ptx.scalar_type(op.results[0].type))
    flags = op.properties["fastmath"]
    assert isinstance(flags, arith.FastMathFlagsAttr)
    found = fast(op.name, frozenset(flag.value for flag in flags.data))
    if found is None or name not in ("f32", *HALVES):
        return False
    _write_found(w, convert, op, name, found)
    return True


def _floats(w: KernelText, convert: Convert, op: Operation, name: str) -> None:
    """f32 and f64 as they are, halves in f32."""
    found = sequence(op.name, "f32" if name in HALVES else name)
    if found is None:
        raise FragirError(
            f"there is no instruction for {op.name} on {name}", hint="cast to f32 around it"
        )
    _write_found(w, convert, op, name, found)


def _write_found(
    w: KernelText, convert: Convert, op: Operation, name: str, found: Sequence
) -> None:
    columns = [_operand(w, convert, x) for x in op.operands]
    result = op.results[0]
    if name in HALVES:
        targets = [w.registers.fresh_register(32, "f") for _ in columns[0]]
    else:
        targets = list(w.define(result))
    for target, *operands in zip(targets, *columns, strict=True):
        found.write(w, [target], operands)
    if name in HALVES:
        convert.from_f32(result, targets, name)


def _operand(w: KernelText, convert: Convert, x: SSAValue) -> Names:
    """A register for each element: halves as f32, narrow integers as 32 bits."""
    name = element_name(ptx.scalar_type(x.type))
    if name in HALVES:
        return tuple(convert.to_f32(x))
    bits = ptx.bits(x.type)
    if name in FLOATS or bits == 32:
        return w.in_registers(x)
    if bits == 64:  # an exponent
        names = w.in_registers(x)
        targets = [w.registers.fresh_register(32) for _ in names]
        for target, wide in zip(targets, names, strict=True):
            _EXPONENT.write(w, [target], [wide])
        return tuple(targets)
    return tuple(convert.widen(x, f"s{ptx.bits(x.type)}"))


def _integers(w: KernelText, op: Operation) -> None:
    bits = ptx.bits(op.results[0].type)
    found = sequence(op.name, f"b{bits}")
    if found is None and bits < 32:
        from fragir.passes.writer.narrow_integers import NarrowIntegers

        NarrowIntegers(w).compute(op)
        return
    if found is None:
        raise FragirError(f"{op.name} on {op.results[0].type} is not supported; extend to i32")
    columns = [w.in_registers(x) for x in op.operands]
    targets = [w.define(result) for result in op.results]
    for results, operands in zip(
        zip(*targets, strict=True), zip(*columns, strict=True), strict=True
    ):
        found.write(w, list(results), list(operands))


def _bitcast(w: KernelText, op: Operation) -> None:
    """Registers have no type: the same ones."""
    source, result = op.operands[0], op.results[0]
    if ptx.bits(source.type) != ptx.bits(result.type):
        raise FragirError(f"{source.type} and {result.type} differ in their bits")
    w.alias(result, w.in_registers(source))


# -- missing ---------------------------------------------------------------------------------------
# What there is, where an operation has no instruction: for messages.


def hint(name: str) -> str:
    """A way out where an operation cannot be written as PTX."""
    dialect = name.partition(".")[0]
    if dialect not in ("math", "arith"):
        return "lower tiles with convert-frag-to-ptx first"
    known = {*tables.FLOAT, *tables.SCALED, *tables.INTEGER, *SUBJECTS}
    names = sorted(each.partition(".")[2] for each in known if each.startswith(dialect + "."))
    return f"{dialect} has {', '.join(names)}"
