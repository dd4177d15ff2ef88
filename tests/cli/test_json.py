"""Every `--json` document agrees with its schema in docs/json.md."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

Fragir = Callable[..., Any]

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "json.md"
BLOCK = re.compile(r"^## (.+?)\n(.*?)```json\n(.*?)```", re.MULTILINE | re.DOTALL)


def schemas() -> dict[str, Any]:
    """The schemas by their `$id`."""
    found: dict[str, Any] = {}
    for _, _, text in BLOCK.findall(DOCUMENT.read_text()):
        schema = json.loads(text)
        found[schema["$id"]] = schema
    return found


SCHEMAS = schemas()


def validate(document: Any, name: str) -> None:
    schema = {**SCHEMAS[name]}
    del schema["$id"]
    validator: Any = jsonschema.Draft202012Validator(schema)
    validator.validate(document)


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_schemas_are_schemas(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMAS[name])


def test_no_schema_is_forgotten() -> None:
    assert {"error", "assemble", "check", "doctor", "emulate"} <= set(SCHEMAS)
    assert len(SCHEMAS) == DOCUMENT.read_text().count("```json")


def test_schemas_are_strict() -> None:
    with pytest.raises(jsonschema.ValidationError):
        validate({"entries": {}, "warnings": [], "more": 1}, "assemble")
    with pytest.raises(jsonschema.ValidationError):
        validate({"error": {"message": "two\nlines", "file": None, "line": 1, "col": 1}}, "error")


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_assemble(fragir: Fragir, store: Path, target: str) -> None:
    result = fragir("assemble", "store.ptx", "--target", target, "--json")
    validate(json.loads(result.out), "assemble")


def test_doctor(fragir: Fragir, monkeypatch: pytest.MonkeyPatch) -> None:
    validate(json.loads(fragir("doctor", "--json").out), "doctor")
    monkeypatch.setenv("FRAGIR_CACHE_SIZE", "much")
    validate(json.loads(fragir("doctor", "--json").out), "doctor")


@pytest.mark.parametrize("command", ["emulate", "check"])
@pytest.mark.parametrize(("block", "code"), [("32", 0), ("64", 1)])
def test_launches(fragir: Fragir, store: Path, command: str, block: str, code: int) -> None:
    """A clean run, and one that leaves the buffer: a finding of `check`, an error of `emulate`."""
    np.save("out.npy", np.zeros(32, np.uint32))
    launch = ["store.ptx", "--block", block, "--arg", "out:out.npy", "--arg", "u32:1"]
    result = fragir(command, *launch, "--json")
    assert result.code == code
    validate(json.loads(result.out), "error" if (command, code) == ("emulate", 1) else command)


@pytest.mark.parametrize(
    "arguments",
    [
        ["assemble", "none.ptx", "--target", "sm_80"],
        ["assemble", "store.ptx", "--target", "sm_999"],
        ["descriptor", "--layout"],
        ["emulate", "none.ptx"],
        ["check", "none.ptx"],
        ["nothing"],
        [],
    ],
)
def test_errors(fragir: Fragir, store: Path, arguments: list[str]) -> None:
    result = fragir(*arguments, "--json")
    assert result.code in (1, 2)
    validate(json.loads(result.out), "error")
