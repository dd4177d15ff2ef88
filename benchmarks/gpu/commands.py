"""`fragir run` in the process of a step: what it says as JSON."""

from __future__ import annotations

import contextlib
import io
import json
from typing import Any

from fragir.errors import FragirError


def fragir_run(*words: str) -> dict[str, Any]:
    """The document of `fragir run ... --json`, with `wrong` where its verdict is not PASS.

    FragirError where it is an error.
    """
    from fragir.cli.main import main

    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        main(["run", *words, "--json"])
    document: dict[str, Any] = json.loads(out.getvalue())
    if "error" in document:
        raise FragirError(document["error"]["message"])
    if document["result"] != "PASS":
        error, bound = document["max_error"], document["bound"]
        document["wrong"] = f"{document['result']}: error {error}, bound {bound}"
    return document
