"""Small wgmma kernels that ptxas keeps as they are, makes serial, waits in, or reorders."""

from __future__ import annotations

FENCE = "wgmma.fence.sync.aligned;"
COMMIT = "wgmma.commit_group.sync.aligned;"
WAIT = "wgmma.wait_group.sync.aligned 0;"
A = "{%r20, %r21, %r22, %r23}"


def wait(pending: int) -> str:
    return f"wgmma.wait_group.sync.aligned {pending};"


def registers(first: int, count: int) -> str:
    return "{" + ", ".join(f"%f{i}" for i in range(first, first + count)) + "}"


def zeros(first: int, count: int) -> str:
    return "\n".join(f"mov.f32 %f{i}, 0f00000000;" for i in range(first, first + count))


def product(first: int = 1, count: int = 4, a: str = "%rd2", scale: str = "1") -> str:
    """C of `count` registers from `%f<first>`; A by descriptor or in registers."""
    more = ", 0" if a.startswith("%") else ""
    return (
        f"wgmma.mma_async.sync.aligned.m64n{2 * count}k16.f32.f16.f16 "
        f"{registers(first, count)}, {a}, %rd2, {scale}, 1, 1, 0{more};"
    )


def stores(first: int, count: int) -> str:
    return "\n".join(f"st.global.f32 [%rd1+{4 * i}], %f{i};" for i in range(first, first + count))


def kernel(*body: str, before: str = "", attributes: str = "") -> str:
    lines = "\n".join(body)
    return f""".version 8.0
.target sm_90a
.address_size 64
{before}
.visible .entry k(.param .u64 p) {attributes}
{{
.reg .pred %p<9>;
.reg .b64 %rd<9>;
.reg .b32 %r<99>;
.reg .f32 %f<400>;
ld.param.u64 %rd1, [p];
ld.global.u64 %rd2, [%rd1];
ld.global.u32 %r1, [%rd1+8];
{lines}
ret;
}}
"""


def looped(*body: str) -> str:
    """A kernel whose loop this is: as many rounds as memory says."""
    return kernel(
        zeros(1, 8),
        "\n".join(f"ld.global.u32 %r{i}, [%rd1+{4 * i}];" for i in range(20, 24)),
        "mov.u32 %r9, 0;",
        "LOOP:",
        *body,
        "add.u32 %r9, %r9, 1;",
        "setp.lt.u32 %p1, %r9, %r1;",
        "@%p1 bra LOOP;",
        WAIT,
        stores(1, 8),
    )


FUNCTION = """\
.func g(.param .b64 q)
{
.reg .b64 %rd<3>;
.reg .f32 %f<5>;
ld.param.u64 %rd1, [q];
ld.global.u64 %rd2, [%rd1];
""" + "\n".join((zeros(1, 4), FENCE, product(), COMMIT, "ret;\n}\n"))
CALL = "{ .param .b64 q; st.param.b64 [q], %rd1; call.uni g, (q); }"
DIVERGE = "mov.u32 %r7, %tid.x; setp.lt.u32 %p2, %r7, %r1;"

#: name -> (kind, words of the verdict, a piece of the line that it is about where 13.2 names one).
SPOILT: dict[str, tuple[str, str, str, str]] = {
    "clean": ("", "", "", looped(FENCE, product(), COMMIT, WAIT)),
    "read": (
        "serialized",
        "an accumulator is read while",
        "",
        looped(FENCE, product(), COMMIT, wait(1), "add.f32 %f8, %f1, %f2;"),
    ),
    "write": (
        "serialized",
        "an accumulator is written",
        "wgmma.wait_group",
        looped(FENCE, product(), COMMIT, "ld.global.f32 %f1, [%rd1+996];"),
    ),
    "input": (
        "serialized",
        "registers of A are written",
        "",
        looped(FENCE, product(a=A), COMMIT, "ld.global.u32 %r20, [%rd1+996];"),
    ),
    "two values": (
        "serialized",
        "too few registers",
        "wgmma.mma_async",
        kernel(
            zeros(1, 4), FENCE, product(), "mov.f32 %f1, 0f3f800000;", product(), COMMIT, WAIT
        ).replace("ret;", stores(1, 4) + "\nret;"),
    ),
    "fence in a branch": (
        "serialized",
        "some threads branch",
        "",
        kernel(
            zeros(1, 4), FENCE, product(), DIVERGE, "@%p2 bra L;", product(), "L:", COMMIT, WAIT
        ).replace("ret;", stores(1, 4) + "\nret;"),
    ),
    "trap": (
        "serialized",
        "some threads branch",
        "",
        looped(
            *(FENCE, product(), COMMIT, FENCE, product(5), COMMIT, wait(1)),
            *("add.f32 %f20, %f1, %f2;", "setp.eq.f32 %p1, %f20, 0f40000000;", "@%p1 trap;", WAIT),
        ),
    ),
    "function": (
        "serialized",
        "where a function is called",
        "",
        kernel(CALL, WAIT, before=FUNCTION),
    ),
    "no wait": (
        "injected-wait",
        "before the program waits",
        "st.global.f32 [%rd1+4], %f1",
        kernel(zeros(1, 4), FENCE, product(), COMMIT, stores(1, 4)),
    ),
    "no threads": (
        "setmaxnreg",
        "how many registers a thread begins with",
        "",
        kernel("setmaxnreg.dec.sync.aligned.u32 24;"),
    ),
    "too few": (
        "setmaxnreg",
        "needs more registers",
        "",
        kernel(
            *("setmaxnreg.dec.sync.aligned.u32 24;", zeros(1, 64), FENCE, product(1, 64), COMMIT),
            *(WAIT, stores(1, 64)),
            attributes=".maxntid 128 .maxnreg 168",
        ),
    ),
}


def attention(pin: str = "") -> str:
    """Two products under way, as attention has them: S is exponentiated while O is computed.

    What was written between the waits for S and for O is 32 `ex2` and 32 `add`, and then `pin`.
    """
    exponents = [
        f"ex2.approx.ftz.f32 %f{i}, %f{i};\nadd.f32 %f300, %f300, %f{i};" for i in range(1, 33)
    ]
    packed = [f"cvt.rn.f16x2.f32 %r{20 + j}, %f{2 * j + 2}, %f{2 * j + 1};" for j in range(16)]
    return kernel(
        *(zeros(1, 32), zeros(100, 32), zeros(300, 1)),
        *(f"mov.u32 %r{20 + j}, 0;" for j in range(16)),
        *("mov.u32 %r9, 0;", "setp.ne.u32 %p5, %r9, 0;", "LOOP:"),
        *(FENCE, product(1, 32, scale="%p5"), COMMIT, product(100, 32, A), COMMIT),
        *(wait(1), *exponents, pin, WAIT, *packed),
        *("add.u32 %r9, %r9, 1;", "setp.lt.u32 %p1, %r9, %r1;", "@%p1 bra LOOP;"),
        stores(100, 32),
        "st.global.f32 [%rd1], %f300;",
    )


NEVER = "mov.b32 %r90, %f300; setp.eq.u32 %p3, %r90, -1;"
"""Of no sum that a GPU computes: its NaN is 0x7fffffff."""
