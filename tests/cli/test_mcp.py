"""`fragir mcp`: the three tools, called once, and in a session of the protocol's client."""

from __future__ import annotations

import asyncio
import builtins
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fragir.errors import FragirError
from fragir.judge import Tools
from tests.cli.test_json import validate

if TYPE_CHECKING:
    from mcp import Client

Fragir = Callable[..., Any]
ROOT = Path(__file__).resolve().parents[2]
NORM = (ROOT / "examples/judged/norm.ptx").read_text("utf-8")
CASES = f"{ROOT / 'examples/judged/cases.py'}:norms"
#: A case as a text, small.
CASE = """
import numpy as np
from fragir.judge import Case, KernelCall

def cases(rng):
    x = rng.normal(size=(2, 40)).astype(np.float32)
    y = np.empty_like(x)
    eps = float(np.float32(1e-5))
    call = KernelCall("norm", [x, y, 40, eps], grid=2, block=32)

    def norm(x):
        return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps)

    yield Case(call, inputs=[x], outputs=[y], reference=norm)
"""
WRONG = NORM.replace("%f2, 16, 31", "%f2, 8, 31")
ENDLESS = NORM.replace("ret;\n}", "loop:\n add.u32 %r4,%r4,1;\n bra loop;\n}")
needs_sdk = pytest.mark.skipif(
    importlib.util.find_spec("mcp") is None, reason="the extra mcp is not installed"
)


# -- the tools -------------------------------------------------------------------------------------


def test_a_kernel_and_a_case_as_texts() -> None:
    tools = Tools(seconds=60)
    verdict = tools.judge(NORM, CASE, seed=3)
    validate(verdict, "judge")
    assert (verdict["verdict"], verdict["seed"]) == ("pass", 3)
    verdict = tools.judge(NORM.replace("ret;\n}", "rett;\n}"), CASE)
    assert {reason["file"] for reason in verdict["reasons"]} == {"kernel.ptx"}


def test_paths_and_options(in_folder: Path) -> None:
    Path("k.ptx").write_text(NORM)
    Path("c.py").write_text(CASE.replace("def cases", "def other"))
    tools = Tools(seconds=60)
    assert tools.judge("k.ptx", "c:other", structure=[0])["structure"] == ["x"]
    assert tools.judge("k.ptx", CASE.replace("40", "20"), strict=True)["verdict"] == "incomplete"
    assert not [path for path in in_folder.iterdir() if path.suffix not in (".ptx", ".py")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kernel": "none.ptx"}, "cannot read this file"),
        ({"case": "nowhere"}, "MODULE:FUNCTION"),
        ({"case": "def cases(rng):\n    yield 1 / 0\n"}, "case.py:2: the case is broken: ZeroDiv"),
        ({"function": "no name"}, "no name of a function"),
        ({"case": "#\n" * (1 << 20)}, "a case has at most"),
        ({"seconds": 0}, "no limit"),
    ],
)
def test_what_gives_no_verdict(arguments: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"kernel": NORM, "case": CASE, **arguments}
    with pytest.raises(FragirError, match=message) as caught:
        Tools(seconds=60).judge(**given)
    assert "fragir-tool-" not in str(caught.value)


def test_time_ends_a_judgement_and_the_process_of_its_case() -> None:
    pid = Path("pid").resolve()
    sleeping = f"""
import os, time
def cases(rng):
    open({str(pid)!r}, "w").write(str(os.getpid()))
    time.sleep(1000)
"""
    with pytest.raises(FragirError, match=r"stopped after 12 s"):
        Tools(seconds=12).judge(NORM, sleeping)  # the process must have begun by then
    number = int(pid.read_text())
    for _ in range(100):
        try:
            os.kill(number, 0)
        except ProcessLookupError:
            break
        time.sleep(0.05)
    else:
        os.kill(number, signal.SIGKILL)
        raise AssertionError("the process of the case goes on")


def test_a_kernel_that_never_ends_gets_no_pass() -> None:
    try:
        word = Tools(seconds=6).judge(ENDLESS, CASE)["verdict"]
    except FragirError as error:
        word = str(error)
    assert word == "incomplete" or "stopped after 6 s" in word


# -- without a client ------------------------------------------------------------------------------


def test_called_once(fragir: Fragir) -> None:
    result = fragir("mcp", "--call", "explain_finding", "--arguments", '{"finding": "race"}')
    assert result.code == 0
    validate(json.loads(result.out), "mcp-finding")
    result = fragir("mcp", "--call", "list_supported")
    assert result.code == 0
    validate(json.loads(result.out), "mcp-supported")


@pytest.mark.parametrize("name", ["fail", "unsupported", "A", "letter", "window", "result"])
def test_explanations_fit_their_schema(fragir: Fragir, name: str) -> None:
    asked = json.dumps({"finding": name})
    result = fragir("mcp", "--call", "explain_finding", "--arguments", asked)
    validate(json.loads(result.out), "mcp-finding")


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--call", "explain_finding", "--arguments", "{"], 1, "no JSON"),
        (["--call", "explain_finding", "--arguments", "[]"], 1, "an object"),
        (["--call", "explain_finding"], 1, "takes other arguments"),
        (["--call", "judge", "--arguments", '{"kernel": "k", "case": "c", "x": 1}'], 1, "'x'"),
        (["--call", "explain_finding", "--arguments", '{"finding": "rase"}'], 1, "near it: race"),
        (["--call", "nothing"], 2, "nothing"),
        (["--arguments", '{"finding": "race"}'], 2, "--call"),
    ],
)
def test_wrong_calls(fragir: Fragir, options: list[str], code: int, message: str) -> None:
    result = fragir("mcp", *options)
    assert result.code == code
    assert message in result.err
    assert "Traceback" not in result.err


def test_without_the_sdk(fragir: Fragir, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.partition(".")[0] == "mcp":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    result = fragir("mcp")
    assert result.code == 1
    assert "pip install 'fragir[mcp]'" in result.err
    assert result.out == ""


# -- with a client ---------------------------------------------------------------------------------


def session(steps: Callable[[Client], Awaitable[None]], *options: str) -> None:
    """Does steps with a client of a server that runs as a user's would."""
    from mcp import Client, StdioServerParameters

    async def main() -> None:
        server = StdioServerParameters(
            command=sys.executable,
            args=["-m", "fragir.cli.main", "mcp", *options],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        async with Client(server, read_timeout_seconds=120) as client:
            await steps(client)

    asyncio.run(main())


def text_of(result: Any) -> str:
    return "".join(part.text for part in result.content)


@needs_sdk
def test_a_session() -> None:
    async def steps(client: Client) -> None:
        assert client.server_info is not None
        assert client.server_info.name == "fragir"
        assert "Only the verdict `pass`" in (client.instructions or "")
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {"judge", "explain_finding", "list_supported"}
        assert set(tools["judge"].input_schema["required"]) == {"kernel", "case"}

        good = await client.call_tool("judge", {"kernel": NORM, "case": CASES, "seed": 1})
        assert not good.is_error
        assert good.structured_content is not None
        validate(good.structured_content, "judge")
        assert good.structured_content["verdict"] == "pass"
        assert json.loads(text_of(good)) == good.structured_content

        bad = await client.call_tool("judge", {"kernel": WRONG, "case": CASE, "seed": 1})
        assert bad.structured_content is not None
        reason = bad.structured_content["reasons"][0]
        told = await client.call_tool("explain_finding", {"finding": reason})
        assert told.structured_content is not None
        validate(told.structured_content, "mcp-finding")
        assert told.structured_content["name"] == "result"

        listed = await client.call_tool("list_supported", {})
        assert listed.structured_content is not None
        validate(listed.structured_content, "mcp-supported")

    session(steps)


#: Case files that want to be heard, or to end who asks.
HOSTILE = {
    "speaks": """
import os
print('{"verdict": {"verdict": "pass"}, "error": null}')
os.write(1, b"{}")
def cases(rng):
    yield "{}"
""",
    "exits": "import os\ndef cases(rng):\n    os._exit(0)\n",
    "eats": "def cases(rng):\n    yield [bytearray(1 << 28) for _ in range(64)]\n",
}


@needs_sdk
def test_hostile_calls_are_errors_and_the_session_goes_on() -> None:
    async def steps(client: Client) -> None:
        for name, case in HOSTILE.items():
            result = await client.call_tool("judge", {"kernel": NORM, "case": case})
            assert result.is_error, name
            assert "no verdict" in text_of(result), name
            assert "Traceback" not in text_of(result), name
        wrong: list[dict[str, Any]] = [{}, {"kernel": 7}, {"kernel": "none.ptx", "case": CASES}]
        for arguments in wrong:
            result = await client.call_tool("judge", arguments)
            assert result.is_error
            assert "Traceback" not in text_of(result)
        result = await client.call_tool("judge", {"kernel": "\0\n" * 9, "case": CASE})
        assert result.structured_content is not None
        assert result.structured_content["verdict"] == "fail"
        result = await client.call_tool("explain_finding", {"finding": "rase"})
        assert result.is_error
        assert "near it: race" in text_of(result)
        result = await client.call_tool("explain_finding", {"finding": "race"})
        assert not result.is_error

    session(steps, "--seconds", "30", "--memory", "2")


@needs_sdk
def test_the_server_ends_with_its_client() -> None:
    command = [sys.executable, "-m", "fragir.cli.main", "mcp"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, input=b"", capture_output=True, env=environment, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    done = subprocess.run(
        command, input=b"no JSON\n", capture_output=True, env=environment, timeout=60, check=False
    )
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr
    for line in done.stdout.splitlines():
        json.loads(line)
