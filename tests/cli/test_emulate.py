"""`fragir emulate` and `fragir check`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fragir.cli import check
from fragir.emulator import KINDS, Finding, Report
from fragir.emulator.numbers.types import OOB_NAN
from fragir.emulator.report import OF_SEVERAL_RUNS
from tests.cli.test_json import validate

Fragir = Callable[..., Any]


@pytest.fixture
def zeros(in_folder: Path) -> Path:
    path = in_folder / "out.npy"
    np.save(path, np.zeros(32, np.uint32))
    return path


def test_result(fragir: Fragir, store: Path, zeros: Path) -> None:
    result = fragir("emulate", "store.ptx", "--arg", "out:out.npy", "--arg", "u32:5")
    assert result.code == 0
    assert "warp instructions" in result.out
    assert result.err == "wrote out.npy\n"
    assert np.load(zeros).tolist() == list(range(5, 37))


def test_launch_and_json(fragir: Fragir, store: Path, in_folder: Path) -> None:
    np.save("wide.npy", np.zeros((8, 16), np.uint16))  # 256 bytes: 64 threads
    launch = ["--entry", "store", "--grid", "2,1", "--block", "8,8,1", "--target", "sm_90"]
    result = fragir(
        "emulate", "store.ptx", *launch, "--arg", "inout:wide.npy", "--arg", "u32:0", "--json"
    )
    assert (result.code, result.err) == (0, "")
    document = json.loads(result.out)
    assert document["written"] == ["wide.npy"]
    assert document["findings"] == []
    assert sum(document["opcodes"].values()) == document["instructions"] > 0
    found = np.load("wide.npy").view(np.uint32).ravel()
    assert found[:8].tolist() == list(range(8))  # tid.x
    assert not found[8:].any()


@pytest.mark.parametrize("command", ["emulate", "check"])
def test_a_function_that_cannot_be_read(
    fragir: Fragir, store: Path, zeros: Path, command: str
) -> None:
    """It stops the launches that get to it, at its place."""
    text = store.read_text() + "\n.visible .entry other() {\n  ret 1 2;\n}\n"
    Path("two.ptx").write_text(text)
    result = fragir(
        command, "two.ptx", "--entry", "store", "--arg", "out:out.npy", "--arg", "u32:5"
    )
    assert result.code == 0
    result = fragir(command, "two.ptx", "--entry", "other")
    assert result.code == 1
    line = text[: text.index("ret 1")].count("\n") + 1
    assert result.err.startswith(f"error: two.ptx:{line}:9: unexpected '2'")


def test_input_is_left_alone(fragir: Fragir, store: Path, zeros: Path) -> None:
    before = zeros.read_bytes()
    assert fragir("emulate", "store.ptx", "--arg", "in:out.npy", "--arg", "u32:5").code == 0
    assert zeros.read_bytes() == before


def test_trace(fragir: Fragir, store: Path, zeros: Path) -> None:
    result = fragir(
        "emulate", "store.ptx", "--arg", "in:out.npy", "--arg", "u32:5", "--trace", "--json"
    )
    assert "st.global.u32" in result.err
    assert json.loads(result.out)["written"] == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--arg", "out:out.npy"], "argument"),
        (["--arg", "out:out.npy", "--arg", "u64:1"], ""),
        (["--arg", "out:out.npy", "--arg", "u32:1", "--arg", "null"], "argument"),
        (["--arg", "out:out.npy", "--arg", "u32:1", "--block", "64"], ""),
        (["--arg", "null", "--arg", "u32:1"], ""),
        (["--arg", "out:none.npy", "--arg", "u32:1"], "cannot read this file"),
        (["--arg", "in:store.ptx", "--arg", "u32:1"], "this is no .npy array"),
        (["--arg", "out:out.npy", "--arg", "u32:1", "--entry", "load"], "load"),
        (["--arg", "out:out.npy", "--arg", "u32:1", "--target", "sm_75"], "sm_75"),
        (["--arg", "out:out.npy", "--arg", "u32:1", "--target", "sm_nine"], "sm_nine"),
    ],
)
def test_failure_leaves_the_output_alone(
    fragir: Fragir, store: Path, zeros: Path, arguments: list[str], words: str
) -> None:
    before = zeros.read_bytes()
    result = fragir("emulate", "store.ptx", *arguments)
    assert (result.code, result.out) == (1, "")
    head = result.err.splitlines()[0]
    assert head.startswith("error: ")
    assert words in head
    assert "fault of fragir" not in head
    assert zeros.read_bytes() == before
    result = fragir("emulate", "store.ptx", *arguments, "--json")
    assert (result.code, result.err) == (1, "")
    assert words in str(json.loads(result.out)["error"])
    assert zeros.read_bytes() == before


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"", "k.ptx"),
        (b"\x7fELF\2\1\1\0\0", "k.ptx"),
        (b"\xff\xfe", "k.ptx:1:1"),
        (b".version 7.0\n.target sm_80\n.entry k(.param .u64 a", "k.ptx:3:"),
        (b".version 7.0\n.target sm_80\n.entry k() { ld. }", "k.ptx:3:"),
    ],
)
@pytest.mark.parametrize("command", ["emulate", "check"])
def test_bad_ptx(fragir: Fragir, in_folder: Path, command: str, content: bytes, place: str) -> None:
    (in_folder / "k.ptx").write_bytes(content)
    result = fragir(command, "k.ptx")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"error: {place}")
    assert "fault of fragir" not in result.err


def test_check_of_a_clean_kernel(fragir: Fragir, store: Path, zeros: Path) -> None:
    before = zeros.read_bytes()
    arguments = ["check", "store.ptx", "--arg", "out:out.npy", "--arg", "u32:5"]
    result = fragir(*arguments, "--json")
    assert (result.code, result.err) == (0, "")
    document = json.loads(result.out)
    assert document["findings"] == []
    assert document["instructions"] > 0
    assert fragir(*arguments).out.startswith("no findings in 4 runs")
    assert zeros.read_bytes() == before


def test_check_finds_an_access_out_of_bounds(fragir: Fragir, store: Path, zeros: Path) -> None:
    arguments = ["--arg", "out:out.npy", "--arg", "u32:5", "--block", "64"]
    result = fragir("check", "store.ptx", *arguments, "--json")
    assert (result.code, result.err) == (1, "")
    (finding,) = json.loads(result.out)["findings"]
    assert (finding["kind"], finding["severity"]) == ("out-of-bounds", "error")
    assert finding["line"] == 13
    assert (finding["warp"], finding["lane"]) == (1, 0)
    assert finding["address"] > 0
    result = fragir("check", "store.ptx", *arguments)
    assert result.code == 1
    assert "store.ptx:13" in result.out


UNRETIRED = """\
.version 8.0
.target sm_90a
.address_size 64
.visible .entry leave(.param .u64 out)
{
    .reg .b64 %rd<3>;
    .reg .f32 %f<5>;
    ld.param.u64 %rd1, [out];
    mov.u64 %rd2, 0;
    mov.f32 %f1, 0f3F800000;
    mov.f32 %f2, %f1;
    mov.f32 %f3, %f1;
    mov.f32 %f4, %f1;
    st.global.f32 [%rd1], %f1;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16
        {%f1, %f2, %f3, %f4}, %rd2, %rd2, 1, 1, 1, 0, 0;
    ret;
}
"""


def test_finding_leaves_the_output_alone(fragir: Fragir, in_folder: Path, zeros: Path) -> None:
    """A kernel that ends while a wgmma is under way."""
    (in_folder / "leave.ptx").write_text(UNRETIRED)
    before = zeros.read_bytes()
    launch = ["emulate", "leave.ptx", "--block", "128", "--shared", "8192", "--check"]
    launch += ["--arg", "out:out.npy"]
    result = fragir(*launch, "--json")
    assert (result.code, result.err) == (1, "")
    document = json.loads(result.out)
    assert {finding["kind"] for finding in document["findings"]} == {"unretired"}
    assert document["written"] == []
    result = fragir(*launch)
    assert result.code == 1
    assert "unretired" in result.out
    assert result.err == "no file is written because of the errors\n"
    assert zeros.read_bytes() == before


DEADLOCK = """\
.version 7.0
.target sm_80
.address_size 64
.visible .entry half()
{
    .reg .b32 %r<2>;
    .reg .pred %p;
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p, %r1, 32;
    @%p bar.sync 0;
    @!%p bar.sync 1;
    ret;
}
"""


def test_check_finds_a_deadlock(fragir: Fragir, in_folder: Path) -> None:
    (in_folder / "half.ptx").write_text(DEADLOCK)
    result = fragir("check", "half.ptx", "--block", "64", "--json")
    assert (result.code, result.err) == (1, "")
    findings = json.loads(result.out)["findings"]
    assert {finding["kind"] for finding in findings} == {"deadlock"}
    validate(json.loads(result.out), "check")
    zero, one = findings[0]["why"]["barriers"]
    assert (zero["name"], zero["phase"], zero["came"], zero["wants"]) == ("barrier 0", 0, 32, 64)
    assert (one["name"], one["waiting"][0]["line"]) == ("barrier 1", 11)
    assert [x["party"]["warps"] for x in zero["awaited"]] == [[1]]
    text = fragir("check", "half.ptx", "--block", "64").out
    assert "\ndeadlock at half.ptx:10:5, by lines of the PTX:\n    phase 0 of barrier 0 of" in text
    assert "\n      waits: warp 0 (32 lanes) at line 10\n" in text


def test_a_deadlock_says_why_without_checks(fragir: Fragir, in_folder: Path) -> None:
    (in_folder / "half.ptx").write_text(DEADLOCK)
    result = fragir("emulate", "half.ptx", "--block", "64")
    assert (result.code, result.out) == (1, "")
    first, *rest = result.err.splitlines()
    assert first.startswith("error: half.ptx:10:5: deadlock in half")
    assert (
        "    barrier 0 of block (0, 0, 0): 32 of 64 threads have come, it lacks 32 threads" in rest
    )
    document = json.loads(fragir("emulate", "half.ptx", "--block", "64", "--json").out)
    validate(document, "error")
    assert document["error"]["why"]["barriers"][0]["phase"] is None


RACE = """\
.version 7.0
.target sm_80
.address_size 64
.visible .entry race(.param .u64 out)
{
    .reg .b64 %rd<2>;
    .reg .b32 %r<2>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %ctaid.x;
    st.global.u32 [%rd1], %r1;
    ret;
}
"""


def test_check_compares_schedules(
    fragir: Fragir, in_folder: Path, zeros: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel whose last writer wins: a schedule that swaps the blocks changes the result."""
    from fragir import emulator

    (in_folder / "race.ptx").write_text(RACE)
    original = emulator.run

    def run(*arguments: Any, schedule: int | None, **options: Any) -> Any:
        report = original(*arguments, schedule=schedule, **options)
        if schedule is not None:
            options["arguments"][0][0] = schedule
        return report

    monkeypatch.setattr(emulator, "run", run, raising=False)
    result = fragir("check", "race.ptx", "--grid", "4", "--arg", "out:out.npy", "--json")
    assert (result.code, result.err) == (1, "")
    kinds = {finding["kind"] for finding in json.loads(result.out)["findings"]}
    assert "schedule-dependent" in kinds


GATHER = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry gather(.param .u64 places, .param .u64 from, .param .u64 into)
{
    .reg .b64 %rd<8>;
    .reg .b32 %r<4>;
    ld.param.u64 %rd1, [places];
    ld.param.u64 %rd2, [from];
    ld.param.u64 %rd3, [into];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd4, %r1, 4;
    add.u64 %rd1, %rd1, %rd4;
    add.u64 %rd3, %rd3, %rd4;
    ld.global.u32 %r2, [%rd1];
    mul.wide.u32 %rd5, %r2, 4;
    add.u64 %rd2, %rd2, %rd5;
    ld.global.u32 %r3, [%rd2];
    st.global.u32 [%rd3], %r3;
    ret;
}
"""
ANOTHER = (
    GATHER.replace("gather(", "another(").replace(" places", " order").replace("[places", "[order")
)


def test_check_says_for_which_values(fragir: Fragir, in_folder: Path) -> None:
    (in_folder / "gather.ptx").write_text(GATHER)
    np.save("places.npy", np.arange(32, dtype=np.uint32))
    np.save("from.npy", np.arange(32, dtype=np.uint32))
    np.save("into.npy", np.zeros(32, np.uint32))
    arrays = [f"--arg={kind}" for kind in ("in:places.npy", "in:from.npy", "out:into.npy")]
    check = ["check", "gather.ptx", *arrays, "--seeds", "0"]
    result = fragir(*check)
    assert result.code == 0
    last = result.out.splitlines()
    assert "data: these values; what depends on them is" in last
    assert last[-1].split() == ["18", "an", "address", "places"]
    for name in ("places", "0"):
        result = fragir(*check, "--structure", name)
        assert result.out.splitlines()[-1] == "data: every value (structure: places)"
    document = json.loads(fragir(*check, "--json").out)
    validate(document, "check")
    assert document["data"] == {
        "these": True,
        "open": [{"line": 18, "what": "an address", "argument": "places"}],
    }
    document = json.loads(fragir(*check, "--json", "--structure", "places").out)
    validate(document, "check")
    assert (document["data"], document["structure"]) == ("every value", ["places"])
    result = fragir(*check, "--structure", "nowhere")
    assert result.code == 1
    assert "gather has no parameter nowhere" in result.err
    assert "it has: places, from, into" in result.err


def test_structure_of_several_grids(fragir: Fragir, in_folder: Path) -> None:
    """A name is that of the grids that have it."""
    (in_folder / "two.ptx").write_text(GATHER + ANOTHER[ANOTHER.index(".visible") :])
    for name in ("places", "from", "into"):
        np.save(f"{name}.npy", np.arange(32, dtype=np.uint32))
    arrays = [f"--arg={kind}" for kind in ("in:places.npy", "in:from.npy", "out:into.npy")]
    then = ["--then", " ".join(["--entry another", *arrays])]
    check = ["check", "two.ptx", "--entry", "gather", *arrays, *then, "--seeds", "0", "--json"]

    def arguments(*names: str) -> list[str]:
        given = [word for name in names for word in ("--structure", name)]
        data = json.loads(fragir(*check, *given).out)["data"]
        return [] if isinstance(data, str) else [one["argument"] for one in data["open"]]

    assert arguments() == ["order", "places"]
    assert arguments("places") == ["order"]
    assert arguments("places", "order") == []
    assert "another" not in fragir(*check, "--structure", "nowhere").out


ONE_LOOK = """\
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out)
{
    .shared .align 16 .b8 tile[16];
    .shared .align 8 .b64 bar;
    .reg .b64 %rd<4>;
    .reg .b32 %r<4>;
    .reg .pred %p;
    ld.param.u64 %rd1, [in];
    ld.param.u64 %rd2, [out];
    mov.u32 %r1, tile;
    mov.u32 %r2, bar;
    mbarrier.init.shared::cta.b64 [%r2], 1;
    fence.proxy.async.shared::cta;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 16;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 16, [%r2];
    mbarrier.test_wait.parity.shared::cta.b64 %p, [%r2], 0;
    selp.u32 %r3, 1, 0, %p;
    st.global.u32 [%rd2], %r3;
LOOP:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [%r2], 0;
    @!%p bra LOOP;
    ret;
}
"""


@pytest.mark.parametrize("seeds", ["0", "3"])
def test_check_tries_early_asynchrony(fragir: Fragir, in_folder: Path, seeds: str) -> None:
    """One look at a barrier, without a loop: what it says depends on when the copy is done."""
    (in_folder / "k.ptx").write_text(ONE_LOOK)
    np.save("in.npy", np.arange(4, dtype=np.uint32))
    np.save("out.npy", np.zeros(1, np.uint32))
    command = ["check", "k.ptx", "--block", "1", "--arg", "in:in.npy", "--arg", "out:out.npy"]
    result = fragir(*command, "--seeds", seeds, "--json")
    findings = json.loads(result.out)["findings"]
    assert (result.code, [f["kind"] for f in findings]) == (1, ["schedule-dependent"])
    assert "async early" in findings[0]["message"]
    assert "out.npy" in findings[0]["message"]


def test_kinds_are_a_closed_list(in_folder: Path) -> None:
    """docs/json.md has all kinds; those of several runs are none of the emulator's."""
    text = (Path(__file__).resolve().parents[2] / "docs" / "json.md").read_text()
    assert all(f"| `{kind}` |" in text for kind in [*OF_SEVERAL_RUNS, *KINDS])
    assert not set(OF_SEVERAL_RUNS) & set(KINDS)


TILE = """\
.version 8.0
.target sm_90a
.address_size 64
.visible .entry tile(.param .align 64 .b8 map[128], .param .u64 out)
{
    .reg .b32 %r<6>; .reg .b64 %rd<5>; .reg .b16 %h<2>; .reg .pred %p<3>;
    .shared .align 128 .b8 buffer[128];
    .shared .align 8 .b64 bar;
    mov.u32 %r1, %tid.x;
    setp.eq.u32 %p1, %r1, 0;
    mov.u32 %r2, buffer;
    mov.u32 %r3, bar;
    mov.b64 %rd1, map;
    cvta.param.u64 %rd1, %rd1;
    @%p1 mbarrier.init.shared.b64 [%r3], 1;
    bar.sync 0;
    @!%p1 bra WAIT;
    mbarrier.arrive.expect_tx.shared.b64 %rd2, [%r3], 128;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
        [%r2], [%rd1, {8, 1}], [%r3];
WAIT:
    mbarrier.try_wait.parity.shared.b64 %p2, [%r3], 0;
    @!%p2 bra WAIT;
    shl.b32 %r4, %r1, 2;
    add.u32 %r5, %r2, %r4;
    ld.shared.u32 %r5, [%r5];
    ld.param.u64 %rd3, [out];
    mad.wide.u32 %rd4, %r1, 4, %rd3;
    st.global.u32 [%rd4], %r5;
    ret;
}
"""


@pytest.fixture
def tile(in_folder: Path) -> npt.NDArray[np.uint16]:
    """A kernel that brings the tile of 8x8 at [1, 8] to `out.npy`, and its array."""
    (in_folder / "tile.ptx").write_text(TILE)
    array = np.arange(8 * 20, dtype=np.uint16).reshape(8, 20)
    np.save("in.npy", array)
    np.save("out.npy", np.zeros((8, 8), np.uint16))
    return array


@pytest.mark.parametrize("fill", ["", ",fill=zero", ",fill=nan,type=bf16"])
@pytest.mark.parametrize("strides", ["", ",strides=40:2", ",strides=40", ",elementstrides=1:1"])
def test_tensor_maps(fragir: Fragir, tile: npt.NDArray[np.uint16], fill: str, strides: str) -> None:
    words = f"tma:in.npy,box=8x8,swizzle=none{strides}{fill}"
    result = fragir("emulate", "tile.ptx", "--arg", words, "--arg", "out:out.npy", "--check")
    assert result.code == 0, result.out + result.err
    out = np.load("out.npy")
    assert (out[:7] == tile[1:8, 8:16]).all()
    assert (out[7] == (OOB_NAN if "nan" in fill else 0)).all()
    assert (np.load("in.npy") == tile).all()


def test_packed_tensor_map(fragir: Fragir, tile: npt.NDArray[np.uint16], in_folder: Path) -> None:
    """A box of 32 4-bit elements, two to a byte: `type=b4x16` counts elements."""
    (in_folder / "tile.ptx").write_text(TILE.replace("{8, 1}", "{32, 1}"))
    np.save("in.npy", np.arange(8 * 32, dtype=np.uint8).reshape(8, 32))
    words = "tma:in.npy,box=8x32,type=b4x16"
    result = fragir("emulate", "tile.ptx", "--arg", words, "--arg", "out:out.npy")
    assert result.code == 0, result.err
    expected = np.arange(8 * 32, dtype=np.uint8).reshape(8, 32)[1:, 16:]
    found = np.load("out.npy").view(np.uint8).reshape(8, 16)
    assert (found[:7] == expected).all()
    refused = fragir("emulate", "tile.ptx", "--arg", words + ",atom=32", "--arg", "out:out.npy")
    assert refused.code == 1
    assert "atoms of 32 and 64 bytes need swizzle 128" in refused.err


PRINTS = """\
.version 7.0
.target sm_80
.address_size 64
.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
.global .align 1 .b8 form[9] = {108, 97, 110, 101, 32, 37, 100, 10, 0};
.visible .entry k()
{
    .local .align 8 .b8 frame[8];
    .reg .b32 %r<3>;
    .reg .b64 %rd<4>;
    .reg .pred %p;
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p, %r1, 7;
    @%p ret;
    mov.u64 %rd1, frame;
    st.local.u32 [%rd1], %r1;
    cvta.local.u64 %rd2, %rd1;
    mov.u64 %rd3, form;
    cvta.global.u64 %rd3, %rd3;
    {
        .param .b64 f;
        .param .b64 a;
        .param .b32 r;
        st.param.b64 [f], %rd3;
        st.param.b64 [a], %rd2;
        call.uni (r), vprintf, (f, a);
        ld.param.b32 %r2, [r];
    }
    ret;
}
"""


def test_printf(fragir: Fragir, in_folder: Path) -> None:
    (in_folder / "prints.ptx").write_text(PRINTS)
    result = fragir("emulate", "prints.ptx", "--block", "32")
    assert result.code == 0, result.err
    assert result.out.splitlines()[0] == "lane 7"
    document = json.loads(fragir("emulate", "prints.ptx", "--block", "32", "--json").out)
    assert document["printed"] == "lane 7\n"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("tma:in.npy", 2, "has no box"),
        ("tma:in.npy,box=8", 1, "dimensions"),
        ("tma:in.npy,box=8xq", 2, "no option of a tensor map"),
        ("tma:in.npy,box=8x8,swizzle=48", 2, "no option of a tensor map"),
        ("tma:in.npy,box=8x8,type=f8", 2, "no option of a tensor map"),
        ("tma:in.npy,box=8x8,strides=1:2:3", 1, "strides needs 2"),
        ("tma:in.npy,box=8x4", 1, "multiple of 16 bytes"),
        ("tma:none.npy,box=8x8", 1, "cannot read this file"),
    ],
)
def test_bad_tensor_maps(
    fragir: Fragir, tile: npt.NDArray[np.uint16], words: str, code: int, message: str
) -> None:
    result = fragir("emulate", "tile.ptx", "--arg", words, "--arg", "out:out.npy")
    assert result.code == code
    assert message in result.err
    assert "fault of fragir" not in result.err


def test_performance_counts_when_asked_for(fragir: Fragir, in_folder: Path) -> None:
    faults = Path(__file__).parents[1] / "emulator" / "faults"
    lines = (faults / "uncoalesced.ptx").read_text().splitlines()
    (in_folder / "k.ptx").write_text("\n".join(x for x in lines if "// mend" not in x))
    np.save("data.npy", np.arange(1024, dtype=np.uint32))
    arguments = ["check", "k.ptx", "--arg", "inout:data.npy"]
    result = fragir(*arguments)
    assert result.code == 0
    assert result.err == "1 remark on performance; --performance lists them\n"
    result = fragir(*arguments, "--performance", "--json")
    assert result.code == 1
    found = [(f["kind"], f["severity"]) for f in json.loads(result.out)["findings"]]
    assert found == [("uncoalesced", "remark")]


def test_letters_count_when_asked_for(fragir: Fragir, in_folder: Path) -> None:
    faults = Path(__file__).parents[1] / "emulator" / "faults"
    lines = (faults / "unretired-store.ptx").read_text().splitlines()
    (in_folder / "k.ptx").write_text("\n".join(x for x in lines if "// mend" not in x))
    np.save("data.npy", np.arange(1024, dtype=np.uint32))
    arguments = ["check", "k.ptx", "--block", "64", "--arg", "inout:data.npy"]
    result = fragir(*arguments)
    assert result.code == 0
    assert "owned by an executing CTA" in result.out
    assert result.err.splitlines()[-1].endswith("--strict makes these count")
    result = fragir(*arguments, "--strict", "--json")
    assert result.code == 1
    (finding,) = json.loads(result.out)["findings"]
    assert (finding["kind"], finding["severity"]) == ("unretired", "letter")
    result = fragir("emulate", *arguments[1:], "--check", "--json")
    assert result.code == 0
    document = json.loads(result.out)
    assert [f["severity"] for f in document["findings"]] == ["letter"]
    assert document["written"] == ["data.npy"]


def test_what_was_found_before_an_error(fragir: Fragir, in_folder: Path) -> None:
    faults = Path(__file__).parents[1] / "emulator" / "faults"
    lines = (faults / "mbarrier-underflow.ptx").read_text().splitlines()
    (in_folder / "k.ptx").write_text("\n".join(x for x in lines if "// mend" not in x))
    np.save("data.npy", np.arange(1024, dtype=np.uint32))
    result = fragir("emulate", "k.ptx", "--arg", "in:data.npy", "--check")
    assert result.code == 1
    first, *rest = result.err.splitlines()
    assert first.startswith("found before: mbarrier: k.ptx:")
    assert rest[0].startswith("error: ")
    assert "deadlock" in rest[0]
    result = fragir("check", "k.ptx", "--arg", "in:data.npy", "--json")
    assert [f["kind"] for f in json.loads(result.out)["findings"]][:2] == ["mbarrier", "deadlock"]


@pytest.mark.parametrize(("version", "code"), [("12.4", 0), ("13.2.78", 0), ("new", 1)])
def test_ptxas(fragir: Fragir, store: Path, zeros: Path, version: str, code: int) -> None:
    arguments = ["--arg", "out:out.npy", "--arg", "u32:5", "--ptxas", version]
    assert fragir("emulate", "store.ptx", *arguments).code == code


TWO_REGISTERS = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .b32 %a, %b; .reg .b64 %p;
    .shared .align 8 .b32 words[64];
    ld.param.u64 %p, [out];
    ld.shared.u32 %a, [words+4]; ld.shared.u32 %b, [words+128];
    st.global.v2.u32 [%p], {%a, %b};
    ret;
}
"""


def test_registers_of_one_instruction_are_told_apart(fragir: Fragir, zeros: Path) -> None:
    Path("two.ptx").write_text(TWO_REGISTERS)
    result = fragir("check", "two.ptx", "--arg", "in:out.npy", "--json")
    found = json.loads(result.out)["findings"]
    assert [f["message"].split()[0] for f in found] == ["%a", "%b"]  # each once, in all runs
    assert {(f["line"], f["warp"], f["lane"]) for f in found} == {(11, 0, 0)}


def test_statistics(fragir: Fragir, store: Path, zeros: Path) -> None:
    run = ["emulate", "store.ptx", "--arg", "in:out.npy", "--arg", "u32:5"]
    lines = fragir(*run, "--check").out.splitlines()
    assert any(line.startswith("instructions: ") and "st 1" in line for line in lines)
    assert "bytes stored: global 128" in lines
    assert "global memory: 4 sectors, 4 would do" in lines
    document = json.loads(fragir(*run, "--check", "--json").out)
    assert document["conflicts"] == {"sectors": 4, "sectors_needed": 4}
    assert json.loads(fragir(*run, "--json").out)["conflicts"] == {}


def test_a_pair_is_told_once_with_the_worst(
    fragir: Fragir, store: Path, zeros: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A letter of two accesses of which another schedule has an error goes; any other stays."""
    letter = Finding("proxy-fence", "no fence", "k.ptx", 9, 5, severity="letter", other=(7, 5))
    another = Finding("proxy-fence", "no fence", "k.ptx", 9, 5, severity="letter", other=(6, 5))
    race = Finding("race", "no order", "k.ptx", 9, 5, other=(7, 5))
    turned = Finding("race", "no order", "k.ptx", 7, 5, other=(9, 5))
    runs = iter([[letter, another], [race, letter], [race, race], [turned]])

    def emulate(*_: Any, **__: Any) -> Report:
        return Report(findings=next(runs))

    monkeypatch.setattr(check, "emulate", emulate)
    result = fragir("check", "store.ptx", "--arg", "out:out.npy", "--arg", "u32:5", "--json")
    assert result.code == 1
    found = json.loads(result.out)["findings"]
    assert [(one["kind"], one["count"]) for one in found] == [("proxy-fence", 1), ("race", 2)]


# -- what is not needed ----------------------------------------------------------------------------

TWICE = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<8>; .reg .b64 %rd<4>;
    .shared .align 4 .b8 s[256];
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, s; add.u32 %r4, %r3, %r2;
    xor.b32 %r5, %r2, 128; add.u32 %r5, %r5, %r3; mul.wide.u32 %rd2, %r1, 4;
    st.shared.u32 [%r4], %r1;
    bar.sync 0;
    ld.shared.u32 %r6, [%r5];
    bar.sync 0;
    add.u64 %rd2, %rd2, %rd1; st.global.u32 [%rd2], %r6;
    ret;
}
"""


def test_what_is_not_needed(fragir: Fragir, in_folder: Path) -> None:
    Path("twice.ptx").write_text(TWICE)
    np.save("out.npy", np.zeros(64, np.uint32))
    command = ["check", "twice.ptx", "--block", "64", "--arg", "out:out.npy", "--not-needed"]
    result = fragir(*command)
    assert result.code == 0
    head, _, rest = result.out.partition("\nnot needed in this launch, one at a time: ")
    assert "schedules: every\n" in head
    assert rest.startswith("1 of 2 that synchronise\n line   statement     all together\n")
    assert "\n 14     bar.sync 0;   yes\n  launches: it holds for the launches that ran" in rest
    document = json.loads(fragir(*command, "--json").out)
    validate(document, "check")
    found = document["not_needed"]
    assert [(one["line"], one["verdict"]) for one in found["statements"]] == [
        (12, "needed"),
        (14, "not needed"),
    ]
    assert (found["together"], found["launches"]) == ([1], 1)
    assert set(found["assumptions"]) == {"launches", "time"}


def test_what_is_not_needed_of_a_kernel_with_errors(fragir: Fragir, in_folder: Path) -> None:
    Path("half.ptx").write_text(DEADLOCK)
    command = ["check", "half.ptx", "--block", "64", "--not-needed"]
    result = fragir(*command)
    reason = "what is not needed can be asked of a kernel without errors; here line 10 has one, "
    assert f"\nnot needed: not judged: {reason}deadlock" in result.out
    document = json.loads(fragir(*command, "--json").out)
    validate(document, "check")
    assert document["not_needed"]["refused"].startswith(reason)


@pytest.mark.parametrize("command", ["emulate", "check"])
def test_one_block_of_a_kernel_that_asks_which(
    fragir: Fragir, in_folder: Path, command: str
) -> None:
    """Is told where nobody said how many; not of a kernel that does not ask."""
    body = "ld.param.u64 %p, [p]; st.global.u32 [%p], %r; ret;"
    for name, source in (("asks", "%ctaid.x"), ("other", "%tid.x")):
        (in_folder / f"{name}.ptx").write_text(
            f".version 7.0\n.target sm_80\n.address_size 64\n.entry {name}(.param .u64 p) {{\n"
            f".reg .b64 %p;\n.reg .b32 %r;\nmov.u32 %r, {source};\n{body}\n}}\n"
        )
    np.save("p.npy", np.zeros(1, np.uint32))
    words = "one block is run, and asks asks which it is (%ctaid): --grid X,Y,Z runs more\n"
    options = ["--block", "1", "--arg", "inout:p.npy"]
    assert words in fragir(command, "asks.ptx", *options).err
    for more in (["asks.ptx", "--grid", "1"], ["other.ptx"]):
        assert "one block is run" not in fragir(command, *more, *options).err
