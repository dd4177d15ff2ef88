"""One product's result as an operand of the next: conversions between fragments."""

from __future__ import annotations

from hypothesis import strategies as st

from .judge import divided, judge

# first product's instruction, its C; the second's instruction and the type of its A
FIRST = (
    ("m16n8k16.f16", "f16", "f32"),
    ("m16n8k8.f16", "f16", "f16"),
    ("m8n8k16.s8", "si8", "i32"),
)
SECOND = {
    "f16": ("m16n8k16.f16", "m16n8k8.f16"),
    "bf16": ("m16n8k16.bf16",),
    "tf32": ("m16n8k8.tf32",),
}


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, str]:
    """D = cast(A B) E, or E cast(A B), over several warps and with layouts inferred but for one."""
    one, a, c = draw(st.sampled_from(FIRST))
    middle = draw(st.sampled_from(("f16", "bf16", "tf32") if c == "f32" else ("f16",)))
    two = draw(st.sampled_from(SECOND[middle]))
    warps = draw(st.sampled_from([(1, 1), (2, 1), (1, 2), (2, 2)]))
    m, n = 16 * warps[0] * draw(st.integers(1, 2)), 16 * warps[1] * draw(st.integers(1, 2))
    k, p = 16 * draw(st.integers(1, 2)), 16 * draw(st.integers(1, 2))
    as_b = draw(st.booleans())
    tiles = {
        "ab": f"!frag.tile<{m}x{n}x{{}}>",
        "e": f"!frag.tile<{p * warps[0]}x{m}x{middle}>"
        if as_b
        else f"!frag.tile<{n}x{p * warps[1]}x{middle}>",
        "d": f"!frag.tile<{p * warps[0]}x{n}xf32>"
        if as_b
        else f"!frag.tile<{m}x{p * warps[1]}xf32>",
    }
    memory = {name: tile.replace("!frag.tile", "memref") for name, tile in tiles.items()}
    layout = f"#frag.mma<{two}, {'b' if as_b else 'a'}, warps = [{warps[0]}, {warps[1]}]>"
    product, held = tiles["ab"].format(c), tiles["ab"].format(middle)
    placed = held.replace(">", f", {layout}>", 1)
    lines = [
        f"%a = frag.load %ma[0, 0] : memref<{m}x{k}x{a}> -> !frag.tile<{m}x{k}x{a}>",
        f"%b = frag.load %mb[0, 0] : memref<{k}x{n}x{a}> -> !frag.tile<{k}x{n}x{a}>",
        f"%e = frag.load %me[0, 0] : {memory['e']} -> {tiles['e']}",
        f"%z = arith.constant {'0' if c == 'i32' else '0.0'} : {c}",
        f"%zc = frag.fill %z : {product}",
        f'%ab = frag.mma %a, %b, %zc using "{one}" : !frag.tile<{m}x{k}x{a}>, '
        f"!frag.tile<{k}x{n}x{a}>, {product} -> {product}",
    ]
    value, before = "%ab", product
    if c == "i32":
        lines.append(f"%wide = frag.cast %ab : {product} -> {tiles['ab'].format('f32')}")
        value, before = "%wide", tiles["ab"].format("f32")
        lines += [
            "%small = arith.constant 0.0001 : f32",
            f"%less = frag.map %wide : {before} -> {before} {{",
            "^bb0(%v: f32):",
            "  %r = arith.mulf %v, %small : f32",
            "  frag.yield %r : f32",
            "}",
        ]
        value = "%less"
    if before != held:
        lines.append(f"%cast = frag.cast {value} : {before} -> {held}")
        value = "%cast"
    lines += [
        f"%moved = frag.convert {value} : {held} -> {placed}",
        "%zf = arith.constant 0.0 : f32",
        f"%zd = frag.fill %zf : {tiles['d']}",
    ]
    operands = (
        ("%e, %moved", f"{tiles['e']}, {placed}")
        if as_b
        else ("%moved, %e", f"{placed}, {tiles['e']}")
    )
    lines += [
        f'%d = frag.mma {operands[0]}, %zd using "{two}" : {operands[1]}, {tiles["d"]} '
        f"-> {tiles['d']}",
        f"frag.store %d, %md[0, 0] : {tiles['d']}, {memory['d']}",
        "func.return",
    ]
    body = "\n".join(f"  {line}" for line in lines)
    memories = f"memref<{m}x{k}x{a}>", f"memref<{k}x{n}x{a}>", memory["e"], memory["d"]
    arguments = ", ".join(f"%m{x}: {t}" for x, t in zip("abed", memories, strict=True))
    attribute = f"attributes {{frag.warps = array<i64: {warps[0]}, {warps[1]}>}}"
    return f"func.func @chain({arguments}) {attribute} {{\n{body}\n}}\n", "sm_80"


@divided(18, 3, program=programs(), seed=st.integers(0, 3))
def test_chains(program: tuple[str, str], seed: int) -> None:
    judge(*program, seed=seed)
