"""What the grammar's terminals are called in messages."""

from __future__ import annotations

# Groups come first: where all of a group could stand, its words say so.
_GROUPS: tuple[tuple[frozenset[str], str], ...] = (
    (
        frozenset({"OPCODE", "AT", "NAME", "LBRACE", "SPACE", "LOC", "PRAGMA", "BRANCH_TARGETS"})
        | {"CALL_TARGETS", "CALL_PROTOTYPE"},
        "a statement",
    ),
    (
        frozenset({"VERSION", "TARGET", "ADDRESS_SIZE", "FILE", "SECTION", "ALIAS", "PRAGMA"})
        | {"LINKAGE", "SPACE", "KIND"},
        "a directive",
    ),
    (
        frozenset({"NAME", "SINK", "INTEGER", "FLOAT", "LPAR", "PLUS", "MINUS", "BANG", "TILDE"})
        | {"LBRACE", "LSQB"},
        "an operand",
    ),
    (
        frozenset({"NAME", "SINK", "INTEGER", "FLOAT", "LPAR", "PLUS", "MINUS", "BANG", "TILDE"}),
        "an expression",
    ),
    (frozenset({"NAME", "SINK", "INTEGER", "FLOAT", "LPAR"}), "a name, a number"),
    (frozenset({"BINARY", "PLUS", "MINUS"}), "an operator"),
    (frozenset({"BINARY"}), "an operator"),
)

_WORDS = {
    "ADDRESS_SIZE": "'.address_size'",
    "ALIGN": "'.align'",
    "AT": "a guard",
    "ATTRIBUTE": "'.attribute'",
    "DATA_TYPE": "'.b8', '.b16', '.b32', '.b64'",
    "FIELD": "a component such as '.x'",
    "FLOAT": "a floating-point number",
    "FUNCTION_DIRECTIVE": "a performance directive",
    "FUNCTION_NAME": "'function_name'",
    "INLINED_AT": "'inlined_at'",
    "INTEGER": "an integer",
    "KIND": "'.entry', '.func'",
    "LINKAGE": "'.visible', '.extern', '.weak', '.common'",
    "MODIFIERS": "a modifier",
    "NAME": "a name",
    "OPCODE": "an instruction",
    "PRAGMA": "'.pragma'",
    "PTR": "'.ptr'",
    "SECTION_BODY": "'{ ... }'",
    "SECTION_NAME": "the name of a section",
    "SECTION_REFERENCE": "the name of a section",
    "SINK": "'_'",
    "SPACE": "a state space",
    "STRING": "a string",
    "TYPE": "a type",
    "VECTOR": "'.v2', '.v4', '.v8'",
    "VERSION_NUMBER": "a version such as 8.7",
    "WORD": "the name of an attribute",
    "$END": "the end of the text",
    # punctuation, by the names that Lark gives it
    "BANG": "'!'",
    "COLON": "':'",
    "COMMA": "','",
    "EQUAL": "'='",
    "LBRACE": "'{'",
    "LESSTHAN": "'<'",
    "LPAR": "'('",
    "LSQB": "'['",
    "MINUS": "'-'",
    "MORETHAN": "'>'",
    "PLUS": "'+'",
    "QMARK": "'?'",
    "RBRACE": "'}'",
    "RPAR": "')'",
    "RSQB": "']'",
    "SEMICOLON": "';'",
    "TILDE": "'~'",
}

_IGNORED = {"COMMENT", "WHITESPACE"}


def describe(terminals: frozenset[str]) -> tuple[str, ...]:
    """Words for a set of terminals: groups first, then the others in alphabetical order."""
    left = set(terminals - _IGNORED)
    words: list[str] = []
    for group, word in _GROUPS:
        if group <= left:
            left -= group
            words.append(word)
    words += sorted(_WORDS.get(name, f"'.{name.lower()}'".replace("_", "")) for name in left)
    return tuple(dict.fromkeys(words))
