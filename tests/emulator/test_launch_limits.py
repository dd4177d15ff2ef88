"""What a machine takes of a launch: the CUDA programming guide's table, ptxas, and every entry."""

from __future__ import annotations

import re

import numpy as np
import pytest

import fragir
from fragir import compiler
from fragir.emulator import EmulationError, run
from fragir.errors import FragirError
from fragir.ptx import machines
from fragir.toolchain import ptxas

KIB = 1024


def nothing(target: str = "sm_90", head: str = "", before: str = "", body: str = "") -> str:
    return f"""
.version 9.0
.target {target}
.address_size 64
{before}
.visible .entry k() {head}
{{
    .reg .b32 %r<4>;
    {body}
    ret;
}}
"""


# -- the table -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "kib"),
    # "Maximum amount of shared memory per thread block" of the programming guide
    [
        *(("sm_75", 64), ("sm_80", 163), ("sm_86", 99), ("sm_87", 163), ("sm_89", 99)),
        *(("sm_90", 227), ("sm_100a", 227), ("sm_103", 227), ("sm_110f", 227)),
        *(("sm_120", 99), ("sm_121a", 99)),
    ],
)
def test_shared_memory_of_a_block(target: str, kib: int) -> None:
    assert machines.machine(target).shared == kib * KIB


@pytest.mark.parametrize(
    "target", ["sm_75", "sm_87", "sm_90", "sm_90a", "sm_100a", "sm_100f", "sm_110a", "sm_121a"]
)
def test_static_shared_memory_is_what_ptxas_says(target: str) -> None:
    text = nothing(
        target, before=".shared .align 4 .b8 big[4000000];", body="st.shared.u32 [big], %r1;"
    )
    with pytest.raises(FragirError, match="too much shared data") as caught:
        ptxas.assemble(text, target)
    found = re.search(r"0x([0-9a-f]+) max", caught.value.message)
    assert found is not None
    assert machines.machine(target).static_shared == int(found[1], 16)


@pytest.mark.parametrize(("version", "most"), [("8.0", 4352), ("8.1", 32764)])
def test_bytes_of_parameters_are_what_ptxas_says(version: str, most: int) -> None:
    def text(size: int) -> str:
        return (
            nothing("sm_80")
            .replace("k()", f"k(.param .align 4 .b8 p[{size}])")
            .replace(".version 9.0", f".version {version}")
        )

    assert machines.parameter_bytes("sm_80", (8, int(version[2]))) == most
    ptxas.assemble(text(most), "sm_80")
    run(text(most), arguments=[bytes(most)])
    with pytest.raises(FragirError, match="too much parameter space"):
        ptxas.assemble(text(most + 4), "sm_80")
    with pytest.raises(EmulationError, match=f"have {most + 4} bytes, more than {most}") as caught:
        run(text(most + 4), arguments=[bytes(most + 4)])
    assert caught.value.line == 6


# -- the emulator ----------------------------------------------------------------------------------

REFUSED = [
    ("sm_90", {"grid": (2**31,)}, "at most 2147483647 blocks in x"),
    ("sm_90", {"grid": (10**20,)}, "at most 2147483647 blocks in x"),
    ("sm_90", {"grid": (1, 65536)}, "at most 65535 blocks in y"),
    ("sm_90", {"grid": (1, 1, 65536)}, "at most 65535 blocks in z"),
    ("sm_90", {"block": (1025,)}, "at most 1024 threads in x"),
    ("sm_90", {"block": (1, 1025)}, "at most 1024 threads in y"),
    ("sm_90", {"block": (1, 1, 65)}, "at most 64 threads in z"),
    ("sm_90", {"block": (32, 33)}, "at most 1024 threads, not 1056"),
    ("sm_90", {"grid": (17,), "cluster": (17,)}, "at most 16 blocks, not 17"),
    ("sm_90", {"grid": (3,), "cluster": (2,)}, "no multiple of the cluster"),
    ("sm_89", {"grid": (2,), "cluster": (2,)}, "sm_89 has no clusters"),
    ("sm_90", {"shared": -1}, "no shared memory of -1 bytes"),
    ("sm_90", {"shared": 227 * KIB + 1}, "sm_90 has at most 232448"),
    ("sm_86", {"shared": 100 * KIB}, "sm_86 has at most 101376"),
]


@pytest.mark.parametrize(("target", "launch", "words"), REFUSED)
def test_refused(target: str, launch: dict[str, object], words: str) -> None:
    with pytest.raises(EmulationError, match=words):
        run(nothing(target), **launch)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("target", "launch"),
    [
        ("sm_90", {"grid": (1, 1, 3), "block": (2, 8, 64)}),
        ("sm_90", {"grid": (16,), "cluster": (16,)}),
        ("sm_90", {"shared": 227 * KIB}),
        ("sm_86", {"shared": 99 * KIB}),
    ],
)
def test_taken(target: str, launch: dict[str, object]) -> None:
    run(nothing(target), **launch)  # type: ignore[arg-type]


def test_the_machine_counts_not_the_codes_target() -> None:
    run(nothing("sm_80"), shared=200 * KIB, target="sm_90")
    with pytest.raises(EmulationError, match="sm_80 has at most 166912"):
        run(nothing("sm_80"), shared=200 * KIB)
    with pytest.raises(EmulationError, match="sm_86 has at most 101376"):
        run(nothing("sm_80"), shared=120 * KIB, target="sm_86")


def declared(size: int) -> tuple[str, str]:
    return f".shared .align 4 .b8 big[{size}];", "st.shared.u32 [big], %r1;"


@pytest.mark.parametrize(("target", "most"), [("sm_80", 49152), ("sm_90a", 232448)])
def test_static_shared_memory(target: str, most: int) -> None:
    before, body = declared(most)
    run(nothing(target, before=before, body=body))
    before, body = declared(most + 1)
    with pytest.raises(EmulationError, match=f"code for {target} has at most {most}") as caught:
        run(nothing(target, before=before, body=body))
    assert caught.value.source == before


def test_static_and_dynamic_together() -> None:
    before, body = declared(40000)
    text = nothing("sm_86", before=before, body=body)
    run(text, shared=99 * KIB - 40000)
    with pytest.raises(EmulationError, match="101377 bytes of shared memory, 40000 of them static"):
        run(text, shared=99 * KIB - 40000 + 1)


def test_shared_memory_of_another_kernel_does_not_count() -> None:
    """ptxas gives each kernel 40,000 bytes."""
    before = "".join(f".shared .align 16 .b8 {name}[40000];\n" for name in "ab")
    text = nothing("sm_80", before=before, body="st.shared.u32 [b+39996], %r1;")
    text += (
        nothing(body="st.shared.u32 [a], %r1;")
        .partition(".address_size 64")[2]
        .replace("entry k", "entry other")
    )
    assert {e.shared for e in ptxas.assemble(text, "sm_80").entries.values()} == {40000}
    assert not run(text, "k", check=True).statistics.loaded["shared"]


@pytest.mark.parametrize(
    ("space", "size", "words"),
    [("const", 65540, "at most 65536"), ("local", (512 << 10) + 4, "at most 524288")],
)
def test_other_spaces(space: str, size: int, words: str) -> None:
    variable = f".{space} .align 4 .b8 big[{size}];"
    body = f"ld.{space}.u32 %r1, [big];"
    before, body = (variable, body) if space == "const" else ("", f"{variable} {body}")
    with pytest.raises(EmulationError, match=words):
        run(nothing(before=before, body=body))


def test_what_the_head_of_a_kernel_says() -> None:
    run(nothing(head=".reqntid 8, 4"), block=(8, 4))
    with pytest.raises(EmulationError, match="requires blocks of 32 threads"):
        run(nothing(head=".reqntid 8, 4"), block=(32,))
    run(nothing(head=".maxntid 8, 4"), block=(32,))
    with pytest.raises(EmulationError, match="allows blocks of 32 threads"):
        run(nothing(head=".maxntid 8, 4"), block=(33,))
    with pytest.raises(EmulationError, match="allows clusters of 4 blocks"):
        run(nothing(head=".maxclusterrank 4"), grid=(8,), cluster=(8,))
    with pytest.raises(EmulationError, match="at most 16 blocks"):
        run(nothing(head=".reqnctapercluster 32"), grid=(32,))


# -- the compiler, Kernel and the builder ----------------------------------------------------------

ALLOC = """func.func @f(%a: memref<128x64xf16>) {
  %z = arith.constant 0 : index
  %s = memref.alloc() : memref<6x128x64xf16, #frag.shared<swizzle = 128>>
  %t = memref.alloc() : memref<1x128x64xf16, #frag.shared<swizzle = 128>>
  func.return
}
"""


def test_the_allocation_that_is_one_too_many_is_named() -> None:
    """Seven tiles of 16 KiB: six fit into the 99 KiB of sm_86."""
    module = compiler.parse(ALLOC)
    for lower in (
        lambda: compiler.compile(ALLOC, target="sm_86"),
        lambda: compiler.lower(module, "lane", "sm_86", source=ALLOC),
    ):
        with pytest.raises(FragirError, match="114688 bytes of shared memory; sm_86") as caught:
            lower()
        assert (caught.value.line, caught.value.col) == (4, 3)
        assert "98304 bytes are taken before" in caught.value.message
    assert compiler.compile(ALLOC, target="sm_80").shared == 114688


def test_lane_code_too() -> None:
    text = """func.func @f() attributes {ptx.ntid = 32 : i64} {
  %s = ptx.shared 101377 : !ptx.ptr<shared>
  func.return
}
"""
    with pytest.raises(FragirError, match="102400 bytes of shared memory; sm_89") as caught:
        compiler.compile(text, target="sm_89")
    assert caught.value.line == 2


def test_many_parameters() -> None:
    """545 pointers need PTX 8.1 (4352 bytes before), 4096 are more than any kernel has."""

    def text(count: int) -> str:
        arguments = ", ".join(f"%a{i}: i64" for i in range(count))
        return f"func.func @f({arguments}) attributes {{ptx.ntid = 32}} {{\n  func.return\n}}\n"

    kernel = compiler.compile(text(545))
    assert kernel.ptx.startswith(".version 8.1")
    assert ptxas.assemble(kernel.ptx, "sm_80").entries["f"]
    with pytest.raises(FragirError, match="32768 bytes, a kernel's at most 32764") as caught:
        compiler.compile(text(4096))
    assert caught.value.line == 1


COPY = """func.func @f(%a: memref<16x16xf32>) {
  func.return
}
"""


@pytest.mark.parametrize("place", ["emulator", "gpu"])
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"shared": -1}, "no shared memory of -1 bytes"),
        ({"shared": "x"}, "shared is .*, it must be a whole number"),
        ({"shared": 1.5}, "shared is 1.5, it must be a whole number"),
        ({"shared": 200_000}, "sm_80 has at most 166912"),
        ({"grid": (1, 70000)}, "at most 65535 blocks in y"),
        ({"grid": (2,), "cluster": (2, 1, 1)}, "sm_80 has no clusters"),
        ({"block": (1, 1, 128)}, "at most 64 threads in z"),
    ],
)
def test_kernel(place: str, options: dict[str, object], words: str) -> None:
    """Before anything is assembled or run, so without a GPU too."""
    kernel = compiler.compile(COPY)
    launch: dict[str, object] = {"grid": 1, "block": None} | options
    grid, block = launch.pop("grid"), launch.pop("block")
    with pytest.raises(FragirError, match=words):
        kernel.launch(grid, block, np.zeros((16, 16), np.float32), on=place, **launch)  # type: ignore[arg-type]


def test_grids_of_programs() -> None:
    text = COPY.replace(") {", ") attributes {frag.grid = #frag.grid<1, 70000>} {")
    with pytest.raises(FragirError, match="at most 65535 blocks in y") as caught:
        compiler.compile(text)
    assert caught.value.line == 1
    with (
        pytest.raises(FragirError, match="at most 65535 blocks in z") as built,
        fragir.kernel("f") as k,
    ):
        k.grid(1, 1, 65536)
    assert built.value.line is not None
