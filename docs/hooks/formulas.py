"""Formulas between dollars as MathML: what pages use of LaTeX, and an error for anything else.

A code host renders `$2^{-23}$` itself; browsers know MathML. A typesetter in JavaScript, with its
fonts, would be larger than all the pages that have a formula.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape

from docs.hooks.links import prose

_FORMULA = re.compile(
    r"\$\$(?P<block>.+?)\$\$|(?<![\\$\w])\$(?P<line>\S|\S(?:[^$\n]|\n(?!\n))*?\S)\$(?![\w$])",
    re.DOTALL,
)
_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\d+(?:\.\d+)?|\s+|.", re.DOTALL)

_LETTERS = dict(
    zip(
        "alpha beta gamma delta epsilon varepsilon eta mu pi rho sigma tau infty dots".split(),
        "αβγδϵεημπρστ∞…",
        strict=True,
    )
)
_SIGNS = dict(
    zip(
        "le ge cdot times approx circ lvert rvert lceil rceil lfloor rfloor sum".split(),
        "≤≥·×≈∘||⌈⌉⌊⌋∑",
        strict=True,
    )
)
_FUNCTIONS = ("log", "ln", "max", "min")
_SPACES = {",": "0.17em", " ": "0.33em", "quad": "1em", "qquad": "2em"}
_SIZES = ("big", "textstyle")


class UnknownFormula(Exception):
    """A formula with something that is not known here."""


def formulas(text: str, change: Callable[[str], str]) -> str:
    """The page with every formula, as MathML, changed into something else."""
    parts: list[str] = []
    done = 0
    for match in _FORMULA.finditer(prose(text)):
        block = match["block"] is not None
        source = text[match.start() : match.end()].strip("$")
        parts += [text[done : match.start()], change(mathml(source, block))]
        done = match.end()
    return "".join([*parts, text[done:]])


def mathml(source: str, block: bool = False) -> str:
    """One formula; UnknownFormula where it has a word that is not in the tables above."""
    tokens = [token for token in _TOKEN.findall(source) if token.strip() or token[0] == "\\"]
    found = _Reader(tokens, source, block).row()
    display = "block" if block else "inline"
    return f'<math display="{display}">{found}</math>'


class _Reader:
    """From tokens to elements."""

    def __init__(self, tokens: list[str], source: str, block: bool) -> None:
        self.tokens, self.source, self.block = tokens, source, block
        self.at = 0

    def row(self) -> str:
        """Everything up to a closing brace or the end, with its indices."""
        parts: list[str] = []
        while self.at < len(self.tokens) and self.tokens[self.at] != "}":
            name = self.tokens[self.at].lstrip("\\")
            parts.append(self.indexed())
            if name in _FUNCTIONS and self.at < len(self.tokens) and self.tokens[self.at] != "(":
                parts.append('<mspace width="0.17em"></mspace>')
        return "".join(parts)

    def indexed(self) -> str:
        sums = self.tokens[self.at] == "\\sum" and self.block
        base = self.atom()
        below = above = ""
        while self.at < len(self.tokens) and self.tokens[self.at] in ("_", "^"):
            below_it = self.next() == "_"
            index = self.atom()
            below, above = (index, above) if below_it else (below, index)
        match bool(below), bool(above):
            case True, True:
                tag = "munderover" if sums else "msubsup"
            case True, False:
                tag = "munder" if sums else "msub"
            case False, True:
                tag = "mover" if sums else "msup"
            case _:
                return base
        return f"<{tag}>{base}{below}{above}</{tag}>"

    def next(self) -> str:
        if self.at == len(self.tokens):
            raise UnknownFormula(f"{self.source} ends too early")
        self.at += 1
        return self.tokens[self.at - 1]

    def atom(self) -> str:
        """One element: a group, a letter, a number, a sign, or what a word stands for."""
        token = self.next()
        if token == "{":
            found = self.row()
            if self.next() != "}":
                raise UnknownFormula(f"{self.source} lacks a brace")
            return f"<mrow>{found}</mrow>"
        if token.startswith("\\"):
            return self.word(token[1:])
        if token[0].isdigit():
            return f"<mn>{token}</mn>"
        if token.isalpha():
            return f"<mi>{token}</mi>"
        return _sign("−" if token == "-" else token)

    def word(self, name: str) -> str:
        if name in _LETTERS:
            return f"<mi>{_LETTERS[name]}</mi>"
        if name in _SIGNS:
            return _sign(_SIGNS[name])
        if name in _FUNCTIONS:
            return f"<mi>{name}</mi>"
        if name in _SPACES:
            return f'<mspace width="{_SPACES[name]}"></mspace>'
        if name in _SIZES:
            return self.indexed()
        match name:
            case "hat":
                return f'<mover accent="true">{self.atom()}<mo>^</mo></mover>'
            case "overline":  # a stretched mark would need a font with one
                line = "border-top: .06em solid; padding-top: .1em"
                return f'<mrow style="{line}">{self.atom()}</mrow>'
            case "sqrt":
                return f"<msqrt>{self.atom()}</msqrt>"
            case "tfrac" | "frac":
                return f"<mfrac>{self.digit()}{self.digit()}</mfrac>"
            case "text" | "mathrm":
                return f"<mtext>{self.words()}</mtext>"
            case "mathrel":
                return self.atom()
            case _:
                raise UnknownFormula(f"\\{name} in the formula {self.source} is not known")

    def digit(self) -> str:
        r"""Half of a fraction: of `\tfrac12` one digit, else an element."""
        token = self.tokens[self.at] if self.at < len(self.tokens) else ""
        if len(token) > 1 and token.isdigit():
            self.tokens[self.at : self.at + 1] = [token[0], token[1:]]
        return self.atom()

    def words(self) -> str:
        """The letters of a group, as they stand."""
        end = self.tokens.index("}", self.at) if "}" in self.tokens[self.at :] else self.at
        found = self.tokens[self.at + 1 : end]
        self.at = end + 1
        return escape("".join(found))


def _sign(sign: str) -> str:
    stretchy = ' stretchy="false"' if sign in "()[]|⌈⌉⌊⌋" else ""
    return f"<mo{stretchy}>{escape(sign)}</mo>"
