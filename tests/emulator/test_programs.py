"""What is kept of a launch for the next one: nothing that the next one could see."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from fragir.emulator import EmulationError, run
from fragir.emulator.instructions.alu import elementwise, of1
from fragir.emulator.launch import decoding
from fragir.emulator.launch.decoding import Shelf
from fragir.emulator.launch.launch import PROGRAMS
from fragir.ptx.opcodes.row import Opcode
from fragir.ptx.opcodes.table import OPCODES, registered_row
from fragir.ptx.reader import PtxSyntaxError, characters_read, parse

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
#: Adds an argument, a parameter and two variables; `%s` stands for further statements.
SUM = (
    HEAD
    + """.extern .global .align 4 .b8 given[];
.global .align 4 .u32 counted = 7;
.const .align 4 .u32 fixed = 100;
.visible .entry k(.param .u64 first, .param .u64 second, .param .u32 number) {
.reg .b32 %r<9>; .reg .b64 %rd<9>;
.shared .align 4 .b8 cell[128];
ld.param.u64 %rd1, [first]; ld.param.u64 %rd2, [second]; ld.param.u32 %r1, [number];
mov.u32 %r2, %tid.x; mul.wide.u32 %rd3, %r2, 4;
add.s64 %rd1, %rd1, %rd3; add.s64 %rd2, %rd2, %rd3;
ld.global.u32 %r3, [%rd1]; ld.global.u32 %r4, [given+4]; ld.const.u32 %r5, [fixed];
ld.global.u32 %r6, [counted]; add.u32 %r7, %r6, 1; st.global.u32 [counted], %r7;
shl.b32 %r8, %r2, 2; mov.u32 %r7, cell; add.u32 %r8, %r8, %r7;
st.shared.u32 [%r8], %r3; ld.shared.u32 %r3, [%r8];
add.u32 %r1, %r1, %r3; add.u32 %r1, %r1, %r4; add.u32 %r1, %r1, %r5; add.u32 %r1, %r1, %r6;
st.global.u32 [%rd2], %r1;
ret;
}
"""
)


def total(module: object, size: int, number: int) -> None:
    """One launch; buffers of another size lie elsewhere, as does what comes behind them."""
    first = np.arange(size, dtype=np.uint32)
    second = np.zeros(size, np.uint32)
    given = np.arange(size, dtype=np.uint32) * number
    found = run(
        module,  # pyright: ignore[reportArgumentType]
        block=(min(size, 32), 1, 1),
        arguments=[first, second, number],
        variables={"given": given},
    )
    assert found.notes == []
    expected = first + np.uint32(number + number + 100 + 7)
    assert (second[:32] == expected[:32]).all()


@pytest.fixture(autouse=True)
def empty() -> None:
    PROGRAMS.clear()


@pytest.mark.parametrize("text", [True, False])
def test_launches_do_not_see_each_other(text: bool) -> None:
    """Places of buffers, initial values and sizes of variables are the launch's own."""
    module = SUM if text else parse(SUM)
    for size, number in ((32, 5), (2000, 6), (32, 9), (100_000, 1), (64, 3)):
        total(module, size, number)


def test_a_text_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str | None] = []

    class CountedProgram(decoding.Program):
        def __init__(self, module: object, entry: str | None, opcodes: object) -> None:
            made.append(entry)
            super().__init__(module, entry, opcodes)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(decoding, "Program", CountedProgram)
    for number in range(4):
        total(SUM, 32, number)
    assert made == [None]
    assert PROGRAMS.module(SUM) is PROGRAMS.module(SUM)
    total(parse(SUM), 32, 1)  # another tree
    assert made == [None, None]


def test_threads_have_programs_of_their_own() -> None:
    module = parse(SUM)

    def one(number: int) -> None:
        total(module, 32 * (1 + number % 5), number)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(one, range(24)))


def test_a_launch_within_a_launch() -> None:
    """What a callback launches is another program, not the one that runs."""
    out, inner = np.zeros(32, np.uint32), np.zeros(32, np.uint32)
    text = (
        HEAD
        + """.visible .entry k(.param .u64 p, .param .u32 n) {
.reg .b32 %r<4>; .reg .b64 %rd<4>;
ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n]; mov.u32 %r2, %ctaid.x; add.u32 %r1, %r1, %r2;
mul.wide.u32 %rd2, %r2, 4; add.s64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r1; ret;
}
"""
    )

    def within(share: float) -> None:
        if share < 1:
            run(text, grid=(32, 1, 1), block=(1, 1, 1), arguments=[inner, 500])

    run(text, grid=(32, 1, 1), block=(1, 1, 1), arguments=[out, 7], progress=within, resident=4)
    assert (out == np.arange(32) + 7).all()
    assert (inner == np.arange(32) + 500).all()


def test_opcodes_that_come_and_go() -> None:
    """A program that a row was for is not lent once the row has gone, nor before it has come."""
    text = (
        HEAD
        + """.visible .entry k(.param .u64 p) {
.reg .b32 %r<4>; .reg .b64 %rd<4>;
ld.param.u64 %rd1, [p]; mov.u32 %r1, 5; twice.u32 %r2, %r1; st.global.u32 [%rd1], %r2; ret;
}
"""
    )
    out = np.zeros(1, np.uint32)

    def row(factor: int) -> Opcode:
        return Opcode(
            "twice",
            ".u32 d, a",
            lambda d, ins: elementwise(
                of1(lambda a: a * np.uint32(factor)),
                d.target(ins, 0, "u32"),
                [d.source(ins, 1, "u32")],
            ),
        )

    for factor in (2, 3):
        with pytest.raises(EmulationError, match="twice"):
            run(text, block=(1, 1, 1), arguments=[out])
        with registered_row(row(factor)):
            for _ in range(2):
                run(text, block=(1, 1, 1), arguments=[out])
                assert out[0] == 5 * factor
    with pytest.raises(EmulationError, match="twice"):
        run(text, block=(1, 1, 1), arguments=[out])


def test_a_launch_that_fails_leaves_nothing() -> None:
    for _ in range(3):
        with pytest.raises(EmulationError, match=r"outside every buffer|bytes before|at offset"):
            run(SUM, arguments=[None, None, 1], variables={"given": np.zeros(2, np.uint32)})
        total(SUM, 32, 4)


def test_recursion_twice() -> None:
    """Frames are laid out anew: local variables of a recursive function are in no other's place."""
    text = (
        HEAD
        + """.visible .func (.param .b32 out) f(.param .b32 n) {
.reg .b32 %r<5>; .reg .pred %p;
.local .align 4 .b8 kept[4];
ld.param.u32 %r1, [n]; st.local.u32 [kept], %r1; setp.eq.u32 %p, %r1, 0; @%p bra END;
sub.u32 %r2, %r1, 1;
{
.param .b32 a; .param .b32 b;
st.param.b32 [a], %r2; call.uni (b), f, (a); ld.param.b32 %r3, [b];
}
ld.local.u32 %r4, [kept]; add.u32 %r1, %r3, %r4;
END: st.param.b32 [out], %r1; ret;
}
.visible .entry k(.param .u64 p, .param .u32 n) {
.reg .b32 %r<5>; .reg .b64 %rd<2>;
ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n];
{
.param .b32 a; .param .b32 b;
st.param.b32 [a], %r1; call.uni (b), f, (a); ld.param.b32 %r2, [b];
}
st.global.u32 [%rd1], %r2; ret;
}
"""
    )
    out = np.zeros(1, np.uint32)
    for n in (5, 40, 3):
        run(text, block=(1, 1, 1), arguments=[out, n], stack=1 << 14)
        assert out[0] == n * (n + 1) // 2


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, bound in (("TEXTS", 10_000), ("CODES", 500)):
        monkeypatch.setattr(decoding, name, bound)
    shelf = Shelf(OPCODES)
    body = "mov.u32 %r1, 1;\n" * 100
    texts = [
        f"{HEAD}.visible .entry k() {{\n.reg .b32 %r<4>;\n// {number}\n{body}ret;\n}}\n"
        for number in range(10, 40)
    ]
    for text in texts:
        module = shelf.module(text)
        assert shelf.module(text) is module
        shelf.give(shelf.take(module, None), None)
    kept = decoding.TEXTS // len(texts[0]) + 1  # the newest is read when it is there
    assert shelf.held_counts == (kept, decoding.CODES // 102)
    long = texts[0] + f"// {'x' * decoding.UNREAD * decoding.TEXTS}\n"
    assert shelf.module(long) is shelf.module(long)  # the last one, whatever its size
    assert shelf.held_counts[0] == 1
    large = shelf.module(texts[0].replace(body, body * 5))
    several = [shelf.take(large, None) for _ in range(3)]
    for program in several:
        shelf.give(program, None)
    assert shelf.held_counts[1] == 1
    assert shelf.take(large, None) in several
    shelf.clear()
    assert shelf.held_counts == (0, 0)


# -- large texts -----------------------------------------------------------------------------------


def many(count: int) -> str:
    """Kernels k0, k1, ... that write their number, which f7 and the like add to itself."""
    return HEAD + "".join(
        f""".func (.param .b32 out) f{i}(.param .b32 n) {{
.reg .b32 %r<2>; ld.param.u32 %r1, [n]; add.u32 %r1, %r1, {i}; st.param.b32 [out], %r1; ret; // }}
}}
.visible .entry k{i}(.param .u64 p) {{
.reg .b32 %r<2>; .reg .b64 %rd<2>; .reg .b16 %rs<3>;
ld.param.u64 %rd1, [p]; mov.b32 {{%rs1, %rs2}}, %r1;
{{ .param .b32 a; .param .b32 b;
st.param.b32 [a], {i}; call.uni (b), f{i}, (a); ld.param.b32 %r1, [b]; }}
st.global.u32 [%rd1], %r1; ret;
}}
"""
        for i in range(count)
    )


def launched(text: str, number: int) -> None:
    out = np.zeros(1, np.uint32)
    run(text, f"k{number}", block=(1,), arguments=[out], check=True)
    assert out[0] == 2 * number


def test_a_launch_reads_what_it_gets_to() -> None:
    """Two of 2,000 functions; and nothing when it comes again."""
    text = many(1000)
    bodies = {f.name.text: f.body for f in parse(text).functions}
    for number, read in ((7, ("k7", "f7")), (7, ("k7", "f7")), (9, ("k7", "f7", "k9", "f9"))):
        launched(text, number)
        expected = sum(b.end - b.at for name in read if (b := bodies[name]) is not None)
        assert characters_read(PROGRAMS.module(text)) == expected


def test_what_is_wrong_in_other_functions() -> None:
    """A launch that does not get there runs; one that does, and who reads all, says where it is."""
    line = "add.u32 %r1, %r1, 4;"
    text = many(6)
    assert text.count(line) == 1
    wrong = text.replace(line, line[:-1] + " 5;")
    launched(wrong, 3)
    errors: list[tuple[str, int | None, int | None]] = []
    for read in (lambda: launched(wrong, 4), lambda: parse(wrong), lambda: launched(wrong, 4)):
        with pytest.raises(PtxSyntaxError) as caught:
            read()
        errors.append((caught.value.message, caught.value.line, caught.value.col))
    place = text.index(line) + len(line) - 1
    at = text.count("\n", 0, place) + 1, place - text.rfind("\n", 0, place) + 1
    assert errors[0] == errors[1] == errors[2]
    assert errors[0][1:] == at
    with pytest.raises(PtxSyntaxError, match="unexpected the end of the text"):
        launched(text.rstrip()[:-1], 3)  # there is no saying where that one ends
