"""Writes `word_classes.txt`: the grammar's terminals, and the shapes that most PTX has.

    python -m fragir.ptx.learn

What it holds follows from `grammar.lark` and from the pieces below, which Lark reads here
instead of in every process that reads a text; a test holds it against what this would write. Other
shapes are learnt when they come.
"""

from __future__ import annotations

from itertools import accumulate

from fragir.ptx import _lark, word_classes

# start symbol -> pieces of text, one for each shape; blanks beside brackets and commas are all one
PIECES: dict[str, tuple[str, ...]] = {
    "operands": (
        *("a", "_", "1", "-1", "1.5", "-1.5", "1e5", "0f00000000", "a.x", "a.y", "a.z"),
        *("a.w", "!a", "a[1]", "a+1", "WARP_SZ"),
        *("a|b", "_|b", "a|_", "-a", "a.b0", "a.b1", "a.b2", "a.b3", "a.h0", "a.h1"),
        *("[a]", "[a+1]", "[a+-1]", "[a + 1]", "[1]", "[a,{b}]", "[a,{b,c}]"),
        *("[a,{b,c,d}]", "[a,{b,c,d,e}]", "[a,{b,c,d,e,f}]", "[a+1,{b,c}]"),
        *("[a,b,{c,d}]", "[a,b]"),
        *("()", "(a)", "(_)", "(a,b)", "(a,b,c)", "(a,b,c,d)", "(a,b,c,d,e)", "(a,b,c,d,e,f)"),
    ),
    "statement": (
        *(".reg .b32 a;", ".reg .b32 a<1>;", ".reg .b32 a, b;", ".reg .b32 a, b, c;"),
        *(".reg .b32 a, b, c, d;", ".param .b32 a;", ".param .b8 a[1];"),
        *(".param .align 1 .b8 a[1];", ".local .align 1 .b8 a[1];", ".shared .align 1 .b8 a[1];"),
        *(".shared .b32 a;", ".shared .align 1 .b8 a;", ".loc 1 1 1", '.pragma "a";'),
        ".loc 1 1 1, function_name a, inlined_at 1 1 1",
        ".loc 1 1 1, function_name a+1, inlined_at 1 1 1",
        *(
            f".callprototype {returns}_ ({', '.join(['.param .b32 _'] * count)});"
            for returns in ("", "(.param .b32 _) ")
            for count in range(6)
        ),
    ),
    "parameter": (
        *(".param .b32 a", ".param .b8 a[1]", ".param .align 1 .b8 a[1]", ".reg .b32 a"),
        *(".param .b64 .ptr a", ".param .b64 .ptr .align 1 a", ".param .b64 .ptr .global a"),
        *(".param .b64 .ptr .global .align 1 a", ".param .b32 _", ".param .align 1 .b8 _[1]"),
    ),
    "linked_declaration": (
        *(
            f"{linkage}.{space} .align 1 {form};"
            for linkage in ("", ".visible ", ".weak ")
            for space in ("global", "const")
            for form in (".b32 a", ".b8 a[1]", ".b8 a[1] = {}", ".b32 a = 1", ".b64 a = generic(b)")
        ),
        *(".global .b32 a;", ".global .align 1 .b64 a = b;", ".common .global .align 1 .b32 a;"),
        *(".extern .global .align 1 .b32 a;", ".extern .global .align 1 .b8 a[1];"),
        *(".extern .shared .align 1 .b8 a[];", ".shared .align 1 .b8 a[1];", ".const .b32 a = 1;"),
        *(".shared .b32 a;", ".shared .align 1 .b32 a;", ".visible .shared .align 1 .b8 a[1];"),
    ),
    "head_directives": (
        *(".maxntid 1", ".maxntid 1,1,1", ".reqntid 1", ".reqntid 1,1,1", ".noreturn"),
        *(".minnctapersm 1", ".maxnreg 1", ".reqnctapercluster 1", ".reqnctapercluster 1,1,1"),
        *(".explicitcluster", ".maxclusterrank 1"),
    ),
    "item": (
        *(".version 1.0", ".target a", ".target a, b", ".address_size 1", '.file 1 "a"'),
        *('.file 1 "a", 1, 1', '.pragma "a";'),
    ),
}


def known_text() -> str:
    """The text of `word_classes.txt`."""
    terminals = {name: _one_line(regexp) for name, regexp in _lark.grammar().terminals.items()}
    word_classes.TERMINALS.update(terminals)  # of a changed grammar, before `words` is loaded
    from fragir.ptx.generalise import generalise
    from fragir.ptx.shapes import WordClasses
    from fragir.ptx.word_classes import DIRECTIVE_WORDS, OPERAND_WORDS, Glue, Words

    classes = WordClasses(Words(), Glue())
    lines = [word_classes.HEAD.rstrip(), "", "[terminals]"]
    lines += [f"{name}\t{regexp}" for name, regexp in sorted(terminals.items())]
    for start, pieces in PIECES.items():
        split = (OPERAND_WORDS if start == "operands" else DIRECTIVE_WORDS).split
        rows: dict[tuple[str, ...], str] = {}
        lines += ["", f"[{start}]"]
        for piece in pieces:
            parts = split(piece)
            made = _lark.parse(piece, start)
            code = generalise(
                made[0] if start == "operands" else made,
                parts,
                list(accumulate(map(len, parts), initial=0)),
            )
            key = classes.key(parts)
            if rows.setdefault(key, piece) != piece:
                raise ValueError(f"{piece!r} has the shape of another piece")
            lines.append("\t".join((piece, *key, code)))
    return "\n".join(lines) + "\n"


def _one_line(regexp: str) -> str:
    """The same regular expression without line ends and tabs."""
    for char, escape in (("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"), ("\f", "\\f"), ("\v", "\\v")):
        regexp = regexp.replace(char, escape)
    return regexp


if __name__ == "__main__":
    word_classes.FILE.write_text(known_text(), "utf-8")
