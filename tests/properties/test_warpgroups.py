"""Random products by wgmma: N, K, warpgroups, types, majors, swizzles, A from registers or not."""

from __future__ import annotations

from hypothesis import strategies as st

from .judge import divided, judge

BITS = {"f16": 16, "bf16": 16, "tf32": 32, "si8": 8, "ui8": 8, "f8E4M3FN": 8, "f8E5M2": 8}
K_STEP = {32: 8, 16: 16, 8: 32}
TYPES = (
    *(("f16", "f16", c) for c in ("f16", "f32")),
    ("bf16", "bf16", "f32"),
    ("tf32", "tf32", "f32"),
    *((a, b, "i32") for a in ("si8", "ui8") for b in ("si8", "ui8")),
    *(
        (a, b, c)
        for a in ("f8E4M3FN", "f8E5M2")
        for b in ("f8E4M3FN", "f8E5M2")
        for c in ("f16", "f32")
    ),
)
# integers have no odd multiples of 8 above 24 (PTX ISA 9.2, section 9.7.15.2)
INTEGER_N = (8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256)


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, str]:
    a, b, c = draw(st.sampled_from(TYPES))
    bits = BITS[a]
    groups = draw(st.sampled_from([(1, 1), (1, 1), (2, 1), (1, 2), (2, 2)]))
    # no more accumulators than registers: 512 threads have 128 each
    m = 64 * groups[0] * draw(st.integers(1, 2 if groups != (2, 2) else 1))
    n = draw(st.sampled_from(INTEGER_N) if c == "i32" else st.integers(1, 32).map(lambda i: 8 * i))
    n = min(n, 128) * groups[1]
    k = K_STEP[bits] * draw(st.integers(1, 4))
    rounds = draw(st.integers(1, 3))
    # K-major: K runs along a row of memory. A: M x K, B transposed: N x K
    a_k, b_k = (draw(st.booleans()) or bits != 16 for _ in range(2))
    from_registers = draw(st.booleans())
    lines: list[str] = []
    arguments: list[str] = []
    body: list[str] = []
    types: dict[str, str] = {}
    for name, element, k_major, outer in (("a", a, a_k, m), ("b", b, b_k, n)):
        rows, cols = (outer, k) if k_major else (k, outer)
        whole = (rows, k * rounds) if k_major else (k * rounds, cols)
        memory = f"memref<{whole[0]}x{whole[1]}x{element}>"
        arguments.append(f"%{name}: {memory}")
        at = "0, %k0" if k_major else "%k0, 0"
        turned = (name == "a") != k_major
        if name == "a" and from_registers:
            types[name] = f"!frag.tile<{m}x{k}x{element}>"
            word = " transposed" if turned else ""
            body.append(f"%ta = frag.load %a[{at}]{word} : {memory} -> {types[name]}")
            continue
        # a warpgroup's part of an MN-major operand must begin with a panel
        share = cols if k_major else outer // groups[0 if name == "a" else 1]
        share = min(share, 64) if not k_major and name == "a" else share
        fitting = [w for w in (32, 64, 128) if share * bits // 8 % w == 0]
        if not fitting:
            k_major, rows, cols = True, outer, k
            fitting = [w for w in (32, 64, 128) if k * bits // 8 % w == 0]
            memory = f"memref<{outer}x{k * rounds}x{element}>"
            arguments[-1] = f"%{name}: {memory}"
            at, turned = "0, %k0", name == "b"
        space = f"#frag.shared<swizzle = {draw(st.sampled_from(fitting))}>"
        types[name] = f"memref<{rows}x{cols}x{element}, {space}>"
        lines.append(f"%s{name} = memref.alloc() : {types[name]}")
        body.append(f"frag.copy async %{name}[{at}] to %s{name}[] : {memory} to {types[name]}")
        types[f"{name}_word"] = " transposed" if turned else ""
    acc = f"!frag.tile<{m}x{n}x{c}>"
    body += ["frag.commit", "frag.wait 0", "frag.barrier"]
    first = "%ta" if from_registers else f"%sa{types['a_word']}"
    body.append(
        f"%sum = frag.wgmma {first}, %sb{types['b_word']}, %acc : {types['a']}, {types['b']}, {acc}"
    )
    body.append("frag.barrier")
    arguments.append(f"%d: memref<{m}x{n}x{c}>")
    lines += [
        "%i0 = arith.constant 0 : index",
        f"%step = arith.constant {k} : index",
        f"%last = arith.constant {k * rounds} : index",
        f"%zero = arith.constant {'0' if c == 'i32' else '0.0'} : {c}",
        f"%start = frag.fill %zero : {acc}",
        f"%total = scf.for %k0 = %i0 to %last step %step iter_args(%acc = %start) -> ({acc}) {{",
        *(f"  {line}" for line in body),
        f"  scf.yield %sum : {acc}",
        "}",
        f"frag.store %total, %d[0, 0] : {acc}, memref<{m}x{n}x{c}>",
        "func.return",
    ]
    text = "\n".join(f"  {line}" for line in lines)
    attribute = f"attributes {{frag.warpgroups = array<i64: {groups[0]}, {groups[1]}>}}"
    return f"func.func @wgmma({', '.join(arguments)}) {attribute} {{\n{text}\n}}\n", "sm_90a"


@divided(15, 3, program=programs(), seed=st.integers(0, 3))
def test_warpgroups(program: tuple[str, str], seed: int) -> None:
    text, target = program
    judge(text, target, seed=seed)
