"""`frag.matmul` of random sizes, types, transposes, tiles, stages, warps and epilogues."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from .judge import divided, judge

# types of A and B, accumulators (the first is the usual), types of C, by target
F16 = ("f16", "f16", ("f32", "f16"), ("f32", "f16"))
BF16 = ("bf16", "bf16", ("f32",), ("f32", "bf16"))
TF32 = ("tf32", "tf32", ("f32",), ("f32",))
F64 = ("f64", "f64", ("f64",), ("f64",))
BYTES = [(a, b, ("i32",), ("i32",)) for a in ("si8", "ui8") for b in ("si8", "ui8")]
FLOAT8 = [
    (a, b, ("f32", "f16"), ("f32", "f16"))
    for a in ("f8E4M3FN", "f8E5M2")
    for b in ("f8E4M3FN", "f8E5M2")
]
TYPES = {
    "sm_75": [F16, *BYTES],
    "sm_80": [F16, F16, BF16, TF32, F64, *BYTES],
    "sm_89": [F16, *FLOAT8],
    "sm_90a": [F16, F16, BF16, TF32, F64, *BYTES, *FLOAT8],
}
K_STEP = {"f16": 16, "bf16": 16, "tf32": 8, "f64": 4, "si8": 32, "ui8": 32}
WIDE = {"f16", "bf16", "tf32", "si8", "ui8", "f8E4M3FN", "f8E5M2"}


@dataclass(frozen=True)
class Product:
    """A program and the sizes to run it with."""

    program: str
    target: str
    sizes: dict[str, int]


@st.composite
def products(draw: st.DrawFn) -> Product:
    target = draw(st.sampled_from(sorted(TYPES)))
    a, b, accumulators, results = draw(st.sampled_from(TYPES[target]))
    accumulate = draw(st.sampled_from(accumulators))
    result = draw(st.sampled_from(results))
    m, n, k = (draw(st.integers(1, 140)) for _ in range(3))
    if draw(st.booleans()):
        m, n, k = ((size + 15) // 16 * 16 for size in (m, n, k))
    at, bt = draw(st.booleans()), draw(st.booleans())
    static = [draw(st.booleans()) for _ in range(3)]
    dims = [str(size) if known else "?" for size, known in zip((m, n, k), static, strict=True)]
    a_dims = (dims[2], dims[0]) if at else (dims[0], dims[2])
    b_dims = (dims[1], dims[2]) if bt else (dims[2], dims[1])
    memory = [
        f"memref<{'x'.join(shape)}x{element}>"
        for shape, element in ((a_dims, a), (b_dims, b), ((dims[0], dims[1]), result))
    ]
    attributes: list[str] = []
    wgmma = target == "sm_90a" and (a in ("f16", "bf16") or (a in WIDE and not at and bt))
    if draw(st.booleans()):
        rows, cols, step = (64, 8, K_STEP.get(a, 32)) if wgmma else (16, 8, K_STEP.get(a, 32))
        most = (2, 1) if wgmma else (2, 2)
        warps = draw(st.integers(1, most[0])), draw(st.integers(1, most[1]))
        tile = (
            rows * warps[0] * draw(st.integers(1, 2)),
            (cols * draw(st.integers(1, 8))) * warps[1],
            step * draw(st.integers(1, 3)),
        )
        if wgmma:  # wgmma needs a swizzle: rows of at least 32 bytes
            tile = (tile[0], (tile[1] + 31) // 32 * 32, (tile[2] + 31) // 32 * 32)
        attributes.append("tile = array<i64: {}, {}, {}>".format(*tile))
        attributes.append("warps = array<i64: {}, {}>".format(*warps))
    if draw(st.booleans()):
        attributes.append(f"stages = {draw(st.integers(1, 4))} : i64")
    attribute = f" {{{', '.join(attributes)}}}" if attributes else ""
    extra, epilogue = _epilogue(draw, accumulate, result, dims)
    arguments = [f"%{x}: {t}" for x, t in zip("abc", memory, strict=True)]
    with_, types = "", ""
    if extra:
        arguments.append(f"%bias: {extra}")
        with_, types = " with %bias", f" with {extra}"
    if accumulate in ("f32", "f64") and epilogue:
        arguments.append(f"%alpha: {accumulate}")
    asked = f" accumulate {accumulate}" if accumulate != accumulators[0] else ""
    first, second = f"%a{' transposed' if at else ''}", f"%b{' transposed' if bt else ''}"
    program = f"""func.func @matmul({", ".join(arguments)}) {{
  frag.matmul {first}, {second} into %c{asked}{with_}{attribute}
    : {memory[0]}, {memory[1]} into {memory[2]}{types}{epilogue}
  func.return
}}
"""
    return Product(program, target, {"m": m, "n": n, "k": k})


def _epilogue(
    draw: st.DrawFn, accumulate: str, result: str, dims: list[str]
) -> tuple[str | None, str]:
    """The type of a further operand, and the region; nothing where C can hold the sum."""
    kind = draw(st.sampled_from(["none", "scale", "column", "row", "matrix"]))
    if kind == "none" or result == "bf16":
        return None, ""
    extra = {
        "scale": None,
        "column": f"memref<{dims[1]}x{accumulate}>",
        "row": f"memref<{dims[0]}x1x{accumulate}>",
        "matrix": f"memref<{dims[0]}x{dims[1]}x{accumulate}>",
    }[kind]
    suffix = "i" if accumulate == "i32" else "f"
    parameters = f"%sum: {accumulate}, %old: {result}"
    parameters += f", %extra: {accumulate}" if extra else ""
    lines = [f"  ^bb0({parameters}):"]
    value = "%sum"
    if accumulate in ("f32", "f64"):
        lines.append(f"    %scaled = arith.mulf %alpha, %sum : {accumulate}")
        value = "%scaled"
    if extra:
        lines.append(f"    %more = arith.add{suffix} {value}, %extra : {accumulate}")
        value = "%more"
    if result == accumulate and draw(st.booleans()):
        lines.append(f"    %kept = arith.sub{suffix} {value}, %old : {accumulate}")
        value = "%kept"
    if result != accumulate:
        cast = "truncf" if accumulate == "f32" else "extf"
        lines.append(f"    %cast = arith.{cast} {value} : {accumulate} to {result}")
        value = "%cast"
    lines.append(f"    frag.yield {value} : {result}")
    return extra, " epilogue {\n" + "\n".join(lines) + "\n  }"


@divided(10, 5, product=products(), seed=st.integers(0, 3))
def test_matmul(product: Product, seed: int) -> None:
    judge(product.program, product.target, product.sizes, seed=seed)
