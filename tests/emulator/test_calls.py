"""Recursion, calls through registers, alloca, printf, the heap, assertions."""

from __future__ import annotations

import io

import numpy as np
import pytest

from fragir.emulator import EmulationError, run
from fragir.errors import FragirError
from fragir.toolchain.ptxas import assemble
from tests.emulator.kernels import HEAD, body, launch

FACTORIAL = """
.func (.reg .u32 result) factorial (.reg .u32 n)
{
    .reg .pred %p; .reg .u32 %r<4>;
    setp.lt.u32 %p, n, 2; @%p bra ONE;
    sub.u32 %r1, n, 1;
    call (%r2), factorial, (%r1);
    mul.lo.u32 result, %r2, n;
    ret;
ONE:
    mov.u32 result, 1;
    ret;
}
"""
#: fib(n), and through a pointer into each caller's frame the number of calls below it.
FIBONACCI = """
.func (.param .b32 result) fibonacci (.param .b32 n, .param .b64 calls)
{
    .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %d<4>; .local .align 4 .b32 below[2];
    ld.param.b32 %r1, [n]; ld.param.b64 %d1, [calls]; mov.b32 %r2, 0;
    st.local.b32 [below], %r2; st.local.b32 [below+4], %r2; mov.b32 %r5, %r1;
    setp.lt.u32 %p, %r1, 2; @%p bra DONE;
    cvta.local.u64 %d2, below; sub.u32 %r1, %r1, 1;
    {
        .param .b32 a; .param .b64 b; .param .b32 out;
        st.param.b32 [a], %r1; st.param.b64 [b], %d2;
        call.uni (out), fibonacci, (a, b);
        ld.param.b32 %r3, [out];
    }
    sub.u32 %r1, %r1, 1; add.u64 %d3, %d2, 4;
    {
        .param .b32 a; .param .b64 b; .param .b32 out;
        st.param.b32 [a], %r1; st.param.b64 [b], %d3;
        call.uni (out), fibonacci, (a, b);
        ld.param.b32 %r4, [out];
    }
    add.u32 %r5, %r3, %r4;
DONE:
    ld.local.b32 %r6, [below]; ld.local.b32 %r7, [below+4]; add.u32 %r6, %r6, %r7;
    add.u32 %r6, %r6, 1; st.b32 [%d1], %r6;
    st.param.b32 [result], %r5;
    ret;
}
"""


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("schedule", [None, 3])
def test_recursion_with_register_parameters(check: bool, schedule: int | None) -> None:
    out, report = launch(
        "rem.u32 %r1, %tid, 13; call (%r2), factorial, (%r1); st.global.u32 [%out], %r2;",
        before=FACTORIAL,
        check=check,
        schedule=schedule,
    )
    factorials = np.cumprod([1, *range(1, 13)])
    assert (out[:, :4].copy().view(np.uint32)[:, 0] == factorials[np.arange(32) % 13]).all()
    assert report.findings == []


@pytest.mark.parametrize("check", [False, True])
def test_every_call_has_its_own_local_memory(check: bool) -> None:
    out, report = launch(
        """
        .local .align 4 .b32 total; cvta.local.u64 %rd1, total; rem.u32 %r1, %tid, 9;
        { .param .b32 a; .param .b64 b; .param .b32 r;
          st.param.b32 [a], %r1; st.param.b64 [b], %rd1; call (r), fibonacci, (a, b);
          ld.param.b32 %r2, [r]; }
        ld.local.b32 %r3, [total]; st.global.v2.u32 [%out], {%r2, %r3};
        """,
        before=FIBONACCI,
        check=check,
    )
    numbers, calls = [0, 1], [1, 1]
    for _ in range(8):
        numbers.append(numbers[-1] + numbers[-2])
        calls.append(calls[-1] + calls[-2] + 1)
    which = np.arange(32) % 9
    got = out[:, :8].copy().view(np.uint32)
    assert (got[:, 0] == np.array(numbers)[which]).all()
    assert (got[:, 1] == np.array(calls)[which]).all()
    assert report.findings == []


def test_a_result_that_is_missing_is_found_in_recursion() -> None:
    text = FACTORIAL.replace("mov.u32 result, 1;", "")
    _, report = launch(
        "call (%r2), factorial, (%tid); st.global.u32 [%out], %r2;", before=text, check=True
    )
    assert {f.kind for f in report.findings} == {"uninitialised"}


def test_stacks_are_bounded() -> None:
    endless = FACTORIAL.replace("sub.u32 %r1, n, 1;", "mov.u32 %r1, n;")
    with pytest.raises(EmulationError, match="the stack overflows: it has 1008 bytes"):
        launch("call (%r2), factorial, (7);", before=endless, stack=1000)
    with pytest.raises(EmulationError, match="nested more than 1000 deep"):
        launch("call (%r2), factorial, (7);", before=endless)


MUTUAL = """
.func (.reg .pred r) odd (.reg .u32 n);
.func (.reg .pred r) even (.reg .u32 n)
{
    .reg .pred %p; .reg .u32 %m;
    setp.eq.u32 %p, n, 0; setp.eq.u32 r, 0, 0; @%p ret;
    sub.u32 %m, n, 1; call (r), odd, (%m); ret;
}
.func (.reg .pred r) odd (.reg .u32 n)
{
    .reg .pred %p; .reg .u32 %m;
    setp.eq.u32 %p, n, 0; setp.ne.u32 r, 0, 0; @%p ret;
    sub.u32 %m, n, 1; call (r), even, (%m); ret;
}
"""


def test_functions_that_call_each_other() -> None:
    out, _ = launch(
        "call (%p1), even, (%tid); selp.u32 %r1, 1, 0, %p1; st.global.u32 [%out], %r1;",
        before=MUTUAL,
        check=True,
    )
    assert (out[:, 0] == 1 - np.arange(32) % 2).all()


TABLE = """
.func (.param .b32 r) twice (.param .b32 x)
{ .reg .b32 %r<3>; ld.param.b32 %r1, [x]; shl.b32 %r1, %r1, 1; st.param.b32 [r], %r1; ret; }
.func (.param .b32 r) square (.param .b32 x)
{ .reg .b32 %r<3>; ld.param.b32 %r1, [x]; mul.lo.u32 %r1, %r1, %r1; st.param.b32 [r], %r1; ret; }
.func (.param .b32 r) nothing (.param .b32 x) { ret; }
.global .u64 table[3] = {twice, square, nothing};
"""


def through_table(mask: int) -> str:
    return f"""
        and.b32 %r1, %tid, {mask}; mov.u64 %rd1, table; mad.wide.u32 %rd1, %r1, 8, %rd1;
        ld.global.u64 %rd2, [%rd1];
    proto: .callprototype (.param .b32 _) _ (.param .b32 _);
        {{ .param .b32 a; .param .b32 r; st.param.b32 [a], %tid;
          call (r), %rd2, (a), proto; ld.param.b32 %r2, [r]; }}
        st.global.u32 [%out], %r2;
    """


def test_calls_through_a_table_diverge() -> None:
    out, report = launch(through_table(1), before=TABLE, check=True)
    t = np.arange(32)
    assert (out[:, :4].copy().view(np.uint32)[:, 0] == np.where(t % 2, t * t, 2 * t)).all()
    assert report.findings == []


def test_a_function_of_a_table_that_returns_nothing() -> None:
    _, report = launch(through_table(2), before=TABLE, check=True)
    assert [f.kind for f in report.findings] == ["uninitialised"]


def test_null_is_no_function() -> None:
    with pytest.raises(EmulationError, match="0x0 is not the address of a function"):
        launch(
            through_table(1).replace("ld.global.u64 %rd2, [%rd1];", "mov.u64 %rd2, 0;"),
            before=TABLE,
        )


RECURSION_BY_POINTER = """
.func (.param .b32 r) down (.param .b32 x, .param .b64 self)
{
    .reg .pred %p; .reg .b32 %r<4>; .reg .b64 %d<2>;
    ld.param.b32 %r1, [x]; ld.param.b64 %d1, [self]; mov.b32 %r2, 0;
    setp.eq.u32 %p, %r1, 0; @%p bra DONE; sub.u32 %r3, %r1, 1;
proto: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b64 _);
    { .param .b32 a; .param .b64 b; .param .b32 o; st.param.b32 [a], %r3; st.param.b64 [b], %d1;
      call (o), %d1, (a, b), proto; ld.param.b32 %r2, [o]; }
    add.u32 %r2, %r2, %r1;
DONE:
    st.param.b32 [r], %r2; ret;
}
"""


@pytest.mark.parametrize("check", [False, True])
def test_recursion_through_a_pointer(check: bool) -> None:
    out, report = launch(
        """
        mov.u64 %rd1, down;
        { .param .b32 a; .param .b64 b; .param .b32 r; st.param.b32 [a], %tid;
          st.param.b64 [b], %rd1; call (r), down, (a, b); ld.param.b32 %r2, [r]; }
        st.global.u32 [%out], %r2;
        """,
        before=RECURSION_BY_POINTER,
        check=check,
    )
    t = np.arange(32)
    assert (out[:, :4].copy().view(np.uint32)[:, 0] == t * (t + 1) // 2).all()
    assert report.findings == []


def test_alloca() -> None:
    out, report = launch(
        """
        stacksave.u64 %rd1; and.b32 %r1, %tid, 3; add.u32 %r1, %r1, 1; mul.wide.u32 %rd2, %r1, 4;
        alloca.u64 %rd3, %rd2; alloca.u64 %rd4, 64, 32; and.b64 %rd5, %rd4, 31;
        mov.u32 %r2, 0; mov.u64 %rd6, %rd3;
    L:  st.local.u32 [%rd6], %r2; add.u64 %rd6, %rd6, 4; add.u32 %r2, %r2, 1;
        setp.lt.u32 %p1, %r2, %r1; @%p1 bra L;
        st.local.u32 [%rd4], 99; ld.local.u32 %r3, [%rd6+-4]; stackrestore.u64 %rd1;
        alloca.u64 %rd7, 4; sub.u64 %rd8, %rd7, %rd3; cvt.u32.u64 %r4, %rd8; cvt.u32.u64 %r5, %rd5;
        st.global.v4.u32 [%out], {%r3, %r4, %r5, %r2};
        """,
        check=True,
    )
    got = out[:, :16].copy().view(np.uint32)
    counts = np.arange(32) % 4 + 1
    assert (got == np.stack([counts - 1, 0 * counts, 0 * counts, counts], axis=1)).all()
    assert report.findings == []
    with pytest.raises(EmulationError, match="the stack overflows"):
        launch("alloca.u64 %rd1, 4096;", stack=2048)


def test_a_function_gives_back_what_it_took() -> None:
    before = """
.func (.reg .u64 r) take (.reg .u32 n) { .reg .u64 %d; cvt.u64.u32 %d, n; alloca.u64 r, %d; ret; }
"""
    out, _ = launch(
        "call (%rd1), take, (100); call (%rd2), take, (8); sub.u64 %rd1, %rd1, %rd2;"
        "st.global.u64 [%out], %rd1;",
        before=before,
    )
    assert not out.any()


# -- functions without a body ----------------------------------------------------------------------

PRINTF = """
.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
.global .align 1 .b8 form[64] = {FORM};
.global .align 1 .b8 word[4] = {97, 98, 99, 0};
"""


def printf(form: str, values: str, guard: str = "setp.eq.u32 %p1, %tid, 0;") -> tuple[str, str]:
    """(declarations, body): lane 0 prints; `values` stores the arguments to [%rd1]."""
    data = ", ".join(str(b) for b in form.encode() + b"\0")
    text = f"""
        .local .align 8 .b8 args[64]; cvta.local.u64 %rd1, args; {guard}
        {values}
        mov.u64 %rd2, form; cvta.global.u64 %rd2, %rd2; @!%p1 bra SKIP;
        {{ .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %rd2;
          st.param.b64 [a], %rd1; call.uni (r), vprintf, (f, a); ld.param.b32 %r9, [r]; }}
        st.global.u32 [%out], %r9;
    SKIP:
    """
    return PRINTF.replace("FORM", data), text


@pytest.mark.parametrize(
    ("form", "values", "printed", "count"),
    [
        ("no arguments: 100%%\n", "", "no arguments: 100%\n", 0),
        ("%d %5u|%-5d|%05d", "I 0 -3 I 4 7 I 8 8 I 12 9", "-3     7|8    |00009", 4),
        ("%x %#X %#o %c", "I 0 255 I 4 255 I 8 8 I 12 65", "ff 0XFF 010 A", 4),
        ("%d %lld %hhd", "I 0 1 L 8 -5000000000 I 16 511", "1 -5000000000 -1", 3),
        ("%f %8.3f %g %.2e", "D 0 1.5 D 8 -2.25 D 16 0.0001 D 24 12345.0", None, 4),
        ("%*d|%.*f", "I 0 4 I 4 7 I 8 1 D 16 2.55", "   7|2.5", 2),
        ("%s!%s", "S 0 L 8 0", "abc!(null)", 2),
        ("%p %u", "L 0 4096 I 8 -1", "0x1000 4294967295", 2),
    ],
)
def test_printf(form: str, values: str, printed: str | None, count: int) -> None:
    stores: list[str] = []
    words = values.split()
    while words:
        kind, at = words[0], words[1]
        if kind == "S":
            stores.append(f"mov.u64 %rd3, word; st.local.u64 [args+{at}], %rd3;")
            words = words[2:]
            continue
        width = {"I": "u32", "L": "u64", "D": "f64"}[kind]
        stores.append(f"st.local.{width} [args+{at}], {words[2]};")
        words = words[3:]
    before, text = printf(form, " ".join(stores))
    stream = io.StringIO()
    out, report = launch(text, before=before, output=stream, check=True)
    wanted = printed if printed is not None else "1.500000   -2.250 0.0001 1.23e+04"
    assert report.printed == [wanted]
    assert stream.getvalue() == wanted
    assert out[0, :4].view(np.int32)[0] == count
    assert report.findings == []


def test_every_lane_prints() -> None:
    before, text = printf("%d,", "st.local.u32 [args], %tid;", "setp.lt.u32 %p1, %tid, 5;")
    _, report = launch(text, before=before)
    assert "".join(report.printed) == "0,1,2,3,4,"


def test_the_heap() -> None:
    before = """
.extern .func (.param .b64 r) malloc (.param .b64 size);
.extern .func free (.param .b64 p);
"""
    text = """
        { .param .b64 s; .param .b64 r; st.param.b64 [s], 8; call.uni (r), malloc, (s);
          ld.param.b64 %rd1, [r]; }
        cvt.u64.u32 %rd2, %tid; st.u64 [%rd1], %rd2; bar.sync 0; ld.u64 %rd3, [%rd1];
        { .param .b64 p; st.param.b64 [p], %rd1; call.uni free, (p); }
        st.global.v2.u64 [%out], {%rd1, %rd3};
    """
    out, report = launch(text, before=before, check=True)
    got = out[:, :16].copy().view(np.uint64)
    assert len(np.unique(got[:, 0])) == 32
    assert (got[:, 1] == np.arange(32)).all()
    assert report.findings == []
    with pytest.raises(EmulationError, match=r"8 bytes at offset 8 of a piece of the heap"):
        launch(text.replace("st.u64 [%rd1]", "st.u64 [%rd1+8]"), before=before)
    with pytest.raises(EmulationError, match="free of what malloc has not given"):
        launch(text.replace("[p], %rd1;", "[p], %out;"), before=before)
    late = text + "ld.u64 %rd3, [%rd1];"
    with pytest.raises(EmulationError, match="8 bytes"):
        launch(late, before=before)


def test_the_heap_is_used_again_and_ends() -> None:
    before = """
.extern .func (.param .b64 r) malloc (.param .b64 size);
.extern .func free (.param .b64 p);
"""
    text = """
        mov.u32 %r1, 0; setp.ne.u32 %p1, %tid, 0; @%p1 bra END;
    L:  { .param .b64 s; .param .b64 r; st.param.b64 [s], 3000000; call.uni (r), malloc, (s);
          ld.param.b64 %rd1, [r]; }
        setp.eq.u64 %p2, %rd1, 0; @%p2 bra END;
        FREE
        add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 5; @%p2 bra L;
    END:
        st.global.u32 [%out], %r1;
    """
    free = "{ .param .b64 p; st.param.b64 [p], %rd1; call.uni free, (p); }"
    kept, _ = launch(text.replace("FREE", ""), before=before)
    given, _ = launch(text.replace("FREE", free), before=before)
    assert (kept[0, 0], given[0, 0]) == (2, 5)


def test_assertions_say_where() -> None:
    before = """
.extern .func __assertfail
    (.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 c);
.global .align 1 .b8 text[8] = {120, 32, 62, 32, 48, 0, 107, 0};
"""
    text = """
        mov.u64 %rd1, text; add.u64 %rd2, %rd1, 6; mov.u32 %r1, 42; mov.u64 %rd3, 1;
        setp.ne.u32 %p1, %tid, 9; @%p1 bra OK;
        { .param .b64 m; .param .b64 f; .param .b32 l; .param .b64 n; .param .b64 c;
          st.param.b64 [m], %rd1; st.param.b64 [f], %rd2; st.param.b32 [l], %r1;
          st.param.b64 [n], %rd2; st.param.b64 [c], %rd3;
          call.uni __assertfail, (m, f, l, n, c); }
    OK:
    """
    with pytest.raises(EmulationError, match="assertion failed: x > 0, k:42, in k") as error:
        launch(text, before=before)
    assert error.value.lane == 9


def test_other_functions_without_a_body_are_refused() -> None:
    before = ".extern .func nobody (.param .b64 p);"
    text = "{ .param .b64 p; call.uni nobody, (p); }"
    with pytest.raises(EmulationError, match="the function nobody has no body"):
        launch(text, before=before)
    wrong = PRINTF.replace("FORM", "0")
    with pytest.raises(EmulationError, match="vprintf takes 2 arguments, not 1"):
        launch("{ .param .b64 p; call.uni vprintf, (p); }", before=wrong)


def test_traps_say_whose() -> None:
    text = body("setp.eq.u32 %p1, %tid, 37; @%p1 trap;")
    with pytest.raises(EmulationError, match="warp 1 lane 5: the kernel trapped") as error:
        run(text, block=(64,), arguments=[np.zeros((64, 64), np.uint8)] * 2)
    assert (error.value.warp, error.value.lane) == (1, 5)
    assert HEAD in text


CALLED = """
.version 8.6
.target sm_90a
.address_size 64
.func (.param .b32 r) f (.param .b32 a) { .reg .b32 %r<2>; st.param.b32 [r], 5; ret; }
.func (.reg .b32 r) h (.reg .b32 a) { add.u32 r, a, 1; ret; }
.func (.param .align 8 .b8 r[8]) s (.param .align 8 .b8 a[8]) { st.param.b64 [r], 1; ret; }
.func n () { ret; }
.visible .entry other () { ret; }
.visible .entry k (.param .u32 p) {
.reg .b32 %r<4>; .reg .b64 %rd<3>; .reg .b16 %h<3>; .reg .pred %p<3>;
CALL
ret; }
"""


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("{ .param .b32 q; call (nosuch), f, (7); ld.param.b32 %r1, [q]; }", "nosuch is not decl"),
        ("call (%r1), h, (nosuch);", "nosuch is not declared"),
        ("call (%r1), h, (%nosuch);", "%nosuch is not declared"),
        ("call (7), h, (%r1);", "a result of a call goes to a register, a variable or _"),
        ("call (%r1), h, (_);", "cannot take this operand"),
        ("call (%rd1), h, (%r2);", "a value of 32 bits is passed where 64 are expected"),
        ("call (%r1), h, (%rd1);", "a value of 64 bits is passed where 32 are expected"),
        ("call (%r1), h, (%h1);", "a value of 16 bits is passed where 32 are expected"),
        ("call (%p1), h, (%r1);", "a value of 32 bits is passed where 1 are expected"),
        ("{ .param .b64 w; call (%r1), f, (w); }", "a value of 64 bits is passed where 32 are"),
        ("{ .param .align 8 .b8 w[4]; .param .align 8 .b8 q[8]; call (q), s, (w); }", "of 32 bits"),
        ("call (%r1), f, (p);", "p cannot be passed by a call"),
        ("call (%r1), h;", "passes 0 values, 1 are expected"),
        ("call other, ();", "other is a kernel, a call is of a function"),
        ("call nosuch, ();", "the function nosuch has no body"),
        ("call (%r1), p, (%r1);", "the function p has no body"),
    ],
)
def test_calls_that_are_none(call: str, words: str) -> None:
    """An error at the call's line, of ptxas too."""
    ptx = CALLED.replace("CALL", call)
    with pytest.raises(EmulationError, match=words) as caught:
        run(ptx, "k", arguments=[3])
    assert caught.value.line == 12
    with pytest.raises(FragirError, match="ptxas"):
        assemble(ptx, "sm_90a")


@pytest.mark.parametrize(
    "call",
    [
        *("call (%r1), h, (7);", "call (%r1), h, (%laneid);", "call (_), h, (%r1);"),
        *("call (%r1), f, (%r2);", "{ .param .b32 w; call (w), h, (w); }", "call n;"),
    ],
)
def test_calls_with_registers_and_literals(call: str) -> None:
    ptx = CALLED.replace("CALL", call)
    run(ptx, "k", arguments=[3], check=True)
    if "laneid" not in call:
        assemble(ptx, "sm_90a")


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("bra;", "bra takes 1 operand, not 0"),
        ("bra.uni;", "bra.uni takes 1 operand, not 0"),
        ("bra 5;", "bra takes one label"),
        ("bra h;", "the label h is not declared"),
        ("brx.idx %r1;", "brx.idx takes 2 operands, not 1"),
        ("brx.idx %r1, zz;", "brx.idx needs the label of a .branchtargets"),
        ("call;", "call takes the name of a function"),
        ("call (%r1), 5, (%r1);", "call takes the name of a function"),
    ],
)
def test_branches_that_are_none(statement: str, words: str) -> None:
    ptx = CALLED.replace("CALL", statement)
    with pytest.raises(EmulationError, match=words):
        run(ptx, "k", arguments=[3])
    with pytest.raises(FragirError, match="ptxas"):
        assemble(ptx, "sm_90a")
