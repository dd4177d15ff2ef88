"""ptxas: what it says as data, what it refuses as one error with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from fragir.errors import FragirError
from fragir.toolchain import ptxas, sass
from fragir.toolchain.ptxas import EntryInfo, assemble

STORE = """\
.version 7.0
.target sm_80
.address_size 64
.visible .entry store(.param .u64 out, .param .u32 value)
{
    .reg .b64 %rd<4>;
    .reg .b32 %r<3>;
    .shared .align 16 .b8 tile[1024];
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [value];
    mov.u32 %r2, %tid.x;
    mad.wide.u32 %rd3, %r2, 4, %rd1;
    st.global.u32 [%rd3], %r1;
    bar.sync 0;
    ret;
}
"""

# A function that is no entry has properties too, and no line of registers.
TWO_ENTRIES = """\
.version 7.0
.target sm_80
.address_size 64
.func (.reg .b32 r) helper(.reg .b32 a)
{
    .local .align 4 .b8 room[64];
    .reg .b64 %q;
    cvta.local.u64 %q, room;
    st.b32 [%q], a;
    add.s32 r, a, 1;
    ret;
}
.visible .entry calls(.param .u64 p)
{
    .reg .b32 %r<3>;
    .reg .b64 %d;
    mov.u32 %r1, 0;
    call (%r2), helper, (%r1);
    ld.param.u64 %d, [p];
    st.global.u32 [%d], %r2;
    bar.sync 3;
    ret;
}
.visible .entry empty() { ret; }
"""

# The accumulator is read before the wait: ptxas puts one in, and says so with a code.
WGMMA_WITHOUT_WAIT = """\
.version 8.0
.target sm_90a
.address_size 64
.visible .entry early(.param .u64 p)
{
    .reg .b64 %rd<3>;
    .reg .f32 %f<5>;
    ld.param.u64 %rd1, [p];
    mov.f32 %f1, 0f00000000;
    mov.f32 %f2, 0f00000000;
    mov.f32 %f3, 0f00000000;
    mov.f32 %f4, 0f00000000;
    mov.u64 %rd2, 0;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16
        {%f1, %f2, %f3, %f4}, %rd2, %rd2, 1, 1, 1, 0, 0;
    add.f32 %f1, %f1, %f2;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    st.global.f32 [%rd1], %f1;
    ret;
}
"""


def test_entry_info() -> None:
    result = assemble(STORE, "sm_80")
    assert result.cubin.startswith(b"\x7fELF")
    assert result.warnings == []
    info = result.entries["store"]
    assert list(result.entries) == ["store"]
    assert (info.shared, info.barriers, info.stack) == (1024, 1, 0)
    assert (info.spill_stores, info.spill_loads) == (0, 0)
    assert 3 <= info.registers <= 32


def test_every_entry_and_no_function() -> None:
    entries = assemble(TWO_ENTRIES, "sm_80").entries
    assert set(entries) == {"calls", "empty"}
    assert entries["calls"].stack == 64
    assert entries["calls"].barriers == 4
    assert entries["empty"].stack == 0
    assert entries["empty"].barriers == 0


def test_spills_are_counted() -> None:
    """64 values live across a barrier do not fit 32 registers (`.maxnreg`)."""
    count = 64
    loads = "\n".join(f"ld.volatile.global.u32 %r{i}, [%rd1+{4 * i}];" for i in range(count))
    stores = "\n".join(f"st.volatile.global.u32 [%rd1+{4 * i}], %r{i};" for i in range(count))
    ptx = f""".version 7.0
.target sm_80
.address_size 64
.visible .entry spill(.param .u64 p) .maxnreg 32
{{
.reg .b64 %rd<2>;
.reg .b32 %r<{count}>;
ld.param.u64 %rd1, [p];
{loads}
bar.sync 0;
{stores}
ret;
}}
"""
    info = assemble(ptx, "sm_80").entries["spill"]
    assert info.registers <= 32
    assert info.spill_stores > 0
    assert info.spill_loads > 0


def test_warning_with_a_code() -> None:
    warnings = assemble(WGMMA_WITHOUT_WAIT, "sm_90a").warnings
    assert [code for code, _ in warnings] == ["C7517"]
    assert "wait_group" in warnings[0][1]


def test_warning_without_a_code() -> None:
    """What ptxas prints for `-maxrregcount` too low, read off version 13.2."""
    log = (
        "ptxas warning : For profile sm_80 adjusting per thread register count of 16 to 24\n"
        "ptxas k.ptx, line 7; warning : (C7510) Potential Performance Loss: serialized\n"
        "ptxas info    : Used 8 registers\n"
    )
    assert ptxas._warnings(log) == [  # pyright: ignore[reportPrivateUsage]
        ("", "For profile sm_80 adjusting per thread register count of 16 to 24"),
        ("C7510", "line 7: Potential Performance Loss: serialized"),
    ]


@pytest.mark.parametrize(
    ("old", "new", "line", "col", "words"),
    [
        ("%r2, %tid", "%r2 %tid", 11, 17, "Parsing error near '%tid'"),
        ("[out]", "[nowhere]", 9, 25, "Unknown symbol 'nowhere'"),
        ("st.global.u32", "st.globel.u32", 13, 7, ".globel"),
        (".version 7.0", "// none", 3, None, "Missing .version"),
        (".target sm_80", ".target sm_90a", 2, None, "sm_90a"),
    ],
)
def test_refusal_names_the_place(
    old: str, new: str, line: int, col: int | None, words: str
) -> None:
    with pytest.raises(FragirError) as caught:
        assemble(STORE.replace(old, new), "sm_80", filename="store.ptx")
    error = caught.value
    assert (error.file, error.line) == ("store.ptx", line)
    assert words in error.message
    assert error.source is not None
    if col is not None:
        assert error.col == col
    assert "/tmp" not in str(error)


def test_number_of_further_errors() -> None:
    with pytest.raises(FragirError, match=r"\(and 3 more\)"):
        assemble(STORE.replace("[out]", "[a]").replace("[value]", "[b]"), "sm_80")


def test_truncated() -> None:
    with pytest.raises(FragirError, match="cut off") as caught:
        assemble(STORE[: STORE.index("bar.sync")], "sm_80", filename="short.ptx")
    assert caught.value.place.startswith("short.ptx:")


@pytest.mark.parametrize("text", ["", "\0\1\2", "\udcff\udcfe garbage", "\N{SNOWMAN}"])
def test_garbage(text: str) -> None:
    with pytest.raises(FragirError, match="ptxas refuses") as caught:
        assemble(text, "sm_80", filename="x.ptx")
    assert str(caught.value).startswith("x.ptx:")


def test_refusals_are_not_cached(cache_folder: Path) -> None:
    with pytest.raises(FragirError):
        assemble("", "sm_80")
    assert not cache_folder.exists()


def test_unknown_target_proposes_known_ones() -> None:
    with pytest.raises(FragirError, match=r"no target `sm_8O`.*sm_8"):
        assemble(STORE, "sm_8O")
    with pytest.raises(FragirError, match=r"known: .*sm_90a"):
        assemble(STORE, "hopper")
    with pytest.raises(FragirError, match="no target `compute_80`"):
        assemble(STORE, "compute_80")
    with pytest.raises(FragirError, match="no target `--help`"):
        assemble(STORE, "--help")


def test_targets() -> None:
    known = ptxas.targets()
    assert {"sm_80", "sm_90a", "sm_100a"} <= set(known)
    assert len(known) == len(set(known))


def test_old_target_finds_the_old_ptxas() -> None:
    """ptxas 13 dropped sm_70; the one of the extra `ptxas12` takes it."""
    assert "sm_70" not in ptxas.targets("13")
    result = assemble(STORE.replace("sm_80", "sm_70"), "sm_70")
    assert result.entries["store"].shared == 1024


def test_version_chooses() -> None:
    new, old = (assemble(STORE, "sm_80", version=v).cubin for v in ("13", "12.9"))
    assert new != old


def test_absent_version_says_how_to_get_it() -> None:
    with pytest.raises(FragirError, match=r"ptxas 11\.8 was not found; found: 13\."):
        assemble(STORE, "sm_80", version="11.8")


def test_opcodes() -> None:
    text = sass.disassemble(assemble(STORE, "sm_80").cubin)
    count = sass.opcodes(text)
    assert count["STG"] == 1
    assert count["BAR"] == 1
    assert count["EXIT"] == 1
    assert sass.opcodes(text, full=True)["BAR.SYNC.DEFER_BLOCKING"] == 1
    functions = sass.functions(sass.disassemble(assemble(TWO_ENTRIES, "sm_80").cubin))
    assert {"calls", "empty"} <= set(functions)
    assert sass.opcodes(functions["empty"])["EXIT"] == 1
    assert sass.opcodes(functions["empty"])["STG"] == 0


def test_opcode_behind_a_predicate() -> None:
    text = (
        "        /*0010*/              @!P0 BRA `(.L_x_0) ;\n"
        "        /*0020*/              @UP1 UMOV UR4, 0x5 ;\n"
        "        /*0030*/                   HMMA.16816.F32 R4, R8, R2, R4 ;\n"
    )
    assert sass.opcodes(text) == {"BRA": 1, "UMOV": 1, "HMMA": 1}
    assert sass.opcodes(text, full=True)["HMMA.16816.F32"] == 1


def test_disassembling_garbage() -> None:
    with pytest.raises(FragirError, match=r"nvdisasm .* cannot read this cubin"):
        sass.disassemble(b"no cubin")


def test_info_is_plain_data() -> None:
    assert EntryInfo(8, 0, 0, 1024, 0, 1) == EntryInfo(8, 0, 0, 1024, 0, 1)


def test_ptxas_crashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has been seen to, on several entries with -v: told as such, not by its last line."""
    real = ptxas.find(ptxas.PTXAS).path
    path = tmp_path / "ptxas"
    path.write_text(f"""#!/bin/sh
case "$1" in
--*) exec "{real}" "$@" ;;
esac
echo "ptxas info    : Compile time = 1 ms"
kill -SEGV $$
""")
    path.chmod(0o755)
    monkeypatch.setenv("FRAGIR_PTXAS", str(path))
    with pytest.raises(FragirError, match=r"ptxas crashed \(SIGSEGV\)") as caught:
        assemble(STORE, "sm_80")
    assert "--entry NAME" in (caught.value.hint or "")
