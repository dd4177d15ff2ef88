"""Pages that a command makes: into a file, or where none is named into the browser."""

from __future__ import annotations

from fragir.cli.command import note
from fragir.cli.files import write_output


def deliver(page: str, output: str | None, name: str) -> None:
    """Writes a page to `output`; without one into a temporary folder, as `name`.html, from where
    it is opened in a browser, and says where it lies."""
    if output is not None:
        write_output(output, page)
        return
    import os.path
    import tempfile
    from pathlib import Path

    path = os.path.join(tempfile.mkdtemp(prefix="fragir-"), f"{name}.html")
    write_output(path, page)
    if open_in_browser(Path(path).as_uri()):
        note(f"{path}, which a browser opens; -o names another file")
    else:
        note(f"{path}: there is no browser here that could open it; -o names another file")


def open_in_browser(address: str) -> bool:
    """Opens an address where there is a browser with windows: one for terminals would take over
    the terminal."""
    import webbrowser

    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return False
    if type(browser) is webbrowser.GenericBrowser:
        return False
    return browser.open(address)
