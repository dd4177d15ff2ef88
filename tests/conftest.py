"""What all tests have: a browser, for those that are marked so, and a word on whether they ran."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser import BrowserThread, Pages, opened, summary

# A core has a test process of its own already. Tests of several jobs ask for them.
os.environ.setdefault("FRAGIR_JOBS", "1")

_THREAD = pytest.StashKey[BrowserThread]()


@pytest.fixture(scope="session")
def browser_thread(request: pytest.FixtureRequest) -> Iterator[BrowserThread]:
    """The thread of this process's browser."""
    thread = BrowserThread()
    request.config.stash[_THREAD] = thread
    yield thread
    thread.end()


@pytest.fixture
def open_page(browser_thread: BrowserThread) -> Iterator[Pages]:
    """Opens a file in the browser: `page = open_page(path, "fragment", width=360, touch=True)`."""
    yield from opened(browser_thread)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A test with a browser runs in the browser's thread."""
    if "open_page" not in pyfuncitem.fixturenames:
        return None
    names: tuple[str, ...] = getattr(pyfuncitem, "_fixtureinfo").argnames
    arguments: dict[str, Any] = {name: pyfuncitem.funcargs[name] for name in names}
    pyfuncitem.config.stash[_THREAD].run(pyfuncitem.obj, **arguments)
    return True


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says whether browser tests ran, also into the file that FRAGIR_BROWSER_REPORT names."""
    kinds = ("passed", "failed", "skipped", "error")
    found = [report for kind in kinds for report in terminalreporter.getreports(kind)]
    line = summary(found)
    if line is None:
        return
    terminalreporter.write_line(line)
    if report := os.environ.get("FRAGIR_BROWSER_REPORT"):
        Path(report).write_text(f"{line}\n", "utf-8")
