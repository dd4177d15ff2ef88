"""What shells are told: the words of each parameter, in the forms that bash, zsh and fish take."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from fragir import isa
from fragir.cli.arguments import parse
from fragir.cli.completers import MORE, RULES, CompletedWord, attach, mnemonics, passes
from fragir.cli.main import COMMANDS, commands
from fragir.cli.opt_words import FLAGS, opt
from fragir.cli.shells import SHELLS, FragirBash, FragirFish, FragirZsh
from fragir.errors import FragirError
from fragir.isa.targets import TARGETS

Fragir = Callable[..., Any]
ROOT = Path(__file__).resolve().parents[2]
MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"


@pytest.fixture
def clone(in_folder: Path) -> Path:
    (in_folder / "examples").symlink_to(ROOT / "examples")
    return in_folder


def words(line: str, cli: click.Command = commands) -> list[str]:
    """What stands for the last word of a line, as fish is told; `+` behind what goes on."""
    *args, incomplete = line.split(" ")
    found = FragirFish(cli, {}, "fragir", "X").get_completions(args[1:], incomplete)
    return [f"{item.value}{'+' if item.type == 'partial' else ''}" for item in found]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("fragir compl", ["completion"]),
        ("fragir run --inp", ["--inputs"]),
        ("fragir run p.mlir --inputs on", ["onehot"]),
        ("fragir compile --target sm_90", ["sm_90", "sm_90a"]),
        ("fragir compile --target=sm_90", ["--target=sm_90", "--target=sm_90a"]),
        (f"fragir layout {MMA} ", ["a", "b", "c", "d"]),
        ("fragir layout no.such.thing ", []),
        (f"fragir convert --from {MMA}:", [f"{MMA}:{name}" for name in "abcd"]),
        (f"fragir convert --to {MMA[:-1]}", [f"{MMA}:+"]),
        ("fragir layout ttg", ["ttg:#ttg.+"]),
        ("fragir convert --type bf", ["bf16"]),
        ("fragir compile x -p frag-tile{target=sm_90a},frag-place,convert-linalg-to-f",
         ["frag-tile{target=sm_90a},frag-place,convert-linalg-to-frag+"]),
        ("fragir compile x -p frag-tile{tar", []),
        ("fragir sweep validat", ["validation"]),
        ("fragir compile examples/gemm_f", ["examples/gemm_frag.mlir"]),
        ("fragir emulate examples/sto", ["examples/store.ptx"]),
        ("fragir sass examples/sto", ["examples/store.ptx", "examples/stmatrix.mlir"][:1]),
        ("fragir compile exam", ["examples/+"]),
        ("fragir compile none/", []),
        ("fragir compile examples/gemm.mlir --entry ", ["gemm"]),
        ("fragir emulate examples/store.ptx --entry ", ["store"]),
        ("fragir emulate none.ptx --entry ", []),
        ("fragir emulate x.ptx --arg tma", ["tma:+", "tma-pointer:+"]),
    ],
)  # fmt: skip
def test_words(clone: Path, line: str, expected: list[str]) -> None:
    assert words(line) == expected


def test_files_by_ending(clone: Path) -> None:
    for name in ("a.npy", "b.txt", ".hidden.npy", "c d.npy"):
        (clone / name).touch()
    (clone / "folder").mkdir()
    assert words("fragir emulate k.ptx --arg inout:") == [
        *("inout:a.npy", "inout:c d.npy", "inout:examples/+", "inout:folder/+")
    ]
    assert words("fragir run k.mlir --expect c=./a") == ["c=./a.npy"]
    assert words("fragir validate --report b") == ["b.txt"]


def complaint(argument: str) -> str:
    """What `--arg` says of an argument, nothing where it takes it."""
    try:
        parse(argument)
    except FragirError as error:
        return error.message
    return ""


def test_kinds_of_arguments() -> None:
    """Each is one that `--arg` knows: what is wrong with it is its value at most."""
    found = words("fragir emulate k.ptx --arg ")
    kinds = [word.removesuffix("+") for word in found if word.endswith(":+")]
    assert {"in:", "b64:", "bf16:", "struct:"} <= set(kinds)
    for kind in kinds:
        assert "is no argument" not in complaint(f"{kind}~")
    assert "is no argument" in complaint("f12:~")
    assert "null" in found
    assert parse("null") is None


def test_mnemonics_lead_to_every_instruction() -> None:
    """From word to word, as one goes on by TAB; most choices has wgmma, 32 N for each of 4 K."""
    begun, found, most = [""], set[str](), 0
    while begun:
        words = [word for word, _ in mnemonics(None, begun.pop())]
        most = max(most, len(words))
        for word in words:
            if word.endswith(MORE):
                begun.append(word.removesuffix(MORE))
            else:
                found.add(word)
    assert found == {instruction.mnemonic for instruction in isa.instructions()}
    assert most <= 32 * 4


def test_every_parameter_of_a_kind_completes() -> None:
    """No command has a target, a pass list or a file of ours that does not."""
    seen: set[str] = set()
    for name in COMMANDS:
        command = commands.get_command(click.Context(commands), name)
        assert command is not None
        attach(command.params)
        for parameter in command.params:
            metavar = parameter.metavar or ""
            ours = metavar in RULES or any(e in metavar for e in (".mlir", ".ptx", ".npy"))
            number = isinstance(parameter.type, click.types.IntParamType)
            assert isinstance(parameter.type, CompletedWord) or number or not ours, (
                name,
                parameter.name,
            )
            if isinstance(parameter.type, CompletedWord):
                seen |= {parameter.name or "", metavar}
            if parameter.name == "name":
                assert name == "sweep"
            if metavar == "SM":
                assert parameter.type.shell_complete(click.Context(command), parameter, "sm_80")
    assert seen >= RULES.keys()
    assert len(words("fragir compile --target sm_")) == len(TARGETS)


# Each shell --------------------------------------------------------------------------------------


def told(cls: type[Any], monkeypatch: pytest.MonkeyPatch, **environment: str) -> list[str]:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return str(cls(commands, {}, "fragir", "_FRAGIR_COMPLETE").complete()).splitlines()


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("fragir compile --target=sm_90", ["plain,sm_90", "plain,sm_90a"]),
        ("fragir layout mma.sp:", ["partial,:ordered_metadata.sync.aligned."]),
        (f"fragir layout '{MMA}' ", [f"plain,{name}" for name in "abcd"]),
        (f"fragir convert --from {MMA}:", [f"plain,{name}" for name in "abcd"]),
        ("fragir compile -p frag-til", ["partial,frag-tile"]),
    ],
)
def test_bash(monkeypatch: pytest.MonkeyPatch, line: str, answer: list[str]) -> None:
    """What follows the cursor is left out, and what stands before bash's last break."""
    cursor = {"COMP_LINE": f"{line} x", "COMP_POINT": str(len(line)), "COMP_WORDBREAKS": ":="}
    found = told(FragirBash, monkeypatch, **cursor)
    if "mma.sp:" in line:
        assert all(each.startswith(answer[0]) for each in found)
    else:
        assert found == answer


def test_zsh_and_fish(monkeypatch: pytest.MonkeyPatch) -> None:
    line = {"COMP_WORDS": f"fragir layout {MMA} ", "COMP_CWORD": "3"}
    assert told(FragirZsh, monkeypatch, **line)[:3] == ["plain", "a", "f16, 16 x 16"]
    line = {"COMP_WORDS": "fragir compile -p frag-tile,frag-pl", "COMP_CWORD": "frag-tile,frag-pl"}
    assert told(FragirFish, monkeypatch, **line) == ["partial,frag-tile,frag-place"]


@pytest.mark.parametrize("shell", SHELLS)
def test_script(shell: str, fragir: Fragir, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to it give the same text, which the shell reads where it is installed."""
    script = fragir("completion", shell).out
    monkeypatch.setenv("SHELL", f"/usr/bin/{shell}")
    assert fragir("completion").out == script
    assert f"_FRAGIR_COMPLETE={shell}_complete " in script
    monkeypatch.setenv("_FRAGIR_COMPLETE", f"{shell}_source")
    assert fragir().out.rstrip() == script.rstrip()  # click 8.2 ends in an empty line more
    if (program := shutil.which(shell)) is not None:
        subprocess.run([program, "-n"], input=script, text=True, check=True)


def test_unknown_shell(fragir: Fragir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    result = fragir("completion")
    assert result.code == 1
    assert "$SHELL is tcsh, which has no completion here" in result.err


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash is installed")
def test_in_bash(clone: Path) -> None:
    """The function that the script defines, called as bash calls it."""
    (clone / "fragir").write_text(f'#!/bin/sh\nexec {sys.executable} -m fragir.cli.main "$@"\n')
    (clone / "fragir").chmod(0o755)
    lines = (f"fragir layout {MMA} ", "fragir-opt -p frag-pla", "fragir compile examples/gemm_f")
    asked = "".join(
        f"COMP_LINE='{line}'; COMP_POINT={len(line)}; _fragir_completion {line.split()[0]}\n"
        'echo "${COMPREPLY[*]}"\n'
        for line in lines
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", f"source <(fragir completion bash)\n{asked}"],
        env={**os.environ, "PATH": f"{clone}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # compopt says that no key was pressed
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ["a b c d", "frag-place", "examples/gemm_frag.mlir"]


# fragir-opt --------------------------------------------------------------------------------------


def test_options_of_fragir_opt() -> None:
    """Those that its parser has."""
    from fragir.cli.opt import FragirOptMain

    parser = argparse.ArgumentParser()
    FragirOptMain("fragir-opt", []).register_all_arguments(parser)
    theirs = {word for action in parser._actions for word in action.option_strings}
    ours = {word for parameter in opt.params for word in parameter.opts if word[0] == "-"}
    assert {word for word in theirs if word.startswith("--")} <= ours | {"--debug"}
    assert ours <= theirs | {"--debug"}
    assert sorted(FLAGS) == list(FLAGS)


def test_words_of_fragir_opt(clone: Path) -> None:
    assert words("fragir-opt -p frag-til", opt) == ["frag-tile+"]
    assert words("fragir-opt -t pt", opt) == ["ptx"]
    assert words("fragir-opt examples/gemm_p", opt) == ["examples/gemm_placed.mlir"]
    names = [name for name, _ in passes(None, "")]
    assert names[0] == f"convert-frag-to-ptx{MORE}"
    assert f"canonicalize{MORE}" in names


def test_a_tab_imports_little() -> None:
    """No arrays, no grammar and no IR for a mnemonic."""
    line = "fragir layout mma."
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "fragir.cli.main"],
        env={**os.environ, "_FRAGIR_COMPLETE": "bash_complete",
             "COMP_LINE": line, "COMP_POINT": str(len(line))},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "partial,mma.sync." in done.stdout
    names = {text.rpartition("|")[2].strip() for text in done.stderr.splitlines()}
    assert not {"numpy", "lark", "xdsl", "rich"} & {name.partition(".")[0] for name in names}
