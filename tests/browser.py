"""A headless browser for tests: Chromium or Chrome where one is installed; else they are skipped.

A test is marked `browser` and asks for the fixture `open_page`, which `tests/conftest.py` has for
all of them. It runs in the browser's thread: Playwright keeps an event loop running where it was
started, and no other test of the process is to find one there. A process has one browser.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page, Playwright

NAMES = (
    "chromium-headless-shell",  # half the time of a whole browser
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
NO_BROWSER = f"there is no browser on PATH: {', '.join(NAMES)}"
_SWITCHES = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_PATIENCE = 10_000  # ms, on a loaded machine


@cache
def executable() -> str | None:
    """The browser that is used."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class BrowserThread:
    """The thread that has the browser, which starts when it is first asked for."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "browser")
        self._started: tuple[Playwright, Browser] | None = None
        self._contexts: dict[bool, BrowserContext] = {}

    def run(self, function: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """Calls a function there; what it raises is raised here."""
        return self._pool.submit(function, *args, **named).result()

    def browser(self) -> Browser:
        """The browser; to be called in its thread."""
        if self._started is None:
            path = executable()
            if path is None:
                pytest.skip(NO_BROWSER)
            from playwright.sync_api import sync_playwright  # imports much

            playwright = sync_playwright().start()
            browser = playwright.chromium.launch(executable_path=path, args=[*_SWITCHES])
            self._started = playwright, browser
        return self._started[1]

    def context(self, touch: bool) -> BrowserContext:
        """The one for pages on a phone, or on a desk: a window each, which takes long to open."""
        if touch not in self._contexts:
            made = self.browser().new_context(has_touch=touch, is_mobile=touch)
            self._contexts[touch] = made
        return self._contexts[touch]

    def end(self) -> None:
        """Closes the browser."""
        if self._started is not None:
            playwright, browser = self._started
            self._started = None
            self.run(browser.close)
            self.run(playwright.stop)
        self._pool.shutdown()


@dataclass
class Pages:
    """Opens pages of files, and knows what they complained of and asked the network for."""

    thread: BrowserThread
    complaints: list[str] = field(default_factory=list[str])
    requests: list[str] = field(default_factory=list[str])
    _open: list[Page] = field(default_factory=list["Page"])

    def __call__(
        self,
        path: Path,
        fragment: str = "",
        *,
        width: int = 1280,
        height: int = 800,
        dark: bool = False,
        touch: bool = False,
    ) -> Page:
        """The page of a file, loaded; `fragment` stands behind the `#` of its address.

        Errors and warnings of its console, exceptions that it leaves, and requests for anything
        but the file make the test fail that has opened it.
        """
        page = self.thread.context(touch).new_page()
        self._open.append(page)
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme="dark" if dark else "light")
        page.set_default_timeout(_PATIENCE)
        page.on("console", lambda said: self._said(said.type, said.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        address = path.resolve().as_uri()
        page.goto(f"{address}#{fragment}" if fragment else address)
        return page

    def _said(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.complaints.append(f"{kind}: {text}")

    def close(self) -> None:
        for page in self._open:
            page.evaluate("localStorage.clear()")
            page.close()

    def strangers(self) -> list[str]:
        """The addresses that were asked for and are no files, nor in the page itself."""
        return [url for url in self.requests if not url.startswith(("file:", "data:", "blob:"))]


def opened(thread: BrowserThread) -> Iterator[Pages]:
    """What the fixture `open_page` gives."""
    if executable() is None:
        pytest.skip(NO_BROWSER)
    pages = Pages(thread)
    yield pages
    thread.run(pages.close)
    assert pages.complaints == []
    assert pages.strangers() == []


def summary(reports: Sequence[pytest.TestReport | pytest.CollectReport]) -> str | None:
    """`browser tests: 30 passed`, or why they were skipped; None where there were none."""
    outcomes: Counter[str] = Counter()
    reasons: dict[str, None] = {}
    for report in reports:
        # reports of modules have keywords in some versions of pytest only
        if "browser" not in getattr(report, "keywords", ()) or (
            isinstance(report, pytest.TestReport) and report.when != "call" and report.passed
        ):
            continue
        outcomes[report.outcome] += 1
        if report.skipped and isinstance(report.longrepr, tuple):
            reasons[str(report.longrepr[2]).removeprefix("Skipped: ")] = None
    if not outcomes:
        return None
    told = ", ".join(f"{outcomes[name]} {name}" for name in ("passed", "failed", "skipped"))
    return f"browser tests: {told}" + "".join(f" ({reason})" for reason in reasons)
