"""Asks the open questions of `questions` on an emulator or a GPU."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from fragir import isa
from fragir.errors import FragirError
from fragir.isa import Instruction
from fragir.isa.emit import emit_ptx, parameters
from fragir.isa.query import View
from fragir.isa.registry import per_table
from fragir.isa.targets import number
from fragir.isa.versions import module_version
from fragir.validation.codes import Codes, Words, pack, unpack
from fragir.validation.probes import Runner, code_image
from fragir.validation.questions import Question, ScalarQuestion, code_of, questions, scalars


@dataclass(frozen=True)
class Answer:
    """What a machine gave. `meaning`: of the answers that were expected, or None."""

    name: str
    asks: str
    bits: int
    meaning: str | None

    @property
    def text(self) -> str:
        return self.meaning or f"something else: {self.bits:#x}"


@per_table
def instructions(target: str) -> dict[str, Instruction]:
    """What the table has on a target, by mnemonic."""
    return {each.mnemonic: each for each in isa.instructions(target=target)}


def ask(target: str, run: Runner) -> list[Answer]:
    """The answers to every question that `target` (`sm_90a`) has the instructions for."""
    machine = number(target)
    by_instruction: dict[str, list[Question]] = defaultdict(list)
    for question in questions():
        if machine in question.numbers and question.mnemonic in instructions(target):
            by_instruction[question.mnemonic].append(question)
    found = [
        answer
        for mnemonic, asked in by_instruction.items()
        for answer in _ask(instructions(target)[mnemonic], asked, target, run)
    ]
    return found + [_ask_scalar(q, target, run) for q in scalars() if machine in q.numbers]


def _ask(instruction: Instruction, asked: list[Question], target: str, run: Runner) -> list[Answer]:
    """One launch, one case for each question."""
    names = parameters(instruction)
    chunk = instruction.operands["e"].chunk if "e" in instruction.operands else 0
    words: dict[str, Words] = {}
    for name in names:
        operand = instruction.operands[name]
        if name == "d":
            dtype = np.uint64 if operand.registers.type.endswith("64") else np.uint32
            lanes = View.of(instruction, "d").lanes
            words[name] = np.zeros((len(asked), lanes, operand.registers.count), dtype)
            continue
        codes = np.zeros((len(asked), *operand.shape), np.uint64)
        for case, question in enumerate(asked):
            _fill(codes[case], name, operand.element, question, chunk)
        if operand.registers.cls == "descriptor":
            words[name] = code_image(operand, codes.swapaxes(1, 2) if name == "b" else codes)
        else:
            words[name] = pack(View.of(instruction, name), codes, 4 if name == "e" else 0)
    ptx = emit_ptx(instruction, target, (instruction.variants or ("registers",))[0])
    run(ptx, target, len(asked), instruction.lanes, [words[name] for name in names])
    results = unpack(View.of(instruction, "d"), words["d"]).reshape(len(asked), -1)
    return [_answer(q, each) for q, each in zip(asked, results, strict=True)]


def _fill(codes: Codes, name: str, element: str, question: Question, chunk: int) -> None:
    """One operand of one question: [row, column] (B: [k, column]).

    `chunk`: columns of A that one nibble of metadata describes, 0 where A is dense.
    """
    match name:
        case "a":
            for k, (a, _) in question.terms.items():
                codes[:, k] = code_of(element, a)
        case "b":
            # A sparse A keeps the first two (or the first) of each chunk; its metadata says so.
            kept = chunk // 2
            for k, (_, b) in question.terms.items():
                at = k // kept * chunk + k % kept if chunk else k
                codes[at] = code_of(element, b)
        case "c":
            codes[...] = code_of(element, question.c)
        case "e":
            codes[...] = 4
        case "sfa":
            codes[...] = [127 + e for e in question.scales]
        case "sfb":
            codes[...] = 127
        case _:
            raise FragirError(f"no question has an operand {name}")


def _answer(question: Question | ScalarQuestion, results: Codes) -> Answer:
    bits = int(results[0])
    meaning = next((text for text, value in question.answers.items() if value == bits), None)
    if (results != results[0]).any():
        raise FragirError(f"{question.name}: the elements of D differ although all are alike")
    return Answer(question.name, question.asks, bits, meaning)


def _ask_scalar(question: ScalarQuestion, target: str, run: Runner) -> Answer:
    widths = {"h": 16, "r": 32}
    loads = "".join(
        f"\tmov.b{widths[name[0]]} %{name}, {value};\n" for name, value in question.operands.items()
    )
    opcodes = [part.split()[0] for part in question.line.split("; ")]
    ptx = (
        f".version {module_version(opcodes, target)}\n.target {target}\n.address_size 64\n"
        ".visible .entry probe(.param .u64 out)\n{\n"
        "\t.reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %q;\n"
        f"{loads}\t{question.line};\n"
        "\tld.param.u64 %q, [out]; st.global.b32 [%q], %r0;\n\tret;\n}\n"
    )
    out = np.zeros(1, np.uint32)
    run(ptx, target, 1, 1, [out])
    return _answer(question, out.astype(np.uint64))
