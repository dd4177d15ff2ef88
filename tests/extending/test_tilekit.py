"""A package of its own adds a dialect, passes and a stage to every tool."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.extending.installed import Result, install, run

PACKAGE = Path(__file__).with_name("tilekit")
GRAM, ROW_MAX, COLUMNS, WIDE = (
    str(PACKAGE / "programs" / f"{name}.mlir") for name in ("gram", "row_max", "columns", "wide")
)
MEAN = str(PACKAGE / "programs" / "mean.ptx")
ON = ("--on", "emulator")
SIZES = ("--size", "m=40,n=40,k=24")
OURS = "frag-tile,frag-pipeline,frag-raster,frag-prefetch,frag-place,convert-frag-to-ptx"
PIPELINE = f"kit-to-frag,kit-set-tile{{m=32 n=32 k=16}},{OURS}"

PYTHON = f"""
import fragir
from xdsl.passes import ModulePass
from fragir.compilation import pipeline
from tilekit.set_tile import SetTilePass

text = open({GRAM!r}).read()
module = fragir.parse(text)
seen = []
rest = {OURS!r}
kernel = fragir.compile(
    module, passes=["kit-to-frag", SetTilePass(32, 32, 16), rest], target="sm_80",
    observe=lambda name, module: seen.append(name),
)
assert kernel.ptx == fragir.compile(module, passes={PIPELINE!r}).ptx
assert kernel.ptx != fragir.compile(text).ptx
assert [argument.name for argument in kernel.signature] == ["a", "c"]
assert kernel.signature[1].dims == ("m", "n")
print(*seen)
"""

COMMANDS = {
    "opt": ("fragir-opt", GRAM, "-p", "kit-to-frag"),
    "opt attribute": ("fragir-opt", COLUMNS),
    "help": ("fragir-opt", "--help"),
    "compiled": ("fragir", "compile", GRAM),
    "lowered by opt": ("fragir-opt", GRAM, "-t", "ptx", "-p",
                       f"kit-to-frag,{OURS}"),
    "pipeline": ("fragir", "compile", "--print-pipeline", GRAM),
    "placed": ("fragir", "compile", "--print-pipeline", "--to", "placed", GRAM),
    "no stage": ("fragir", "compile", "--print-pipeline", COLUMNS),
    "listed": ("fragir", "compile", "-p", PIPELINE, GRAM),
    "run gram": ("fragir", "run", GRAM, *ON, *SIZES, "--json"),
    "run listed": ("fragir", "run", GRAM, *ON, *SIZES, "-p", PIPELINE, "--json"),
    "run row_max": ("fragir", "run", ROW_MAX, *ON, "--json"),
    "run columns": ("fragir", "run", COLUMNS, *ON, "--json"),
    "python": ("python", PYTHON),
    "unknown": ("fragir", "compile", "-p", "kit-set-tlie", GRAM),
    "own target": ("fragir", "compile", GRAM, "--target", "sm_95a", "-o", "gram.ptx"),
    "assembled": ("fragir", "assemble", "gram.ptx", "--target", "sm_95a", "--json"),
    "no target": ("fragir", "compile", GRAM, "--target", "sm_96a"),
    "wide": ("fragir", "compile", WIDE, "--target", "sm_95a"),
    "not wide": ("fragir", "compile", WIDE, "--target", "sm_90a"),
    "mean": ("fragir", "emulate", MEAN, "--arg", "inout:x.npy"),
    "misspelt": ("fragir", "emulate", "misspelt.ptx", "--arg", "inout:x.npy"),
    "check": ("fragir", "check", MEAN, "--arg", "inout:x.npy", "--performance", "--json",
              "--with", "tilekit.narrow:NarrowStores"),
    "no check": ("fragir", "check", MEAN, "--arg", "inout:x.npy", "--with", "tilekit.narrow:No"),
    "doctor": ("fragir", "doctor", "--json"),
    "option": ("fragir", "compile", "-p", "kit-set-tile{rows=3}", GRAM),
}  # fmt: skip


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    folder = tmp_path_factory.mktemp("tilekit")
    install(PACKAGE, folder / "site")
    np.save(folder / "x.npy", np.arange(10, 42, dtype=np.uint32))
    text = Path(MEAN).read_text().replace("hadd.u32", "hadd.rn.u32")
    (folder / "misspelt.ptx").write_text(text)
    found = run(folder / "site", list(COMMANDS.values()), folder)
    assert (np.load(folder / "x.npy") == np.arange(32) + 5).all()
    return dict(zip(COMMANDS, found, strict=True))


def test_fragir_opt(results: dict[str, Result]) -> None:
    assert "frag.matmul %a, %a transposed into %c" in results["opt"].out
    assert "#kit.columns" in results["opt attribute"].out
    assert "kit-set-tile" in results["help"].out


def test_a_target_of_the_package(results: dict[str, Result]) -> None:
    assert results["own target"].code == 0, results["own target"].err
    assert list(json.loads(results["assembled"].out)["entries"]) == ["gram"]
    assert "'sm_96a' is no target of this compiler" in results["no target"].err


def test_an_mma_shape_of_the_package(results: dict[str, Result]) -> None:
    assert results["wide"].out.count("mma.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32") == 1
    assert results["not wide"].out.count("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32") == 2


def test_an_instruction_of_the_package(results: dict[str, Result]) -> None:
    assert "hadd 1," in results["mean"].out
    assert "there is no instruction hadd.rn.u32: .rn is no modifier" in results["misspelt"].err


def test_a_check_of_the_package(results: dict[str, Result]) -> None:
    (found,) = json.loads(results["check"].out)["findings"]
    assert (found["kind"], found["severity"], found["line"]) == ("narrow-store", "remark", 13)
    assert results["no check"].err == "error: tilekit.narrow has no No\n"


def test_the_pipeline_has_the_stage_where_it_is_needed(results: dict[str, Result]) -> None:
    names = results["pipeline"].out.replace('{target="sm_80"}', "").strip().split(",")
    assert names == ["kit-to-frag", *OURS.split(",")]
    assert results["placed"].out.strip() == results["pipeline"].out.strip().rpartition(",")[0]
    assert "kit-to-frag" not in results["no stage"].out
    assert results["compiled"].out == results["lowered by opt"].out


def test_doctor_lists_what_packages_add(results: dict[str, Result]) -> None:
    found = json.loads(results["doctor"].out)["extensions"]
    assert {row["package"] for row in found} == {"tilekit"}
    values = [row["value"] for row in found]
    assert values == [
        *("tilekit.hadd:HADD", "tilekit.universe:STAGE", "tilekit.targets:SM_95A"),
        "tilekit.universe:UNIVERSE",
    ]


def test_listed_passes(results: dict[str, Result]) -> None:
    assert results["listed"].code == 0
    assert results["listed"].out != results["compiled"].out
    assert results["python"].out.split() == [
        *("kit-to-frag", "kit-set-tile"),
        *OURS.split(","),
    ]


@pytest.mark.parametrize("name", ["gram", "listed", "row_max", "columns"])
def test_runs_are_judged_by_the_meaning(results: dict[str, Result], name: str) -> None:
    found = json.loads(results[f"run {name}"].out)
    assert found["result"] == "PASS"
    assert found["bound"] >= found["max_error"] >= 0


def test_row_max_exchanges_values_between_lanes(results: dict[str, Result]) -> None:
    assert json.loads(results["run row_max"].out)["max_error"] > 0


def test_mistakes_in_a_list_of_passes(results: dict[str, Result]) -> None:
    assert results["unknown"].err == (
        "error: there is no pass kit-set-tlie (did you mean kit-set-tile?)\n"
    )
    assert results["option"].code == 1
    assert "(its options: m, n, k)" in results["option"].err
    assert "fault of" not in results["option"].err
