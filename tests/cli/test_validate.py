"""`fragir validate`: reports, resuming, and what it says when something differs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from fragir.toolchain import driver
from fragir.validation import probes
from fragir.validation.products import Words

Fragir = Callable[..., Any]

ONLY = ("--only", "mma.sync.aligned.m16n8k8.*.f32.*", "--cases", "2")


def schema() -> dict[str, Any]:
    text = (Path(__file__).resolve().parents[2] / "docs" / "json.md").read_text()
    found = re.findall(r"^```json\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return next(s for s in map(json.loads, found) if s.pop("$id") == "validate")


def checked(text: str) -> Any:
    document = json.loads(text)
    validator: Any = jsonschema.Draft202012Validator(schema())
    validator.validate(document)
    return document


def test_a_report(fragir: Fragir) -> None:
    result = fragir("validate", *ONLY, "--report", "r.json", "--json")
    assert result.code == 0
    document = checked(result.out)
    assert document == checked(Path("r.json").read_text())
    assert document["summary"]["instructions"] == len(document["instructions"]) == 3
    assert {e["mnemonic"].split(".")[-2] for e in document["instructions"]} == {
        "f16",
        "bf16",
        "tf32",
    }
    for entry in document["instructions"]:
        assert entry["cases"]["random"] == 2
        assert entry["cases"]["onehot"] == 16 * 8 + 8 * 8 + 16 * 8


def test_resuming(fragir: Fragir, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in the report is not run; what failed to run, or has another kernel, is."""
    assert fragir("validate", *ONLY, "--report", "r.json").code == 0
    earlier = json.loads(Path("r.json").read_text())
    earlier["instructions"][0]["error"] = "gone"
    earlier["instructions"][1]["ptx_sha256"] = "0" * 64
    Path("r.json").write_text(json.dumps(earlier))
    ran: list[str] = []
    real = probes.emulator_runner

    def runner(ptx: str, target: str, blocks: int, threads: int, words: Sequence[Words]) -> None:
        ran.append(re.findall(r"^\t(mma\S+)", ptx, re.MULTILINE)[0])
        real(ptx, target, blocks, threads, words)

    monkeypatch.setattr(probes, "emulator_runner", runner)
    result = fragir("validate", *ONLY, "--report", "r.json", "--resume")
    assert result.code == 0
    assert "2 results taken over" in result.err
    assert set(ran) == {e["mnemonic"] for e in earlier["instructions"][:2]}
    assert json.loads(Path("r.json").read_text())["summary"]["instructions"] == 3


def test_a_report_of_other_circumstances_is_not_resumed(fragir: Fragir) -> None:
    assert fragir("validate", *ONLY, "--report", "r.json").code == 0
    other = fragir("validate", *ONLY[:2], "--cases", "3", "--report", "r.json", "--resume")
    assert (other.code, "another cases" in other.err) == (1, True)
    Path("r.json").write_text("[]")
    assert "no report" in fragir("validate", *ONLY, "--report", "r.json", "--resume").err


def test_a_mismatch_is_a_finding(fragir: Fragir, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(ptx: str, target: str, blocks: int, threads: int, words: Sequence[Words]) -> None:
        words[-1][:, 3, 1] = 1

    monkeypatch.setattr(probes, "emulator_runner", broken)
    result = fragir("validate", *ONLY[:1], "mma*m16n8k8*bf16*", "--cases", "2")
    assert result.code == 1
    assert "1 kernels failed" in result.out
    assert "elements differ" in result.out


def test_refusals(fragir: Fragir) -> None:
    assert fragir("validate", "--resume").code == 2
    assert fragir("validate", "--on", "gpu", "--target", "sm_80").code == 2
    assert "no instruction" in fragir("validate", "--only", "nothing*").err
    assert "no instruction" in fragir("validate", "--only", "tcgen05*").err
    if driver.available() is not None:
        result = fragir("validate", "--on", "gpu", "--json")
        assert result.code == 1
        assert "no GPU can be used" in json.loads(result.out)["error"]["message"]


@pytest.mark.gpu
def test_on_a_gpu(fragir: Fragir) -> None:
    """A run on the GPU at hand: its bits are the emulator's."""
    reason = driver.available()
    if reason is not None:
        pytest.skip(f"no GPU: {reason}")
    result = fragir("validate", "--on", "gpu", *ONLY, "--json")
    document = checked(result.out)
    assert document["device"]["name"]
    assert document["summary"]["failed"] == 0
    assert document["instructions"][0]["cases"]["bits"] == 2
