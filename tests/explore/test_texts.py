"""What is no layout is told in words, and nothing that is pasted stops the page."""

from __future__ import annotations

import random
import re
from typing import Any

from tests.draw.test_pictures import MEMORY, REGISTERS
from tests.explore.engine import ask
from tests.explore.test_logic import CUTE, FORMULAS, TRITON


def test_bad_texts_are_told() -> None:
    texts = [
        "lane [4:(0,2",
        "lane [4:(0,2) 8:1]",
        "nothing",
        "",
        "row = ",
        "row = x",
        "((4,8),(2,2)):((32,1),(16,8)",
        "#ttg.blocked<{sizePerThread = [1, 4]}>",
        "#ttg.nothing<{}>",
        "f2:{lane = [[0, 1], [0]]}",
        "- lane=2 -> (0, 1)",
        "Sw<3,4,3> o 5",
        "row = row + 1",
    ]
    for text, answer in zip(texts, ask([{"ask": "read", "text": t} for t in texts]), strict=True):
        assert answer.get("kind") == "LayoutError", text


def test_mutated_texts_are_told() -> None:
    """Whatever is pasted is a layout or an error in words, and takes no longer than a moment."""
    rng = random.Random(12)
    bases = [text for text, _ in (*TRITON, *CUTE)]
    bases += [*FORMULAS, *(text for text in (*REGISTERS, *MEMORY) if "sync" not in text)]
    pieces = [
        "(",
        ")",
        "[",
        "]",
        "{",
        ":",
        "^",
        ",",
        " o ",
        "%laneid",
        "=",
        "<<",
        "\n",
        "@",
        "dims (x)",
    ]
    numbers = ["0", "1", "7", "64", "100000", "4294967296", "-3"]
    questions: list[dict[str, Any]] = []
    for _ in range(500):
        text = rng.choice(bases)
        if rng.random() < 0.7:
            found = rng.choice([*re.finditer(r"\d+", text)])
            text = text[: found.start()] + rng.choice(numbers) + text[found.end() :]
        else:
            at = rng.randrange(len(text))
            text = text[:at] + rng.choice(pieces) + text[at + rng.randrange(4) :]
        questions.append({"ask": "tried", "text": text, "tile": rng.choice((None, [16, 8]))})
    read_ones = 0
    for question, answer in zip(questions, ask(questions), strict=True):
        read_ones += "value" in answer
        assert answer.get("kind", "LayoutError") == "LayoutError", (question["text"], answer)
    assert read_ones > 150
