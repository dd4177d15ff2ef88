"""The page as a file: what is in it, how its modules are joined, and the command that writes it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import fragir.cli.files
from fragir import isa
from fragir.cli.main import main
from fragir.draw.svg import COUNT, colour, hexadecimal
from fragir.errors import FragirError
from fragir.explore import page
from fragir.explore.document import bundle

Written = Callable[[dict[str, str]], Path]


def data_of(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_the_page_is_one_file() -> None:
    text = page()
    assert len(text.encode()) < 2_000_000
    assert not re.search(r"""(?:src|href)=["'](?!#|data:)""", text)
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    for part in (style, script):
        digest = base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in text
    assert "import " not in re.sub(r"//.*", "", script)
    for shade in range(COUNT):
        assert f"--c{shade}:{hexadecimal(colour(shade))};" in style
        assert style.count(f"--c{shade}:{hexadecimal(colour(shade, dark=True))};") == 2
    assert page() == text


def test_registered_instructions_are_there() -> None:
    known = isa.lookup("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
    own = replace(known, mnemonic=f"{known.mnemonic}.of_my_own</script>")
    with isa.using(isa.current().with_instruction(own)):
        text = page()
    assert text.count("</script>") == page().count("</script>")
    rows = data_of(text)["instructions"]
    assert own.mnemonic in [row[0] for row in rows]
    assert own.mnemonic not in [row[0] for row in data_of(page())["instructions"]]


@pytest.fixture
def written(tmp_path: Path) -> Written:
    def write(files: dict[str, str]) -> Path:
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        return tmp_path

    return write


def test_modules_are_joined_in_the_order_of_their_imports(written: Written) -> None:
    folder = written(
        {
            "a.js": 'import { one as first, two } from "./b.js";\n'
            'import { three } from "./c.js";\n',
            "b.js": 'import { three } from "./c.js";\nconst one = 1;\n'
            "export const two = three - 1;\nexport { one };\n",
            "c.js": "export function three() {}\nexport class Four {}\n"
            "export function* five() {}\n",
        }
    )
    script = bundle(folder, "a.js")
    assert re.findall(r"^const (\$\w+) = ", script, re.MULTILINE) == ["$c", "$b", "$a"]
    assert "const { one: first, two } = $b;" in script
    assert re.findall(r"return \{ (.*) \};", script) == ["three, Four, five", "two, one", ""]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"a.js": 'import * as b from "./b.js";\n'}, "a.js is not joined: import"),
        ({"a.js": "export default 1;\n"}, "a.js is not joined: export default 1;"),
        (
            {"a.js": 'import { b } from "./b.js";\n', "b.js": 'import { a } from "./a.js";\n'},
            "a.js imports itself by a.js and b.js",
        ),
    ],
)
def test_what_cannot_be_joined_is_told(written: Written, files: dict[str, str], words: str) -> None:
    with pytest.raises(FragirError, match=re.escape(words)):
        bundle(written(files), "a.js")


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = page()
    kept = tmp_path / "page.html"
    assert main(["explore", "-o", str(kept)]) == 0
    assert kept.read_text("utf-8") == text
    assert main(["explore", "-o", "-"]) == 0
    assert capsys.readouterr().out == text
    assert main(["explore", "-o", str(tmp_path / "none" / "page.html")]) == 1
    told = capsys.readouterr().err
    assert "No such file or directory" in told
    assert "Traceback" not in told
    opened: list[str] = []

    def open_in_browser(url: str) -> bool:
        opened.append(url)
        return True

    monkeypatch.setattr(fragir.cli.files, "open_in_browser", open_in_browser)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert main(["explore"]) == 0
    (address,) = opened
    assert Path(address.removeprefix("file://")).read_text("utf-8") == text
    assert address.removeprefix("file://") in capsys.readouterr().err
