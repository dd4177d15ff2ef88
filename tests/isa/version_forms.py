"""Spellings of every opcode that `fragir.isa.versions` makes a claim about.

`version_forms.txt` has a template a line, in the notation of `tests.emulator.legality_forms`, whose
memory, asynchronous and control instructions are taken too.
"""

from __future__ import annotations

import re
from pathlib import Path

from fragir.isa.targets import version_key
from tests.emulator.legality_forms import FORMS, expand

_TEMPLATES = (Path(__file__).parent / "version_forms.txt").read_text().splitlines()

_HEAD = """.version {version}
.target {target}
.address_size 64
.global .align 16 .b8 gl[1024]; .const .align 16 .b8 cn[1024];
.global .texref tx; .global .surfref sf; .func ff {{ ret; }}
.visible .entry k(.param .align 16 .b8 par[64])
{{
.shared .align 128 .b8 sh[1024]; .local .align 16 .b8 lo[1024];
.reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<8>; .reg .f32 %f<8>; .reg .b64 %d<8>;
.reg .f64 %g<8>; .reg .b8 b<4>; {wide}
"""
_SPECIAL = re.compile(r"%(?![phrfdgq]\d+\b)(\w+(?:\.\w)?)")


def head(version: str, target: str) -> str:
    """What stands before the statements: registers of 128 bits came with PTX 8.3."""
    wide = ".reg .b128 %q<8>;" if version_key(version) >= (8, 3) else ""
    return _HEAD.format(version=version, target=target, wide=wide)


def statements() -> list[str]:
    """All of them."""
    templates = [t for family, each in FORMS.items() if family != "not there" for t in each]
    return list(dict.fromkeys(s for t in (*templates, *_TEMPLATES) for s in expand(t)))


def tensor_memory_statements() -> list[str]:
    """Those of tcgen05."""
    templates = (t for t in _TEMPLATES if t.startswith("tcgen05"))
    return list(dict.fromkeys(s for t in templates for s in expand(t)))


def opcode_of(statement: str) -> str:
    """What `requirement` is asked about a statement: its opcode, and what its operands say."""
    match = re.fullmatch(r"(?:@!?%p\d+\s+)?(\S+?)(?:\s+(.*))?;", statement)
    assert match is not None, statement
    opcode, rest = match[1], match[2] or ""
    special = _SPECIAL.search(rest)
    if opcode.startswith("mov.") and special is not None:
        return "%" + special[1]
    operands = [o.strip() for o in re.sub(r"[\[{][^\]}]*[\]}]", "x", rest).split(",")]
    features: list[str] = []
    if re.match(r"cp\.async\.c[ag]\b", opcode) and re.match(r"!?%p", "".join(operands[3:4])):
        features.append("ignore-src")
    if opcode.startswith("mbarrier.arrive"):
        if operands[0] == "_":
            features.append("sink")
        if len(operands) == 3 and not re.search("expect_tx|noComplete", opcode):
            features.append("count")
    if re.match(r"(min|max)\.", opcode) and len(operands) == 4:
        features.append("third")
    if opcode.startswith("tcgen05.mma") and operands[-1].isdigit() and "%p" in operands[-2]:
        features.append("scale-input-d")
    return " ".join((opcode, *features))
