"""`fragir emit`: PTX that ptxas takes, C++ that nvcc takes and whose layouts are the table's."""

from __future__ import annotations

import json
import shutil
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fragir import isa
from fragir.isa import Instruction
from fragir.isa.cuda import header, namespace, struct_name
from fragir.isa.query import View

Fragir = Callable[..., Any]

MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
WGMMA = "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16"


def test_ptx_is_assembled(fragir: Fragir) -> None:
    result = fragir("emit", MMA)
    assert result.code == 0
    assert MMA in result.out
    Path("k.ptx").write_text(result.out)
    assert fragir("assemble", "k.ptx", "--target", "sm_80").code == 0


def test_a_descriptor_and_a_file(fragir: Fragir) -> None:
    result = fragir("emit", WGMMA, "--a", "descriptor", "-o", "k.ptx")
    assert (result.code, result.out) == (0, "")
    text = Path("k.ptx").read_text()
    assert ".target sm_90a" in text
    assert "%a_shared" in text


@pytest.mark.parametrize(
    ("mnemonic", "target"),
    [
        ("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", "sm_75"),
        ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", "sm_89"),
        ("mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e4m3.f32", "sm_120a"),
        (WGMMA, "sm_90a"),
    ],
)
def test_the_default_target_is_native(fragir: Fragir, mnemonic: str, target: str) -> None:
    result = fragir("emit", mnemonic, "--json")
    document = json.loads(result.out)
    assert document["target"] == target
    assert isa.lookup(mnemonic).lowering[target] == "native"
    assert f".target {target}" in document["text"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([MMA, "--target", "sm_75"], "sm_75 does not have it"),
        ([MMA, "--a", "descriptor"], "no form with A as 'descriptor'"),
        ([MMA, "--a", "descriptor", "--as", "cuda"], "no form with A as 'descriptor'"),
        ([MMA.replace("k16", "k15")], "m16n8k15 does not exist"),
        (["mma.sync.aligned.m8n8k4.row.col.f32.bf16.bf16.f32"], "is refused"),
    ],
)
def test_refusals(fragir: Fragir, arguments: list[str], words: str) -> None:
    result = fragir("emit", *arguments)
    assert result.code == 1
    assert words in result.err


# Every family, by the target that its wrapper is compiled for.
WRAPPED: dict[str, list[tuple[str, str]]] = {
    "sm_80": [
        (MMA, "registers"),
        ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "registers"),
        ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64.rz", "registers"),
        ("mma.sync.aligned.m8n8k4.col.row.f32.f16.f16.f16", "registers"),
        ("mma.sync.aligned.m16n8k64.row.col.satfinite.s32.s4.u4.s32", "registers"),
        ("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc", "registers"),
        ("mma.sp.sync.aligned.m16n8k32.row.col.f16.f16.f16.f16", "registers"),
        (
            "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32",
            "registers",
        ),
        ("ldmatrix.sync.aligned.m8n8.x4.trans.b16", "registers"),
        ("movmatrix.sync.aligned.m8n8.trans.b16", "registers"),
    ],
    "sm_90a": [
        ("stmatrix.sync.aligned.m8n8.x2.b16", "registers"),
        (WGMMA, "registers"),
        (WGMMA, "descriptor"),
        ("wgmma.mma_async.sync.aligned.m64n24k32.satfinite.s32.s8.u8", "descriptor"),
        ("wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32", "registers"),
        ("wgmma.mma_async.sp.sync.aligned.m64n16k64.f16.e4m3.e5m2", "registers"),
        ("wgmma.mma_async.sp.sync.aligned.m64n16k32.f32.f16.f16", "descriptor"),
    ],
    "sm_103a": [
        ("tcgen05.ld.sync.aligned.16x256b.x2.b32", "registers"),
        ("tcgen05.ld.sync.aligned.16x32bx2.x4.pack::16b.b32", "registers"),
        ("tcgen05.st.sync.aligned.32x32b.x8.b32", "registers"),
        ("tcgen05.ld.red.sync.aligned.32x32b.x4.max.f32", "registers"),
        ("tcgen05.mma.cta_group::1.kind::f16", "descriptor"),
        ("tcgen05.mma.sp.cta_group::2.kind::f8f6f4", "tensor-memory"),
        ("tcgen05.mma.cta_group::1.kind::mxf4.block_scale.block32", "descriptor"),
        ("tcgen05.mma.ws.cta_group::1.kind::tf32", "descriptor"),
        ("tcgen05.mma.ws.sp.cta_group::1.kind::tf32", "tensor-memory"),
    ],
    "sm_120a": [
        ("ldmatrix.sync.aligned.m16n16.x2.trans.b8", "registers"),
        ("mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e3m2.e2m1.f32", "registers"),
        (
            "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X"
            ".f32.e2m1.e2m1.f32.ue4m3",
            "registers",
        ),
    ],
}


def test_every_family_is_wrapped() -> None:
    wrapped = {isa.lookup(text).family for found in WRAPPED.values() for text, _ in found}
    assert wrapped == set(isa.FAMILIES)


def arguments_of(instruction: Instruction, a: str) -> str:
    """What a call of the wrapper passes; fragments are called as their operands."""
    family = instruction.family
    if family == "movmatrix":
        return "d, a"
    if "registers" in instruction.operands:
        return "registers, " + ("reduced, " if "reduced" in instruction.operands else "") + "0u"
    if family.startswith("tcgen05.mma"):
        left = "0ull" if a == "descriptor" else "0u"
        words = [n for n in ("e", "idesc", "sfa", "sfb") if n in instruction.operands]
        return ", ".join(["0u", left, "0ull", *("0u" for _ in words)])
    sparse = ["e"] if instruction.selectors else []
    if family.startswith("wgmma"):
        return ", ".join(["d", "0ull" if a == "descriptor" else "a", "0ull", *sparse])
    scales = ["1u", "1u"] if "sfa" in instruction.operands else []
    return ", ".join(["d", "a", "b", "c", *sparse, *scales])


def program(instruction: Instruction, a: str, number: int) -> str:
    """A header, the layouts as static assertions, and a kernel that calls the wrapper."""
    scope = f"fragir::{namespace(instruction, a)}"
    lines = [f"__global__ void k{number}(unsigned* out, int i) {{"]
    asserts: list[str] = []
    used: list[str] = []
    for operand in instruction.operands.values():
        if operand.registers.cls not in ("fragment", "metadata"):
            continue
        if operand.name == "a" and a == "descriptor":
            continue
        if operand.name == "c" and instruction.family.startswith("wgmma"):
            continue
        used.append(operand.name)
        lines.append(f"    {scope}::{struct_name(operand.name)} {operand.name} = {{}};")
        if operand.layout is None:
            continue
        lines.append(f"    {operand.name}.set(i, {operand.name}.get(1));")
        view = View.of(instruction, operand.name)
        struct = f"{scope}::{struct_name(operand.name)}"
        for lane in (0, 1, 7, 19, view.lanes - 1):
            held = view.held(lane)
            for place, point in held[:: max(1, len(held) // 8)]:
                at = f"({lane}, {place.element})"
                asserts.append(
                    f"static_assert({struct}::held{at} == {str(point is not None).lower()}, "
                    f'"{operand.name}");'
                )
                for dim, x in zip(view.dims, point or (), strict=False):
                    asserts.append(f'static_assert({struct}::{dim}{at} == {x}, "{operand.name}");')
    template = "<4>" if instruction.tail == ("half-split-offset",) else ""
    lines.append(f"    {scope}::execute{template}({arguments_of(instruction, a)});")
    lines += [
        f"    memcpy(out, &{name}, sizeof {name});" for name in used if name in ("d", "registers")
    ]
    return "\n".join([*asserts, *lines, "}", ""])


@pytest.fixture(scope="module")
def nvcc(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A compiler that works; a skip with the reason where there is none."""
    own = Path(sysconfig.get_paths()["purelib"], "nvidia", "cu13", "bin", "nvcc")
    found = [path for path in (shutil.which("nvcc"), str(own)) if path and Path(path).exists()]
    if not found:
        pytest.skip("no nvcc: install the CUDA toolkit")
    folder = tmp_path_factory.mktemp("nvcc")
    (folder / "k.cu").write_text("__global__ void k() {}\n")
    reason = ""
    for path in found:
        command = [path, "-arch", "sm_80", "-cubin", "k.cu"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return path
        reason = done.stderr
    pytest.skip(f"nvcc does not work: {reason[:300]}")


@pytest.mark.parametrize("target", WRAPPED)
def test_nvcc_compiles_the_wrappers(nvcc: str, target: str) -> None:
    source = ""
    for number, (mnemonic, a) in enumerate(WRAPPED[target]):
        instruction = isa.lookup(mnemonic)
        name = f"w{number}.h"
        Path(name).write_text(header(instruction, target, a))
        source += f'#include "{name}"\n' + program(instruction, a, number)
    Path("all.cu").write_text(source)
    done = subprocess.run(
        [nvcc, "-arch", target, "-cubin", "-Werror", "all-warnings", "all.cu"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[:3000]
    assert Path("all.cubin").stat().st_size > 1000
