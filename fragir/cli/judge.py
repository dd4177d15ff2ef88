"""`fragir judge`: a verdict on a kernel, and what it did not look at."""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from fragir.cli.check import print_need
from fragir.cli.command import (
    USAGE,
    Document,
    Progress,
    as_fragir_error,
    command,
    json_option,
    note,
    print_json,
    print_table,
    report,
)
from fragir.cli.files import check_writable, write_output
from fragir.cli.limits import Limit, jobs_option, limit_option, workers_option
from fragir.errors import FragirError

if TYPE_CHECKING:
    from fragir.judge import Judgement

EXAMPLES = (
    (
        "Is it the function that the case says, for every schedule and all values?",
        "fragir judge examples/judged/norm.ptx --case examples/judged/cases.py:norms",
    ),
    (
        "The verdict with everything that it did not look at, as JSON:",
        "fragir judge examples/judged/norm.ptx --case examples/judged/cases.py:norms --json",
    ),
)


@command(examples=EXAMPLES)
@click.argument("kernel", metavar="K.ptx|K.cubin|K.fatbin", required=False)
@click.option("--case", metavar="MODULE:FUNCTION", help="Or FILE.py:FUNCTION; docs/judge.md.")
@click.option(
    "--rounds",
    type=click.IntRange(1, 20),
    default=3,
    show_default=True,
    metavar="N",
    help="Evaluate in finite fields so often: each proves equality but for 2^-20.",
)
@click.option(
    "--structure",
    type=click.IntRange(min=0),
    multiple=True,
    metavar="ARG",
    help="The argument at this position (from 0) is part of the launch, not data.",
)
@click.option("--seed", type=click.IntRange(min=0), metavar="N", help="Draw the inputs by this.")
@click.option(
    "--strict",
    is_flag=True,
    help="What is wrong by the letter of the PTX ISA alone is a fault, and what no launch has"
    " executed, or guards that went one way, make it incomplete.",
)
@click.option(
    "--not-needed",
    "asks_need",
    is_flag=True,
    help="Say which barriers, fences and waits all launches could do without, each judged by runs"
    " without it.",
)
@limit_option
@jobs_option
@click.option(
    "--case-seconds",
    type=click.FloatRange(0.1, 86400),
    default=60.0,
    show_default=True,
    metavar="S",
    help="What the case file may take.",
)
@click.option("--sarif", metavar="FILE", help="Write the reasons here as SARIF 2.1.0, too.")
@click.option(
    "--batch", metavar="FILE.jsonl", help='A kernel a line: {"kernel": ..., "case": ...}.'
)
@click.option("-o", "--output", metavar="FILE", help="Of a batch: write JSON lines here.")
@click.option("--resume", is_flag=True, help="Of a batch: keep the results that -o FILE has.")
@workers_option("Of a batch: kernels at once.")
@click.option("--serial", is_flag=True, help="Of a batch: one after the other, without Dask.")
@click.option(
    "--seconds",
    type=click.FloatRange(0.1, 86400),
    default=600.0,
    show_default=True,
    metavar="S",
    help="Of a batch: time limit of a kernel.",
)
@json_option
def main(
    kernel: str | None,
    case: str | None,
    rounds: int,
    structure: tuple[int, ...],
    seed: int | None,
    strict: bool,
    asks_need: bool,
    limit: Limit,
    jobs: int | None,
    case_seconds: float,
    sarif: str | None,
    batch: str | None,
    output: str | None,
    resume: bool,
    workers: int,
    serial: bool,
    seconds: float,
    as_json: bool,
) -> int | None:
    """Judge a kernel by cases: launches, and what must come of them.

    The case file runs in a process of its own, before the kernel does. Exit codes: 0 pass, 1 fail,
    2 wrong usage or a broken case, 3 incomplete, 4 unsupported.
    """
    if batch is not None:
        if kernel is not None or case is not None:
            raise click.UsageError("--batch FILE.jsonl names kernels and cases; leave out others")
        if resume and output is None:
            raise click.UsageError("--resume goes on with -o FILE")
        with _own_trouble(as_json) as trouble:
            if sarif is not None:
                check_writable(sarif)
            number = None if serial else workers
            return _batch(batch, output, resume, number, seconds, as_json, sarif)
        return trouble.code
    if kernel is None or case is None:
        raise click.UsageError("a kernel is judged by --case MODULE:FUNCTION")
    with _own_trouble(as_json) as trouble:
        from fragir.judge import CaseLimits, Judging
        from fragir.judge.files import judge_file
        from fragir.judge.judging import LIMIT

        if sarif is not None:
            check_writable(sarif)
        how = Judging(
            seed=seed,
            rounds=rounds,
            structure=structure,
            strict=strict,
            not_needed=asks_need,
            limit=limit if limit != (None, None) else LIMIT,
            case_limits=CaseLimits(case_seconds),
            jobs=jobs,
        )
        with Progress("judging"):
            verdict = judge_file(kernel, case, how)
        if sarif is not None:
            write_output(sarif, json.dumps(verdict.sarif(kernel), indent=2) + "\n")
        if as_json:
            print_json(verdict.document())
        else:
            _show(verdict)
        return verdict.exit_code
    return trouble.code


class _Trouble:
    code = 0


@contextmanager
def _own_trouble(as_json: bool) -> Generator[_Trouble]:
    """What goes wrong in the judge, or with the case, is never the kernel's: exit code 2."""
    trouble = _Trouble()
    try:
        yield trouble
    except (click.ClickException, OSError):
        raise
    except Exception as error:
        report(as_fragir_error(error), as_json=as_json)
        trouble.code = USAGE


# -- in words --------------------------------------------------------------------------------------


def _show(verdict: Judgement) -> None:
    document = verdict.document()
    rows = [_reason_row(reason) for reason in document["reasons"]]
    if rows:
        print_table(("verdict", "kind", "place", "case", "message"), rows)
    if document["letters"]:
        note(f"{len(document['letters'])} wrong by the letter of the PTX ISA; --strict counts them")
    for line in _coverage_lines(document):
        print(line)
    if "not_needed" in document:
        print_need(document["not_needed"])
    print(document["verdict"].upper())


def _reason_row(reason: Document) -> list[str]:
    place = ":".join(str(reason[k]) for k in ("file", "line", "col") if reason[k] is not None)
    case = "" if reason["case"] is None else str(reason["case"])
    return [reason["verdict"], reason["kind"], place, case, reason["message"]]


def _coverage_lines(document: Document) -> Iterator[str]:
    """What the verdict holds for, a line each."""
    launches = document["launches"]
    if not launches:
        return
    yield f"equality: {document['equality']}"
    for one in document["unproved"]:
        yield f"not proved to be the same function: case {one['case']}: {one['why']}"
    schedules, data = document["schedules"], document["data"]
    if schedules is not None:
        yield f"schedules: {schedules if schedules == 'every' else 'the one that ran'}"
    if data is not None:
        taken = f" (structure: {', '.join(document['structure'])})" if document["structure"] else ""
        yield f"data: {data if isinstance(data, str) else 'these values'}{taken}"
        for one in () if isinstance(data, str) else data["open"]:
            yield f"  {one['what']} of line {one['line']} depends on {one['argument'] or 'arrays'}"
    for entry, covered in document["coverage"].items():
        done, reachable = covered["statements"]
        times = sum(one["entry"] == entry for one in launches)
        text = f"{entry}: {times} launches, {done} of {reachable} statements"
        one_way = [*covered["branches_one_way"], *covered["guards_one_way"]]
        for what, lines in (("not executed", covered["missed"]), ("one way only", one_way)):
            if lines:
                text += f"; {what}: lines {_ranges(lines)}"
        yield text
    for name, kinds in document["untried"].items():
        told = ", ".join(f"{kind} ({size})" for kind, size in kinds.items())
        yield f"{name}: not tried: {told}"
    if document["assumes"]:
        yield f"assumed: {', '.join(one['name'] for one in document['assumes'])}"
    yield f"sandbox of the case: {document['sandbox']}; seed {document['seed']}"


def _ranges(lines: list[int]) -> str:
    """Line numbers in order, neighbours as one: 3, 7-9."""
    found: list[list[int]] = []
    for line in sorted(set(lines)):
        if found and line == found[-1][-1] + 1:
            found[-1].append(line)
        else:
            found.append([line])
    return ", ".join(str(x[0]) if len(x) == 1 else f"{x[0]}-{x[-1]}" for x in found)


# -- a batch ---------------------------------------------------------------------------------------


def _batch(
    path: str,
    output: str | None,
    resume: bool,
    workers: int | None,
    seconds: float,
    as_json: bool,
    sarif: str | None,
) -> int:
    from importlib.metadata import version

    from fragir.judge.batch import read_lines
    from fragir.judge.meanings import EXIT
    from fragir.judge.sarif import log
    from fragir.sweeps import cluster, runner
    from fragir.sweeps.catalogue import find, load
    from fragir.sweeps.definition import GIB, Task
    from fragir.sweeps.work import Limits

    lines = read_lines(path)
    known = _results(output) if resume and output is not None else {}
    source = find("judge")
    sweep = load(source)
    parameters = {**sweep.parameters, "seconds": seconds}
    left = [
        Task(i, line, 0, parameters) for i, line in enumerate(lines) if line["key"] not in known
    ]
    limits = Limits(seconds + 30)
    words: dict[str, int] = {}
    codes = {0}
    kept = [known[line["key"]] for line in lines if line["key"] in known]
    with closing(_Lines(output, append=bool(known), quiet=as_json)) as written:
        if len(left) < len(lines):
            note(f"{len(lines) - len(left)} of {len(lines)} kernels taken over from {output}")
        for result in kept:
            _count(result, words, codes, EXIT)

        def take(outcomes: Iterator[Any]) -> None:
            for outcome in outcomes:
                result = outcome["result"] or _failed(outcome)
                result.pop("findings", None)
                written.add(result)
                kept.append(result)
                _count(result, words, codes, EXIT)

        if left and workers is None:
            take(runner.serial(source, left, limits))
        elif left:
            with cluster.local(workers or 1, GIB) as pool:
                take(pool.perform(source, left, limits))
    if sarif is not None:
        every = [(one["kernel"], one["verdict"], one["error"]) for one in kept]
        write_output(sarif, json.dumps(log(every, version("fragir")), indent=2) + "\n")
    told = {"kernels": len(lines), "resumed": len(lines) - len(left), "verdicts": words}
    if as_json:
        print_json(told)
    else:
        note(", ".join(f"{number} {word}" for word, number in sorted(words.items())))
    return next(code for code in (1, 2, 4, 3, 0) if code in codes)


def _count(result: Document, words: dict[str, int], codes: set[int], exits: dict[Any, int]) -> None:
    verdict = result["verdict"]
    word = "broken" if verdict is None else verdict["verdict"]
    words[word] = words.get(word, 0) + 1
    codes.add(exits.get(word, USAGE))


def _failed(outcome: Any) -> Document:
    what = outcome["what"]
    named = {name: what[name] for name in ("key", "kernel", "case")}
    return {**named, "verdict": None, "error": outcome["failed"], "seconds": outcome["seconds"]}


def _results(path: str) -> dict[str, Document]:
    """The results that a file has by their keys; a last line that a kill has cut off is none."""
    try:
        texts = Path(path).read_text("utf-8").splitlines()
    except FileNotFoundError:
        return {}
    found: dict[str, Document] = {}
    for number, text in enumerate(texts, 1):
        try:
            result = json.loads(text)
            # one that broke is tried again
            if result["verdict"] is not None:
                found[result["key"]] = result
        except (ValueError, KeyError, TypeError) as error:
            if number < len(texts):
                raise FragirError("this is no result of a batch", path, number) from error
    return found


class _Lines:
    """Results as they come, a line each, into a file or on stdout."""

    def __init__(self, path: str | None, *, append: bool, quiet: bool) -> None:
        self._file: IO[str] | None = None
        if path is not None:
            check_writable(path)
            whole = 0
            if append:
                whole = Path(path).read_bytes().rfind(b"\n") + 1  # a kill may have cut off the last
                os.truncate(path, whole)
            self._file = Path(path).open("a" if append else "w", encoding="utf-8")
        self._quiet = quiet

    def add(self, result: Document) -> None:
        text = json.dumps(result, allow_nan=False)
        if self._file is not None:
            self._file.write(text + "\n")
            self._file.flush()
        elif not self._quiet:
            print(text, flush=True)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
