"""Random products of tiles: instruction, tile, warps, memory order, loops over K, what follows."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from .draws import layouts
from .judge import divided, judge


@dataclass(frozen=True)
class Multiply:
    """Types and shape of one instruction, and the oldest target to try it on."""

    m: int
    n: int
    k: int
    a: str
    b: str
    c: str
    target: str = "sm_80"


BYTES = [(a, b) for a in ("si8", "ui8") for b in ("si8", "ui8")]
INSTRUCTIONS = (
    *(Multiply(16, 8, k, "f16", "f16", c) for k in (8, 16) for c in ("f16", "f32")),
    *(Multiply(16, 8, k, "bf16", "bf16", "f32") for k in (8, 16)),
    *(Multiply(16, 8, k, "tf32", "tf32", "f32") for k in (4, 8)),
    Multiply(8, 8, 4, "f64", "f64", "f64"),
    *(Multiply(8, 8, 16, a, b, "i32", "sm_75") for a, b in BYTES),
    *(Multiply(16, 8, k, a, b, "i32") for k in (16, 32) for a, b in BYTES),
    *(Multiply(16, 8, 32, a, a, "f32", "sm_89") for a in ("f8E4M3FN", "f8E5M2")),
)
BYTES_OF = {"f64": 8, "tf32": 4, "f16": 2, "bf16": 2}
SWIZZLES = (0, 32, 64, 128)
AFTER = {
    "f32": ("f16", "bf16", "f32"),
    "f16": ("f16", "f32"),
    "i32": ("i32", "f32"),
    "f64": ("f64",),
}


def shared_type(draw: st.DrawFn, shape: tuple[int, ...], element: str) -> str:
    swizzle = draw(st.sampled_from(SWIZZLES))
    space = f"#frag.shared<swizzle = {swizzle}>" if swizzle else "#frag.shared"
    return f"memref<{shape[0]}x{shape[1]}x{element}, {space}>"


def memory_type(draw: st.DrawFn, shape: tuple[int, ...], element: str) -> str:
    order = draw(st.sampled_from(["", "", "", "pitch", "column"]))
    layout = {
        "": "",
        "pitch": f", strided<[{shape[1] + draw(st.sampled_from([1, 2, 16]))}, 1]>",
        "column": f", strided<[1, {shape[0]}]>",
    }[order]
    return f"memref<{shape[0]}x{shape[1]}x{element}{layout}>"


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, str]:
    """A product over K in a loop, with A and B by way of shared memory or not."""
    one = draw(st.sampled_from(INSTRUCTIONS))
    target = draw(st.sampled_from([one.target, "sm_90a"]))
    warps = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    tm = one.m * warps[0] * draw(st.integers(1, 3))
    tn = one.n * warps[1] * draw(st.integers(1, 3))
    tk = one.k * draw(st.integers(1, 3))
    rounds = draw(st.integers(0, 3))
    masked = draw(st.booleans())
    # the real sizes; with a mask the last tile hangs over
    m, n = (draw(st.integers(1, t)) if masked else t for t in (tm, tn))
    k = max(1, rounds * tk - (draw(st.integers(0, tk - 1)) if masked else 0))
    if not masked:
        k = max(k, tk)
    lines: list[str] = []
    arguments: list[str] = []
    loads: dict[str, str] = {}
    copies: list[str] = []
    word = " masked" if masked else ""
    for name, element, shape, tile, starts in (
        ("a", one.a, (m, k), (tm, tk), ("0", "%k0")),
        ("b", one.b, (k, n), (tk, tn), ("%k0", "0")),
    ):
        transposed = draw(st.booleans())
        if transposed:
            shape, starts = shape[::-1], starts[::-1]
        stored = tile[::-1] if transposed else tile
        type_ = memory_type(draw, shape, element)
        arguments.append(f"%{name}: {type_}")
        result = f"!frag.tile<{tile[0]}x{tile[1]}x{element}>"
        turned = " transposed" if transposed else ""
        at = ", ".join(starts)
        if draw(st.booleans()):
            shared = shared_type(draw, stored, element)
            lines.append(f"%s{name} = memref.alloc() : {shared}")
            kind = draw(st.sampled_from(["", "async "]))
            copies.append(
                f"frag.copy {kind}%{name}[{at}] to %s{name}[]{word} : {type_} to {shared}"
            )
            loads[name] = f"%t{name} = frag.load %s{name}[0, 0]{turned} : {shared} -> {result}"
        else:
            loads[name] = f"%t{name} = frag.load %{name}[{at}]{turned}{word} : {type_} -> {result}"
    acc = f"!frag.tile<{tm}x{tn}x{one.c}>"
    lines.append(f"%zero = arith.constant {'0' if one.c == 'i32' else '0.0'} : {one.c}")
    lines.append(f"%start = frag.fill %zero : {acc}")
    if draw(st.booleans()):
        type_ = memory_type(draw, (m, n), one.c)
        arguments.append(f"%c: {type_}")
        lines[-1] = f"%start = frag.load %c[0, 0]{word} : {type_} -> {acc}"
    lines += [
        "%i0 = arith.constant 0 : index",
        f"%step = arith.constant {tk} : index",
        f"%last = arith.constant {rounds * tk} : index",
    ]
    body = [*copies]
    if copies:
        body += ["frag.commit", "frag.wait 0", "frag.barrier"]
    body += [loads["a"], loads["b"]]
    a_type, b_type = (f"!frag.tile<{s}>" for s in (f"{tm}x{tk}x{one.a}", f"{tk}x{tn}x{one.b}"))
    using = f' using "m{one.m}n{one.n}k{one.k}.{_ptx(one.a)}"'
    body.append(f"%sum = frag.mma %ta, %tb, %acc{using} : {a_type}, {b_type}, {acc} -> {acc}")
    if copies:
        body.append("frag.barrier")
    lines.append(
        f"%total = scf.for %k0 = %i0 to %last step %step iter_args(%acc = %start) -> ({acc}) {{"
    )
    lines += [f"  {line}" for line in body]
    lines += [f"  scf.yield %sum : {acc}", "}"]
    element, value = one.c, "%total"
    target_type = draw(st.sampled_from(AFTER[one.c]))
    if target_type != element:
        lines.append(f"%cast = frag.cast {value} : {acc} -> !frag.tile<{tm}x{tn}x{target_type}>")
        element, value = target_type, "%cast"
    layout = ""
    threads = 32 * warps[0] * warps[1]
    if threads & (threads - 1) == 0 and tm * tn % threads == 0 and draw(st.booleans()):
        layout = f', #frag.layout<"{draw(layouts(tm, tn, threads // 32))}">'
        before = f"!frag.tile<{tm}x{tn}x{element}>"
        lines.append(
            f"%other = frag.convert {value} : {before} -> !frag.tile<{tm}x{tn}x{element}{layout}>"
        )
        value = "%other"
    transposed = draw(st.booleans())
    type_ = memory_type(draw, (n, m) if transposed else (m, n), element)
    arguments.append(f"%d: {type_}")
    turned = " transposed" if transposed else ""
    lines.append(
        f"frag.store {value}, %d[0, 0]{turned}{word} : !frag.tile<{tm}x{tn}x{element}{layout}>, "
        f"{type_}"
    )
    attribute = f"attributes {{frag.warps = array<i64: {warps[0]}, {warps[1]}>}}"
    text = "\n".join(f"  {line}" for line in [*lines, "func.return"])
    return f"func.func @product({', '.join(arguments)}) {attribute} {{\n{text}\n}}\n", target


def _ptx(element: str) -> str:
    names = {"si8": "s8", "ui8": "u8", "f8E4M3FN": "e4m3", "f8E5M2": "e5m2"}
    return names.get(element, element)


@divided(25, 5, program=programs(), seed=st.integers(0, 3))
def test_products(program: tuple[str, str], seed: int) -> None:
    text, target = program
    judge(text, target, seed=seed)
