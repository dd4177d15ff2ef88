"""Every example runs: programs by `fragir run`, scripts as a user starts them."""

from __future__ import annotations

import json
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects import func

from fragir import compiler
from fragir.cli.main import main
from fragir.cli.opt import main as opt
from fragir.compiler import Kernel, parse

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PROGRAMS = sorted(EXAMPLES.rglob("*.mlir"))
# run by tests of their own: gemm.py below, triton_gemm.py needs another package
ELSEWHERE = {"gemm.py", "triton_gemm.py"}
SCRIPTS = sorted(
    path
    for path in EXAMPLES.rglob("*.py")
    if path.name not in ELSEWHERE and path.parent.name != "notebooks"  # test_notebooks.py
)
# none is a multiple of a tile
SIZES = {"m": 100, "n": 77, "k": 45, "h": 2}
LANE_LEVEL = {"stmatrix.mlir"}  # no meaning but its PTX; run by tests/families


def entries(path: Path) -> list[func.FuncOp]:
    module = parse(path.read_text(), path.name)
    return [op for op in module.ops if isinstance(op, func.FuncOp)]


def target_of(path: Path, function: func.FuncOp) -> str:
    """The oldest of a few targets that has what the function uses."""
    if any(op.name == "frag.tcgen05_mma" for op in function.walk()):
        return "sm_100a"
    if any(op.name == "frag.wgmma" for op in function.walk()):
        return "sm_90a"
    if any(op.name == "frag.mma" and op.operands[3:] for op in function.walk()):
        return "sm_120a"  # with scales
    return "sm_89" if "fp8" in path.name else "sm_80"


def runs() -> Iterator[tuple[Path, str, str]]:
    """(program, entry, target) of everything that `fragir run` can run; what lies in the folder of
    a family has tests of its own beside this one."""
    for path in sorted(EXAMPLES.glob("*.mlir")):
        if path.name in LANE_LEVEL:
            continue
        for function in entries(path):
            targets = {target_of(path, function), "sm_90a"}
            alone = ("frag.mma", "frag.mma_sparse", "frag.tcgen05_mma")
            if any(op.name in alone for op in function.walk()):
                targets = {target_of(path, function)}
            for target in sorted(targets):
                yield path, function.sym_name.data, target


def names_of_sizes(text: str) -> list[str]:
    """The dynamic sizes of a program, which are m, n and k where it does not name them."""
    if "?x" not in text:
        return []
    if "frag.matmul" in text or "linalg" in text:
        return ["m", "n", "k"]
    return sorted(set(re.findall(r'"(\w+)"', " ".join(re.findall(r"frag.sizes = .*?\]", text)))))


def run(
    capfd: pytest.CaptureFixture[str], path: Path, entry: str, target: str, *more: str
) -> dict[str, object]:
    sizes = [f"{name}={SIZES[name]}" for name in names_of_sizes(path.read_text())]
    size = ["--size", ",".join(sizes)] if sizes else []
    arguments = ["run", str(path), "--entry", entry, "--target", target, *size, "--json", *more]
    code = main([*arguments, "--on", "emulator"])
    out = capfd.readouterr().out
    assert code == 0, out
    return json.loads(out)


def kept(compile_: Callable[..., Kernel]) -> Callable[..., Kernel]:
    """A compiler that compiles one program once."""
    found: dict[str, Kernel] = {}

    def once(text: str, **how: object) -> Kernel:
        key = repr((text, how))
        if key not in found:
            found[key] = compile_(text, **how)
        return found[key]

    return once


@pytest.mark.parametrize(
    ("path", "entry", "target"),
    list(runs()),
    ids=lambda x: x.stem if isinstance(x, Path) else str(x),
)
def test_program(
    path: Path,
    entry: str,
    target: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Normal inputs and small integers; the result is within the reference's bounds."""
    monkeypatch.setattr(compiler, "compile", kept(compiler.compile))
    for inputs in ("normal", "integers"):
        document = run(capfd, path, entry, target, "--inputs", inputs)
        assert document["result"] == "PASS"
        assert document["mismatches"] == 0
        assert document["spills"] == 0
        assert isinstance(document["max_error"], float)
        assert isinstance(document["bound"], float)
        assert document["max_error"] <= document["bound"]


def headers() -> Iterator[tuple[str, str]]:
    """The commands that the comments at the top of programs name."""
    for path in PROGRAMS:
        for line in path.read_text().splitlines():
            if not line.startswith("//"):
                break
            command = re.match(r"//\s+((fragir|fragir-opt|fragir-gui) .*)", line)
            if command:
                yield path.name, command[1]


def python_of(program: str) -> Iterator[str]:
    """The lines of Python in a header, which write files."""
    path = next(path for path in PROGRAMS if path.name == program)
    for line in path.read_text().splitlines():
        if not line.startswith("//"):
            break
        if found := re.match(r"//\s+python (-c .*)", line):
            yield f"{shlex.quote(sys.executable)} {found[1]}"


@pytest.mark.parametrize(("program", "command"), list(headers()))
def test_command_in_the_header(
    program: str,
    command: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Every command that an example's header shows works as it stands there, behind the lines of
    Python above it.
    """
    monkeypatch.chdir(ROOT)
    for line in python_of(program):
        subprocess.run(shlex.split(line), cwd=tmp_path, check=True)
    for file in tmp_path.glob("*.npy"):  # not where the programs are
        command = command.replace(f"={file.name}", f"={shlex.quote(str(file))}")
    words, *pipe = command.split(" | ")
    name, *arguments = shlex.split(words)
    code = opt(arguments) if name == "fragir-opt" else main(arguments)
    captured = capfd.readouterr()
    assert code == 0, captured.err
    assert captured.out
    if pipe:  # | grep WORD
        tool, word = shlex.split(pipe[0])
        assert tool == "grep"
        assert word in captured.out
    if arguments[0] != "layout":
        assert program in command


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_header(path: Path) -> None:
    """Every program begins with what it shows and a command."""
    text = path.read_text()
    assert text.startswith("// ")
    assert any(program == path.name for program, _ in headers())


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_script(
    path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Exit code 0, something to read, no warning; as Python runs it, in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(path)])
    code: object = None
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as end:
        code = end.code
    said = capfd.readouterr()
    assert not code, said.err
    assert said.out.strip()


def test_script_in_a_process_of_its_own(tmp_path: Path) -> None:
    """As a user starts it, without a warning from the first import on."""
    path = next(path for path in SCRIPTS if path.stem == "gemm_tiles")
    command = [sys.executable, "-W", "error", str(path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_gemm_shows_its_table() -> None:
    """`make run`: both targets pass, with a time for every stage and what ptxas says."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "gemm.py")], capture_output=True, text=True, check=True
    )
    rows = {line.split("  ")[0].strip(): line.split() for line in done.stdout.splitlines() if line}
    assert rows["result"][-2:] == ["PASS", "PASS"]
    for row in ("frag-tile, ms", "convert-frag-to-ptx, ms", "emit, ms", "ptxas, ms", "run, ms"):
        assert all(float(time) > 0 for time in rows[row][-2:])
    assert all(int(number) > 16 for number in rows["registers"][-2:])
    assert rows["spills"][-2:] == ["0", "0"]
    errors, bounds = rows["largest error"][-2:], rows["its bound"][-2:]
    for error, bound in zip(errors, bounds, strict=True):
        assert 0 < float(error) <= float(bound) < 0.01


def test_gemm_fails_where_a_result_is_wrong(tmp_path: Path) -> None:
    """Exit code 1 and FAIL: the judge is one that can say no."""
    script = tmp_path / "wrong.py"
    script.write_text(
        "import runpy, sys\n"
        "from fragir.cli.run import Trial\n"
        "execute = Trial.execute\n"
        "def wrong(self):\n"
        "    execute(self)\n"
        "    self.results[max(self.expected)][3, 5] += 1\n"
        "Trial.execute = wrong\n"
        f"runpy.run_path({str(EXAMPLES / 'gemm.py')!r}, run_name='__main__')\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    assert "FAIL" in done.stdout


def test_every_family_has_an_example() -> None:
    """One instruction for each fragment family."""
    programs = "\n".join(path.read_text() for path in PROGRAMS)
    names = {path.stem for path in PROGRAMS}
    wanted = {
        *("mma_m8n8k4_f16", "mma_m8n8k4_f64", "mma_m8n8k16_s8", "mma_m16n8k8_f16"),
        *("mma_m16n8k16_f16", "mma_m16n8k8_tf32", "mma_m16n8k32_s8", "ldmatrix", "stmatrix"),
        *("wgmma_registers", "wgmma_shared", "wgmma_sparse", "mma_sparse", "mma_block_scaled"),
    }
    assert wanted <= names
    for a in ("row", "col"):
        for b in ("row", "col"):
            for sums in ("f16_f16", "f32_f32", "f16_f32"):
                assert f"@{a}_{b}_{sums}" in programs


def test_gemm_in_frag_is_gemm() -> None:
    """The hand-written GEMM gives to the bit what frag.matmul with its epilogue gives."""
    import fragir

    by_hand = fragir.compile((EXAMPLES / "gemm_frag.mlir").read_text())
    program = """
!matrix = memref<?x?xf16>
func.func @gemm(%a: !matrix, %b: !matrix, %bias: memref<?xf16>, %c: !matrix) {
  frag.matmul %a, %b into %c with %bias
    : !matrix, !matrix into !matrix with memref<?xf16> epilogue {
  ^bb0(%x: f32, %old: f16, %b16: f16):
    %b32 = arith.extf %b16 : f16 to f32
    %biased = arith.addf %x, %b32 : f32
    %none = arith.constant 0.0 : f32
    %active = arith.maximumf %biased, %none : f32
    %rounded = arith.truncf %active : f32 to f16
    frag.yield %rounded : f16
  }
  func.return
}
"""
    tiled = fragir.compile(program)
    rng = np.random.default_rng(0)
    a, b, bias = (
        rng.standard_normal(shape).astype(np.float16) for shape in ((150, 77), (77, 130), (130,))
    )
    results = [np.zeros((150, 130), np.float16) for _ in range(2)]
    for kernel, result in zip((by_hand, tiled), results, strict=True):
        kernel(a, b, bias, result, on="emulator")
    np.testing.assert_array_equal(results[0], results[1])
    assert results[0].any()


def test_page_lists_every_example() -> None:
    """docs/examples.md names each file, and only files that exist."""
    page = (ROOT / "docs" / "examples.md").read_text()
    linked = set(re.findall(r"\(\.\./examples/([\w./]+)\)", page))
    assert linked == {
        path.relative_to(EXAMPLES).as_posix()
        for end in ("mlir", "py", "ptx")
        for path in EXAMPLES.rglob(f"*.{end}")
    }
