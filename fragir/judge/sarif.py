"""Verdicts as a log of SARIF 2.1.0, which code hosts show at the lines of a kernel."""

from __future__ import annotations

from collections.abc import Iterable

from fragir.judge.meanings import VERDICTS, Document, meanings

_LEVELS = {"fail": "error", "incomplete": "warning", "unsupported": "warning"}
#: The rule of a kernel that got none.
NO_VERDICT = "no verdict"


def log(results: Iterable[tuple[str, Document | None, str | None]], version: str) -> Document:
    """One run with the reasons of all kernels.

    `results`: the file of each, the document of its verdict, or None and why there is none.
    """
    found: list[Document] = []
    words: dict[str, str] = {}
    for kernel, verdict, error in results:
        if verdict is None:
            words[kernel] = NO_VERDICT
            found.append(_result(NO_VERDICT, "error", error or NO_VERDICT, _place(kernel)))
            continue
        words[kernel] = verdict["verdict"]
        for reason in (*verdict["reasons"], *verdict["letters"]):
            place = _place(reason["file"] or kernel, reason["line"], reason["col"])
            level = _LEVELS.get(reason["verdict"], "note")
            found.append(_result(reason["kind"], level, reason["message"], place))
    driver = {
        "name": "fragir judge",
        "version": version,
        "rules": [_rule(kind) for kind in sorted({one["ruleId"] for one in found})],
    }
    single = len(words) == 1
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "results": found,
                "properties": {"verdict": next(iter(words.values()))}
                if single
                else {"verdicts": words},
            }
        ],
    }


def _result(kind: str, level: str, message: str, place: Document) -> Document:
    return {
        "ruleId": kind,
        "level": level,
        "message": {"text": " ".join(message.split())},
        "locations": [{"physicalLocation": place}],
    }


def _place(file: str, line: int | None = None, col: int | None = None) -> Document:
    found: Document = {"artifactLocation": {"uri": file}}
    if line is not None:
        found["region"] = {"startLine": line, "startColumn": col or 1}
    return found


def _rule(kind: str) -> Document:
    if kind == NO_VERDICT:
        one = VERDICTS[kind]
        return {"id": kind, "shortDescription": {"text": one.means}, "help": {"text": one.then}}
    about = meanings()[kind]
    return {
        "id": kind,
        "shortDescription": {"text": about.means},
        "fullDescription": {"text": about.why},
        "help": {"text": about.mend},
    }
