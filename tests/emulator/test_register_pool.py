"""setmaxnreg: the registers that a block is launched with, and what its warps make of them."""

from __future__ import annotations

import numpy as np
import pytest

from fragir.emulator import EmulationError, Finding, run
from fragir.emulator.checks.register_pool import launched_with
from fragir.emulator.program.program import Program
from fragir.ptx.opcodes.table import OPCODES
from fragir.ptx.reader import parse

PTX = """
.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 data) {directives}
{{
    .reg .b32 %r<4>; .reg .pred %p<4>;
    mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 128; setp.ge.u32 %p2, %r1, 256;
{body}
    ret;
}}
"""


# What ptxas 13.2 says that a kernel with setmaxnreg uses for sm_90a.
@pytest.mark.parametrize(
    ("directives", "threads", "registers"),
    [
        (".maxntid 384 .minnctapersm 1", 384, 168),
        (".reqntid 384 .minnctapersm 1", 384, 168),
        (".maxntid 320 .minnctapersm 1", 320, 168),
        (".maxntid 384 .minnctapersm 2", 384, 80),
        (".reqntid 512 .minnctapersm 1", 512, 128),
        (".reqntid 384 .minnctapersm 1 .maxnreg 96", 384, 96),
        (".maxntid 384 .minnctapersm 1 .maxnreg 200", 384, 168),
        (".maxnreg 128", 256, 128),
        (".maxntid 384 .maxnreg 200", 384, 200),
    ],
)
def test_registers_at_the_start(directives: str, threads: int, registers: int) -> None:
    program = Program(parse(PTX.format(directives=directives, body="")), "k", OPCODES)
    assert launched_with(program, threads) == (registers, True)


@pytest.mark.parametrize("directives", ["", ".maxntid 384", ".reqntid 384"])
def test_unknown_registers(directives: str) -> None:
    """ptxas 13.2: "unable to determine register count at entry". No block has more than 65,536."""
    program = Program(parse(PTX.format(directives=directives, body="")), "k", OPCODES)
    assert launched_with(program, 384) == (168, False)


def findings(body: str, directives: str = ".maxnreg 128", threads: int = 384) -> list[Finding]:
    text = PTX.format(directives=directives, body=body)
    return run(text, block=(threads,), arguments=[np.zeros(4)], check=True).findings


def roles(producer: str, consumer: str) -> str:
    return f"@%p1 bra C; setmaxnreg.{producer}; bra E; C: setmaxnreg.{consumer}; E:"


def test_the_usual_split_is_silent() -> None:
    for low, high, most in ((40, 232, 168), (24, 240, 168), (24, 152, 112)):
        body = roles(f"dec.sync.aligned.u32 {low}", f"inc.sync.aligned.u32 {high}")
        assert findings(body, f".maxnreg {most}") == []


def test_the_order_of_the_warpgroups_does_not_matter() -> None:
    """The consumers come first here, and wait until the producers have given something back."""
    body = """
    @%p2 bra P; setmaxnreg.inc.sync.aligned.u32 160; bra E;
P:  setmaxnreg.dec.sync.aligned.u32 64; E:"""
    assert findings(body) == []
    (found,) = findings(body.replace("64", "72"))
    assert (found.kind, found.severity) == ("registers", "error")
    assert "50176 registers" in found.message
    assert "launched with 49152" in found.message


def test_no_block_has_more_than_the_machine() -> None:
    body = roles("dec.sync.aligned.u32 40", "inc.sync.aligned.u32 240")
    (found,) = findings(body, "")
    assert (found.kind, "65536" in found.message) == ("registers", False)
    assert "66560" in found.message
    assert findings(roles("dec.sync.aligned.u32 40", "inc.sync.aligned.u32 232"), "") == []


def test_directions() -> None:
    (found,) = findings("setmaxnreg.inc.sync.aligned.u32 120;", threads=128)
    assert "holds 128 registers, 120 is less" in found.message
    (found,) = findings("setmaxnreg.dec.sync.aligned.u32 136;", threads=128)
    assert "holds 128 registers, 136 is more" in found.message
    twice = "setmaxnreg.dec.sync.aligned.u32 64; bar.sync 0; setmaxnreg.{}.sync.aligned.u32 96;"
    assert findings(twice.format("inc"), "", threads=128) == []
    (found,) = findings(twice.format("dec"), "", threads=128)
    assert "holds 64 registers, 96 is more" in found.message


@pytest.mark.parametrize("count", ["16", "264", "100", "%r1"])
def test_counts_that_do_not_exist(count: str) -> None:
    with pytest.raises(EmulationError, match="a multiple of 8 from 24 to 256"):
        findings(f"setmaxnreg.dec.sync.aligned.u32 {count};")
