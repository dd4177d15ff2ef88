"""Forms of memory, asynchronous and control instructions: taken and refused as ptxas does.

Every form of `legality_forms.py` is one kernel. What ptxas assembles the emulator must decode, and
what ptxas refuses it should refuse; so too for mutants of the forms, whose modifiers are dropped,
doubled or exchanged.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random

import pytest

from fragir.emulator.launch.launch import Launch
from fragir.errors import FragirError
from fragir.ptx.reader import parse
from fragir.toolchain.find import PTXAS, execute, find
from tests.emulator.legality_forms import FORMS, LAX, REFUSED, STRICT, expand

HEAD = """.version 9.2
.target sm_100a
.address_size 64
.global .align 16 .b8 gl[1024];
.const .align 16 .b8 cn[1024];
"""
ENTRY = """.visible .entry {name}(.param .align 16 .b8 par[64]) .reqntid 128 .explicitcluster
{{
    .shared .align 128 .b8 sh[1024]; .local .align 16 .b8 lo[1024];
    .reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<8>; .reg .f32 %f<8>; .reg .b64 %d<8>;
    .reg .f64 %g<8>; .reg .b128 %q<8>;
    {form}
END: ret;
}}
"""
MUTANTS = 150  # of each family


def newest() -> str | None:
    """The ptxas that knows all forms; None where there is none."""
    try:
        tool = find(PTXAS)
    except FragirError:
        return None
    numbers = [int(x) for x in re.findall(r"\d+", tool.version)]
    return str(tool.path) if numbers[:2] >= [13, 5] else None


needs_ptxas = pytest.mark.skipif(newest() is None, reason="needs ptxas 13.5")


def forms_of(family: str) -> list[str]:
    return list(dict.fromkeys(f for t in FORMS[family] for f in expand(t)))


def refused_by_ptxas(forms: Sequence[str]) -> set[str]:
    """The forms that ptxas does not assemble, each in a kernel of its own, all in one file."""
    left, bad = list(forms), set[str]()
    while True:
        text, where = HEAD, dict[int, str]()
        for number, form in enumerate(left):
            entry = ENTRY.format(name=f"k{number}", form=form)
            where[text.count("\n") + 1 + entry[: entry.index(form)].count("\n")] = form
            text += entry
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "k.ptx")
            path.write_text(text, encoding="utf-8")
            command = [str(newest()), "-arch=sm_100a", "-O0", str(path), "-o", "/dev/null"]
            done = execute(command)
        if done.returncode == 0:
            return bad
        lines = re.findall(r"line (\d+); (?:error|fatal)", done.stderr)
        lines += re.findall(r"32-bit address on line '(\d+)'", done.stderr)
        new = {where[int(n)] for n in lines if int(n) in where}
        if not new:  # it gave up, and does not say where
            if len(left) == 1:
                return bad | {*left}
            half = len(left) // 2
            return bad | refused_by_ptxas(left[:half]) | refused_by_ptxas(left[half:])
        bad |= new
        left = [f for f in left if f not in new]


@cache
def refusal(form: str) -> str | None:
    """Why the emulator refuses a form; None where it decodes it."""
    try:
        Launch(
            parse(HEAD + ENTRY.format(name="k", form=form)),
            "k",
            grid=(1, 1, 1),
            block=(128, 1, 1),
            cluster=(1, 1, 1),
            arguments=[bytes(64)],
            shared=0,
            target=None,
            seed=None,
            asynchrony="late",
            trace=None,
            resident=4,
        )
    except FragirError as error:
        return error.message
    return None


def listed(form: str, reasons: dict[str, str]) -> bool:
    return any(re.search(pattern, form) for pattern in reasons)


def mutants(family: str, count: int) -> list[str]:
    """Forms with a modifier dropped, put in the place of another, or added."""
    random = Random(family)
    words = [
        (form.partition(" ")[0].rstrip(";").split("."), form.partition(" ")[2])
        for form in forms_of(family)
        if not form.startswith(("@", "mov"))
    ]
    known = {w[0]: sorted({x for v, _ in words if v[0] == w[0] for x in v[1:]}) for w, _ in words}
    made: dict[str, None] = {}
    for _ in range(20 * count):
        chosen, operands = random.choice(words)
        opcode = list(chosen)
        others = known[opcode[0]]
        way = random.random()
        if way < 0.3 and len(opcode) > 2:
            del opcode[random.randrange(1, len(opcode))]
        elif way < 0.6 and len(opcode) > 1:
            opcode[random.randrange(1, len(opcode))] = random.choice(others)
        elif others:
            opcode.insert(random.randrange(1, len(opcode) + 1), random.choice(others))
        made[".".join(opcode) + (f" {operands}" if operands else ";")] = None
        if len(made) == count:
            break
    return [m for m in made if m not in set(forms_of(family))]


@pytest.mark.parametrize("family", FORMS)
def test_every_form_is_decoded_or_refused_by_name(family: str) -> None:
    """Without ptxas: what is not in a list of exceptions is decoded."""
    for form in forms_of(family):
        reason = refusal(form)
        if listed(form, REFUSED):
            assert reason is not None, f"{form} is not refused any more"
        elif reason is not None and not listed(form, STRICT):
            assert newest() is not None, f"{form}: {reason}"


@needs_ptxas
@pytest.mark.parametrize("family", FORMS)
def test_forms_are_taken_as_ptxas_takes_them(family: str) -> None:
    forms = [f for f in forms_of(family) if not listed(f, REFUSED)]
    illegal = refused_by_ptxas(forms)
    missing = [f"{f}: {refusal(f)}" for f in forms if f not in illegal and refusal(f) is not None]
    assert missing == []
    lax = [f for f in illegal if refusal(f) is None and not listed(f, LAX)]
    assert lax == []


@needs_ptxas
@pytest.mark.parametrize(
    "family", [f for f in FORMS if f not in ("control", "special", "not there")]
)
def test_mutants_are_taken_as_ptxas_takes_them(family: str) -> None:
    """Nothing that ptxas takes is refused; what it refuses is, but for one in thirty."""
    forms = [f for f in mutants(family, MUTANTS) if not listed(f, REFUSED)]
    illegal = refused_by_ptxas(forms)
    assert len(illegal) > MUTANTS // 3
    strict = [
        f"{f}: {refusal(f)}"
        for f in forms
        if f not in illegal and refusal(f) is not None and not listed(f, STRICT)
    ]
    assert strict == []
    lax = [f for f in illegal if refusal(f) is None and not listed(f, LAX)]
    assert len(lax) <= len(illegal) // 30, lax


def test_what_is_wrong_is_said() -> None:
    def why(form: str) -> str:
        reason = refusal(form)
        assert reason is not None
        return reason

    assert ".acquire needs .cluster, .cta, .gpu, .sys" in why("ld.acquire.global.u32 %r0, [%d0];")
    assert ".shared and .global exclude" in why("st.shared.global.u32 [%d0], %r0;")
    assert ".cg is no modifier of atom" in why("atom.global.add.cg.u32 %r0, [%d0], %r1;")
    assert ".volatile is given twice" in why("ld.volatile.volatile.u32 %r0, [%d0];")
    assert "it needs one of .b64" in why("mbarrier.init.shared [%d0], %r0;")
    assert why("fence.proxy.gpu;").startswith("there is no instruction fence.proxy.gpu: ")
