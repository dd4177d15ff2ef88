"""Reading and writing files: one clear line on failure, and never half a file."""

from __future__ import annotations

import contextlib
import importlib
import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fragir.cli.command import note, os_error
from fragir.errors import FragirError

_DEVICE = 1 << 26
"""More bytes than this from a device, as `/dev/zero`, would have no end."""


def read_bytes(path: str) -> bytes:
    """A file's bytes; `-` is stdin."""
    try:
        if path == "-":
            return sys.stdin.buffer.read()
        with open(path, "rb") as file:
            if not stat.S_ISCHR(os.fstat(file.fileno()).st_mode) or file.isatty():
                return file.read()
            data = file.read(_DEVICE + 1)
            if len(data) > _DEVICE:
                raise FragirError("this device has no end", path)
            return data
    except OSError as error:
        raise os_error(error, "read") from error
    except ValueError as error:  # a NUL in the name
        raise FragirError(f"cannot read this file: {error}", repr(path)) from error


def read_text(path: str, what: str = "text") -> str:
    """A file's text. Raises FragirError where it is binary; `what` is what was expected."""
    return decode_text(read_bytes(path), "<stdin>" if path == "-" else path, what)


def decode_text(data: bytes, name: str, what: str) -> str:
    """The bytes of a file as text; FragirError where they are none."""
    nul = data.find(b"\0")
    if nul >= 0:
        raise FragirError(f"this is a binary file, not {what}: byte {nul} is 0", file=name)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        col = error.start - data.rfind(b"\n", 0, error.start)
        raise FragirError(f"this is not {what}: no UTF-8 here", name, line, col) from error


def check_replaces_none_of(output: str | None, *sources: str) -> None:
    """Raises FragirError where writing `output` would replace a file that the command reads.

    The same file may have several names: links of both kinds are seen through, and `-` is what
    stdin is redirected from. What is no regular file (a terminal, `/dev/null`) is nobody's loss.
    """
    if output is None or output == "-":
        return
    for source in sources:
        try:
            written, read = os.stat(output), os.fstat(0) if source == "-" else os.stat(source)
        except (OSError, ValueError):  # what cannot be read or is not there yet is no such case
            continue
        if stat.S_ISREG(written.st_mode) and os.path.samestat(written, read):
            what = "this file" if output == source else "<stdin>" if source == "-" else source
            raise FragirError(
                f"the result would replace {what}, which the command reads",
                output,
                hint="name another file",
            )


def check_writable(output: str) -> None:
    """Raises FragirError where `output` cannot be written: what takes long asks first."""
    path = Path(os.path.realpath(output))
    if path.is_dir():
        raise FragirError("cannot write this file: it is a directory", output)
    place = path if path.exists() else path.parent
    if not place.exists():
        raise FragirError("cannot write this file: its folder does not exist", output)
    if not os.access(place, os.W_OK):
        raise FragirError("cannot write this file: Permission denied", output)


def write_output(path: str | None, data: bytes | str) -> None:
    """Writes a result: to stdout where `path` is None or `-`, else into a file, all or nothing.

    Bytes are not written to a terminal.
    """
    if path is None or path == "-":
        if isinstance(data, str):
            sys.stdout.write(data)
            sys.stdout.flush()
            return
        if sys.stdout.isatty():
            raise FragirError("the result is binary", hint="name a file with -o")
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    write_files({path: data})


def write_files(contents: Mapping[str, bytes | str]) -> None:
    """Replaces files, each atomically, after all of them could be written.

    On failure the files are as they were. What is no regular file (`/dev/null`, a pipe) is
    written to directly.
    """
    waiting: list[tuple[str, Path]] = []
    direct: list[tuple[Path, bytes]] = []
    try:
        for name, data in contents.items():
            raw = data.encode() if isinstance(data, str) else data
            path = Path(os.path.realpath(name))
            try:
                if path.is_dir():
                    raise FragirError("cannot write this file: it is a directory", name)
                if path.exists() and not path.is_file():
                    direct.append((path, raw))
                else:
                    waiting.append((_written_beside(path, raw), path))
            except OSError as error:
                error.filename = name
                raise os_error(error, "write") from error
        for temporary, path in waiting:
            os.replace(temporary, path)
        waiting.clear()
        for path, raw in direct:
            path.write_bytes(raw)
    except OSError as error:
        raise os_error(error, "write") from error
    finally:
        for temporary, _ in waiting:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def _written_beside(path: Path, data: bytes) -> str:
    """The name of a new file with this content, in the same folder, with the mode of `path`."""
    import tempfile  # imports much

    if path.exists():
        if not os.access(path, os.W_OK):
            raise PermissionError(13, "Permission denied", str(path))
        mode = stat.S_IMODE(path.stat().st_mode)
    else:
        mask = os.umask(0)
        os.umask(mask)
        mode = 0o666 & ~mask
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(handle)
        os.chmod(temporary, mode)
    except BaseException:
        os.unlink(temporary)
        raise
    return temporary


# -- imported --------------------------------------------------------------------------------------
# `MODULE:NAME` on a command line: a function or class, found from the working folder.


def import_object(text: str, usage: str) -> Any:
    """What a text names; FragirError where it cannot be imported (which says `usage`) or called."""
    module, _, name = text.partition(":")
    folder = os.getcwd()
    sys.path.insert(0, folder)
    try:
        found: Any = importlib.import_module(module)
    except (Exception, SystemExit) as error:
        words = " ".join(str(error).split())
        raise FragirError(f"cannot import {module}: {words}", hint=usage) from error
    finally:
        sys.path.remove(folder)
    for part in name.split("."):
        if not hasattr(found, part):
            raise FragirError(f"{module} has no {name}")
        found = getattr(found, part)
    if not callable(found):
        raise FragirError(f"{text} is no function")
    return found


# -- pages -----------------------------------------------------------------------------------------
# Pages that a command makes: into a file, or where none is named into the browser.


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
