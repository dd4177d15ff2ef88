"""The package as users get it: an sdist, a wheel built from it, installed in an empty environment.

An editable install hides what a wheel lacks: a forgotten package, a forgotten grammar file.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.metadata import Metadata

from tests.packaging.building import (
    C_SOURCES,
    EPOCH,
    LIBRARY,
    ROOT,
    build,
    checksums,
    copy_tree,
    run,
    sources,
)

pytestmark = pytest.mark.packaging

HOMES = {"fragir/": "fragir/", "dialects/": "fragir/dialects/", "passes/": "fragir/passes/"}

KERNEL = """\
.version 7.0
.target sm_80
.address_size 64
.visible .entry increment(.param .u64 data)
{
    .reg .b64 %rd<4>;
    .reg .b32 %r<3>;
    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %tid.x;
    mad.wide.u32 %rd2, %r1, 4, %rd1;
    ld.global.u32 %r2, [%rd2];
    add.u32 %r2, %r2, 1;
    st.global.u32 [%rd2], %r2;
    ret;
}
"""

IMPORT_EVERYTHING = """\
import importlib, json, pkgutil
import fragir
names = [m.name for m in pkgutil.walk_packages(fragir.__path__, "fragir.")]
for name in names:
    importlib.import_module(name)
print(json.dumps({"file": fragir.__file__, "modules": names}))
"""


def test_wheel_has_every_source_file(built: tuple[Path, Path]) -> None:
    """But for the C of the compiled core, in whose place it has the library (test_core.py)."""
    with zipfile.ZipFile(built[1]) as wheel:
        names = {n for n in wheel.namelist() if not n.startswith(LIBRARY)}
    wanted = {
        packaged + name.removeprefix(home)
        for name in sources()
        for home, packaged in HOMES.items()
        if name.startswith(home) and not (ROOT / name).is_symlink()
    }
    wanted -= {name for name in wanted if name.startswith(C_SOURCES)}
    assert "fragir/py.typed" in wanted
    assert wanted - names == set()
    metadata = {name for name in names if re.match(r"fragir-[0-9.]+\.dist-info/", name)}
    assert names - wanted - metadata == set()


def test_sdist_has_what_a_packager_needs(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[0]) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    top = {"LICENSE", "README.md", "CHANGELOG.md", "Makefile", "constraints.txt", "mkdocs.yml"}
    kept = ("tests/", "docs/", "examples/", "benchmarks/", C_SOURCES)
    wanted = top | {name for name in sources() if name.startswith(kept)}
    assert wanted - names == set()


def test_sdist_has_no_more_than_the_sources(built: tuple[Path, Path]) -> None:
    """And what setuptools says about them; `fragir/dialects` and `fragir/passes` are links."""
    with tarfile.open(built[0]) as sdist:
        names = {m.name.partition("/")[2] for m in sdist.getmembers() if not m.isdir()}
    made = {"PKG-INFO", "setup.cfg"}
    assert {
        n for n in names - set(sources()) - made if not n.startswith("fragir.egg-info/")
    } == set()


def test_metadata_is_valid_and_complete(built: tuple[Path, Path]) -> None:
    """By the rules that an index has (PEP 566, 639, 685); the page shows the README."""
    with zipfile.ZipFile(built[1]) as wheel, tarfile.open(built[0]) as sdist:
        (name,) = (n for n in wheel.namelist() if n.endswith(".dist-info/METADATA"))
        text = wheel.read(name)
        licences = [n for n in wheel.namelist() if n.endswith(".dist-info/licenses/LICENSE")]
        inner = next(m for m in sdist.getmembers() if m.name.count("/") == 1 and "PKG-" in m.name)
        file = sdist.extractfile(inner)
        assert file is not None
        assert file.read() == text
    found = Metadata.from_email(text, validate=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (found.name, str(found.version)) == ("fragir", project["version"])
    assert found.license_expression == "Apache-2.0"
    assert len(licences) == 1
    assert found.description_content_type == "text/markdown"
    assert found.description is not None
    assert found.description.strip() == (ROOT / "README.md").read_text().strip()
    assert found.classifiers == project["classifiers"]
    assert found.requires_python == project["requires-python"]


def test_wheel_is_the_same_when_it_is_built_again(built: tuple[Path, Path], tmp_path: Path) -> None:
    """Byte for byte, from the sdist, elsewhere and later, with the same SOURCE_DATE_EPOCH."""
    with tarfile.open(built[0]) as sdist:
        sdist.extractall(tmp_path, filter="data")
    (tree,) = tmp_path.iterdir()
    for file in tree.rglob("*"):
        if not file.is_symlink():
            os.utime(file)
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path / "dist", tree]
    run(command, tmp_path, SOURCE_DATE_EPOCH=EPOCH)
    again = tmp_path / "dist" / built[1].name
    assert again.read_bytes() == built[1].read_bytes()


def test_links_as_text_files_give_the_same_wheel(built: tuple[Path, Path], tmp_path: Path) -> None:
    """As git checks them out where the file system has no links."""
    tree = copy_tree(tmp_path / "tree", links=False)
    assert (tree / "fragir" / "dialects").read_text() == "../dialects"
    _, other = build(tree, FRAGIR_PURE="1")  # the core is not compiled again for this
    wanted = {n: c for n, c in checksums(built[1]).items() if not n.startswith(LIBRARY)}
    assert checksums(other) == wanted


def test_every_module_imports(environment: Path, tmp_path: Path) -> None:
    found = json.loads(run([environment / "python", "-c", IMPORT_EVERYTHING], tmp_path))
    assert not Path(found["file"]).is_relative_to(ROOT)
    wanted = {
        (packaged + name.removeprefix(home)).removesuffix(".py").removesuffix("/__init__")
        for name in sources()
        for home, packaged in HOMES.items()
        if name.startswith(home) and name.endswith(".py")
    } - {"fragir"}
    assert {name.replace(".", "/") for name in found["modules"]} == wanted


def test_commands(environment: Path, tmp_path: Path) -> None:
    (tmp_path / "k.ptx").write_text(KERNEL)
    found = json.loads(run([environment / "fragir", "doctor", "--json"], tmp_path))
    assert found["problems"] == []
    text = run(
        [environment / "fragir", "assemble", "k.ptx", "--target", "sm_80", "--json"], tmp_path
    )
    assert json.loads(text)["entries"]["increment"]["barriers"] == 0


def test_emulating(environment: Path, tmp_path: Path) -> None:
    """Needs the grammar file of the PTX reader."""
    (tmp_path / "k.ptx").write_text(KERNEL)
    python = environment / "python"
    make = "import numpy; numpy.save('x.npy', numpy.arange(32, dtype=numpy.uint32))"
    run([python, "-c", make], tmp_path)
    run([environment / "fragir", "emulate", "k.ptx", "--arg", "inout:x.npy"], tmp_path)
    show = "import numpy; print(numpy.load('x.npy').tolist())"
    assert json.loads(run([python, "-c", show], tmp_path)) == list(range(1, 33))


def test_stock_xdsl_opt_finds_the_plug_in(environment: Path, tmp_path: Path) -> None:
    assert "builtin.module" in run([environment / "xdsl-opt"], tmp_path, "builtin.module {}")


def test_a_package_that_extends(environment: Path, tmp_path: Path) -> None:
    """docs/extending.md's package as pip installs it beside the wheel."""
    package = shutil.copytree(ROOT / "tests" / "extending" / "tilekit", tmp_path / "tilekit")
    pip = [environment / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run([*pip, "--no-deps", package], tmp_path)
    programs = package / "programs"
    gram = ["run", programs / "gram.mlir", "--on", "emulator", "--size", "m=40,n=40,k=24"]
    assert run([environment / "fragir", *gram], tmp_path).endswith("PASS\n")
    listed = run([environment / "fragir", "compile", "--print-pipeline", programs / "gram.mlir"],
                 tmp_path)  # fmt: skip
    assert listed.startswith("kit-to-frag,")
    assert "kit.gram" in run([environment / "xdsl-opt", programs / "gram.mlir"], tmp_path)


# examples that need packages which fragir does not
OTHERS = {
    "examples/in_the_wild/triton_gemm.py": "Triton",
    **dict.fromkeys(
        (f"examples/notebooks/{n}.py" for n in ("conversions", "layouts", "matmul_to_ptx")),
        "marimo: tests/examples/test_notebooks.py runs them",
    ),
}


def test_examples(environment: Path, tmp_path: Path) -> None:
    """Every example in Python that needs no other package runs outside the tree."""
    examples = [name for name in sources() if name.startswith("examples/")]
    for name in examples:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, tmp_path / name)
    programs = sorted(name for name in examples if name.endswith(".py"))
    if not programs:
        pytest.skip("there are no examples")
    assert set(OTHERS) <= set(programs)
    for name in sorted(set(programs) - set(OTHERS)):
        run([environment / "python", name], tmp_path)
