"""Errors of xDSL with a place: a parser that knows where operations stand, and translation.

xDSL's parser sets no locations and reports constraint failures without any; a failed pass prints
the whole module. Here every operation gets the place it was written at, and every exception of
xDSL becomes one FragirError with file, line, column and source line.
"""

from __future__ import annotations

import os.path
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NoReturn, TypeVar

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.parser import Parser, ParserState, UnresolvedOperand
from xdsl.utils.exceptions import (
    DiagnosticException,
    MultipleSpansParseError,
    ParseError,
    PassFailedException,
    PyRDLError,
    UnregisteredConstructException,
    VerifyException,
)
from xdsl.utils.lexer import Input, Span

from fragir import plugins
from fragir.errors import FragirError, pass_on
from fragir.languages import MLIR, foreign_dialect, foreign_text
from fragir.mlir.lexer import DenseLiterals, Lexer
from fragir.mlir.resources import put_in_place

# -- dominance -------------------------------------------------------------------------------------
# Whether every value is defined before it is used.
#
# xDSL checks this only between the blocks of a region, not inside of one.


def used_too_early(module: Operation) -> tuple[Operation, SSAValue] | None:
    """The first operation in a function that uses a value not defined before it, and the value."""
    for op in module.walk():
        if isinstance(op, func.FuncOp) or op.name == "ptx.function":
            found = _in_region(op.regions[0], set())
            if found is not None:
                return found
    return None


def _in_region(region: Region, visible: set[SSAValue]) -> tuple[Operation, SSAValue] | None:
    """`visible` are the values that the region may use from outside; it is the same afterwards."""
    if len(region.blocks) == 1:
        return _in_block(region.block, visible)
    # a block may use what any of the others defines: xDSL's verifier knows their order
    others = {value for block in region.blocks for value in _defined_values(block)}
    for block in region.blocks:
        found = _in_block(block, (visible | others).difference(_defined_values(block)))
        if found is not None:
            return found
    return None


def _defined_values(block: Block) -> list[SSAValue]:
    return [*block.args, *(result for op in block.ops for result in op.results)]


def _in_block(block: Block, visible: set[SSAValue]) -> tuple[Operation, SSAValue] | None:
    added: list[SSAValue] = []
    for value in block.args:
        visible.add(value)
        added.append(value)
    for op in block.ops:
        for operand in op.operands:
            if operand not in visible:
                return op, operand
        for region in op.regions:
            found = _in_region(region, visible)
            if found is not None:
                return found
        visible.update(op.results)
        added += op.results
    visible.difference_update(added)
    return None


# -- diagnostics -----------------------------------------------------------------------------------

_Type = TypeVar("_Type", bound=Attribute)
_Parsed = TypeVar("_Parsed")

_NEWLINE = re.compile("\n")
_SPEAKING = (DiagnosticException, ValueError, PyRDLError, UnregisteredConstructException)
"""Exceptions of xDSL whose words are for those who write MLIR."""


_FUNCTIONS = {f"util.{name}": f"func.{name}" for name in ("func", "return", "call")}


class LocatingParser(DenseLiterals):
    """Gives operations their location, and errors raised while one is built its place."""

    def __init__(self, ctx: Context, text: str, name: str = "<input>"):
        super().__init__(ctx, "", name)
        self._parser_state = ParserState(Lexer(Input(text, name)))
        self._name = StringAttr(name)
        self._first_uses: dict[str, Span[str] | Span[bytes]] = {}
        self._lines = [0, *(found.end() for found in _NEWLINE.finditer(text))]

    def _location(self, offset: int) -> FileLineColLoc:
        line = bisect_right(self._lines, offset)
        return FileLineColLoc(
            self._name, IntAttr(line), IntAttr(offset - self._lines[line - 1] + 1)
        )

    def resolve_operand(self, operand: UnresolvedOperand, type: _Type) -> SSAValue[_Type]:
        """As in Parser; keeps where a value was used before its definition."""
        value = super().resolve_operand(operand, type)
        if operand.operand_name not in self.ssa_values:
            self._first_uses.setdefault(operand.operand_name, operand.span)
        return value

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        """As in Parser; points at the first use of a value that is defined nowhere.

        Every exception but RecursionError and MemoryError becomes a ParseError.
        """
        try:
            return super().parse_module(allow_implicit_module)
        except (RecursionError, MemoryError):
            raise
        except ParseError as error:
            # they are looked at last, at the end of the text
            missing = [name for name in self.forward_ssa_references if name in self._first_uses]
            if not error.msg.startswith("values used but not defined") or not missing:
                raise
            names = ", ".join(f"%{name}" for name in missing)
            words = f"{names} {'is' if len(missing) == 1 else 'are'} used, but defined nowhere"
            raise ParseError(self._first_uses[missing[0]], words) from error
        except Exception as error:
            pass_on(error)
            # outside of operations stand aliases and the file's metadata
            words = _words_of(error, "what is defined here", "not a type or attribute")
            raise ParseError(self._current_token.span, words) from error

    def _get_op_by_name(self, name: str) -> type[Operation]:
        """As in Parser; functions as IREE prints them are those of `func`."""
        return super()._get_op_by_name(_FUNCTIONS.get(name, name))

    def parse_comma_separated_list(
        self, delimiter: Parser.Delimiter, parse: Callable[[], _Parsed], context_msg: str = ""
    ) -> list[_Parsed]:
        """As in Parser; behind an arrow one type may stand without parentheses, as in MLIR."""
        if delimiter is self.Delimiter.PAREN:
            at = self._current_token.span
            if at.text != "(" and at.input.content[: at.start].rstrip().endswith("->"):
                return [parse()]
        return super().parse_comma_separated_list(delimiter, parse, context_msg)

    def parse_operation(self) -> Operation:
        """As in Parser; what building the operation raises becomes a ParseError with a span."""
        token = self._current_token.span
        try:
            op = super().parse_operation()
        except (ParseError, RecursionError, MemoryError):
            raise
        except Exception as error:
            pass_on(error)
            what = "this operation" if token.text[0] in '%"' else f"this {token.text}"
            wrong = "operands, types or attributes are missing, or not those that it takes"
            raise ParseError(token, _words_of(error, what, wrong)) from error
        if not isinstance(op.location, FileLineColLoc):
            op.location = self._location(token.start)
        return op


def _words_of(error: Exception, what: str, wrong: str) -> str:
    """What to say of an exception: its words where they were written for users of xDSL.

    The classes of operations are not careful with what they are given: an AssertionError or
    IndexError of theirs says nothing to the one who wrote the text.
    """
    if isinstance(error, (*_SPEAKING, FragirError)):
        return message_of(error)
    packages = plugins.imported_packages()
    if _outside(error, packages) is not None:
        message, hint = unexpected_message(error, packages, what.removeprefix("this "))
        return f"{message} ({hint})"
    return f"{what} cannot be taken: {wrong}"


def message_of(error: BaseException) -> str:
    """An exception's words in one line; its type where it has none."""
    if isinstance(error, FragirError):
        return error.sentence
    words = " ".join(str(error.args[0] if error.args else error).split())
    return words or f"not accepted here ({type(error).__name__})"


def cause_of(error: BaseException) -> BaseException | None:
    """What is shown beneath the FragirError that an exception became: nothing where it was raised
    for users, with the whole IR in its words, but what nobody foresaw."""
    link: BaseException | None = error
    while isinstance(link, (DiagnosticException, ParseError, PyRDLError, FragirError)):
        link = link.__cause__
    return link


def parse_module(ctx: Context, text: str, name: str = "<input>") -> ModuleOp:
    """A verified module; FragirError with the place of what is wrong."""
    try:
        parser = LocatingParser(ctx, text, name)
        module = parser.parse_module()
    except ParseError as error:
        raise from_parse_error(error, name) from cause_of(error)
    except RecursionError:
        raise FragirError("the text is nested too deeply", file=name) from None
    broken = put_in_place(module, parser.blobs)
    if broken is not None:
        raise error_at_operation(*broken, text)
    try:
        verify(module, text)
    except FragirError:
        if "!frag.tile<" not in text or not _respell(module):
            raise
        verify(module, text)
    return module


def _respell(module: ModuleOp) -> bool:
    """Whether tiles were at fault that are the same and written in two ways: now they are not."""
    from fragir.dialects.frag.pointwise import respell

    try:
        return respell(module)
    except Exception as error:  # the module is wrong in another way
        pass_on(error)
        return False


def from_parse_error(error: ParseError, name: str) -> FragirError:
    """Place, source line and words of a ParseError."""
    if isinstance(error, MultipleSpansParseError):
        error = _single(error)
    text, start = error.span.input.content, error.span.start
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    message = " ".join(error.msg.split())
    foreign = foreign_text(text, MLIR)
    if foreign is not None:
        message, start = foreign, len(text) - len(text.lstrip())
    else:
        message, start = _words_and_place(message, text, start)
    before = text[:start]
    line = before.count("\n") + 1
    col = start - (before.rfind("\n") + 1) + 1
    lines = text.split("\n")
    source = lines[line - 1] if line <= len(lines) else ""
    return FragirError(message, name, line, col, source)


_UNREGISTERED = r"Operation (\S+) is not registered"
_NO_ATTRIBUTE = r"'(\S+)' is not registered"
_EXPECTED = re.compile(r"(?:.* )?expected$|Expected '.*|Expected shape type\.")


def _words_and_place(message: str, text: str, start: int) -> tuple[str, int]:
    """What the parser says, with the name that was meant, and the place that it is about."""
    from fragir.mlir.suggestions import (
        did_you_mean,
        end_of_tokens,
        meant_attributes,
        meant_here,
        place_of_missing,
        unclosed,
    )

    unregistered = re.fullmatch(_UNREGISTERED, message)
    if unregistered is not None:  # the error is found behind the name
        return _not_there(unregistered[1]), max(text.rfind(unregistered[1], 0, start), 0)
    if not text.strip():
        return "the text is empty", 0
    if not text[start:].strip():
        message = unclosed(text) or message
        return f"the text ends before it is complete ({message})", end_of_tokens(text)
    attribute = re.fullmatch(_NO_ATTRIBUTE, message)
    if attribute is not None:
        name = attribute[1]
        foreign = foreign_dialect(name.partition(".")[0])
        start = max(text.rfind(name, 0, start) - 1, 0)  # the sign before it
        if foreign is not None:
            return foreign, start
        meant = did_you_mean(meant_attributes(name, text[start]))
        return f"{message}{plugins.excuses_for(name)}{meant}", start
    if _EXPECTED.match(message):
        missing = place_of_missing(text, start)
        message = message.replace("Expected shape type.", "type expected")
        return message + (meant_here(text, start) if missing == start else ""), missing
    return message, start


_GENERIC = "write it as a linalg.generic, whose maps and body say what it computes"


def _not_there(name: str) -> str:
    """Words for an operation that no dialect has."""
    from fragir.mlir.suggestions import did_you_mean, meant_operations

    foreign = foreign_dialect(name.partition(".")[0])
    if foreign is not None:
        return f"there is no operation {name} here: {foreign}"
    meant = did_you_mean(meant_operations(name))
    words = f"there is no operation {name} here{plugins.excuses_for(name)}{meant}"
    if meant or not name.startswith("linalg."):
        return words
    return f"{words}; {_GENERIC}"


def _single(error: MultipleSpansParseError) -> ParseError:
    """One place for an error with several: that of the first reference that has words of its own
    (the use of a block that does not exist), else where the error was found."""
    for span, words in error.refs:
        if words is not None:
            return ParseError(span, words)
    return ParseError(error.span, error.msg)


def verify(module: ModuleOp, text: str | None = None) -> None:
    """Checks a module; FragirError that names the operation at fault and its place."""
    try:
        module.verify()
    except Exception as error:
        pass_on(error)
        culprit = next((op for op in module.walk() if _fails(op)), None) or _innermost(module)
        wrong = "its operands, types or attributes do not fit together"
        words = _words_of(error, f"this {culprit.name}", wrong)
        place, message = _hidden_operation(culprit) or (culprit, words)
        raise error_at_operation(place, message, text) from cause_of(error)
    early = used_too_early(module)
    if early is not None:
        op, value = early
        name = f"%{value.name_hint}" if value.name_hint else "a value"
        where = value.owner.location if isinstance(value.owner, Operation) else None
        line = f" in line {where.line.data}" if isinstance(where, FileLineColLoc) else " elsewhere"
        message = f"{op.name} uses {name}, which is not defined here: its definition stands{line}"
        raise error_at_operation(op, message, text)


def _hidden_operation(culprit: Operation) -> tuple[Operation, str] | None:
    """The linalg operation whose body, which xDSL writes itself, is at fault."""
    from fragir.dialects.linalg.generic_text import hidden_error

    return hidden_error(culprit)


def _innermost(op: Operation) -> Operation:
    """The operation whose own regions are at fault, like a function with an empty body."""
    inner = (each for region in op.regions for block in region.blocks for each in block.ops)
    culprit = next((each for each in inner if _fails(each, nested=True)), None)
    return op if culprit is None else _innermost(culprit)


def _fails(op: Operation, nested: bool = False) -> bool:
    try:
        op.verify(verify_nested_ops=nested)
    except Exception as error:
        pass_on(error)
        return True
    return False


def error_at_operation(op: Operation, message: str, text: str | None = None) -> FragirError:
    """An error at an operation's place."""
    return _placed_error(op.location, message, text)


def _placed_error(place: Attribute, message: str, text: str | None) -> FragirError:
    if not isinstance(place, FileLineColLoc):
        return FragirError(message)
    line = place.line.data
    lines = text.split("\n") if text is not None else []
    source = lines[line - 1] if 0 < line <= len(lines) else None
    return FragirError(message, place.filename.data, line, place.column.data, source)


class LocatedFailure(PassFailedException):
    """A pass that failed at an operation."""

    def __init__(self, op: Operation, message: str):
        super().__init__(message)
        self.op, self.op_location = op, op.location


_TRIED: ContextVar[bool] = ContextVar("_TRIED", default=False)


@contextmanager
def trial() -> Generator[None]:
    """Within it failures are answers, which nobody reads: `fail` does not print the module."""
    token = _TRIED.set(True)
    try:
        yield
    finally:
        _TRIED.reset(token)


def fail(op: Operation, message: str) -> NoReturn:
    """Ends a pass with a word about an operation, marked in the module as xDSL does."""
    if _TRIED.get():
        raise LocatedFailure(op, message)
    op.emit_error(message, LocatedFailure(op, message))
    raise AssertionError("emit_error raises")


@contextmanager
def asking(op: Operation) -> Generator[None]:
    """What is raised in the `with` is about an operation, unless another is noted on it already."""
    try:
        yield
    except FragirError as error:
        fail(op, f"{op.name}: {error}")
    except Exception as error:
        pass_on(error)
        if not hasattr(error, "op_location"):
            setattr(error, "op_location", op.location)
            setattr(error, "op_name", op.name)
        raise


def from_exception(
    error: Exception,
    text: str | None = None,
    name: str | None = None,
    *,
    packages: Collection[str] = (),
    doing: str = "",
) -> FragirError:
    """Any exception of a pass as a FragirError.

    One that came through code of `packages` is a fault of theirs, made while `doing` something.
    """
    if isinstance(error, FragirError):
        return error
    if isinstance(error, ParseError):
        return from_parse_error(error, name or "<input>")
    if isinstance(error, RecursionError):
        return FragirError("the program is nested too deeply", name)
    if isinstance(error, MemoryError):
        return FragirError("not enough memory", name)
    message, hint = message_of(error), None
    if not isinstance(error, DiagnosticException):
        message, hint = unexpected_message(error, packages, getattr(error, "op_name", doing))
    found = getattr(error, "op_location", None)
    known = FragirError(message, name) if found is None else _placed_error(found, message, text)
    known.hint = hint
    return known


def unexpected_message(
    error: BaseException, packages: Collection[str], doing: str
) -> tuple[str, str]:
    """Message and hint for an exception that nobody foresaw: whose fault it is, and where.

    One that came through code of `packages` is a fault of theirs, made while `doing` something.
    """
    package, place = _outside(error, packages) or ("fragir", "")
    package = plugins.package_text(package)
    what = f" in {doing} ({package}, {place})" if place else ""
    message = f"unexpected {type(error).__name__}{what}: {message_of(error)}"
    return message, f"this is a fault of {package}'s; --debug shows the traceback"


def _outside(error: BaseException, packages: Collection[str]) -> tuple[str, str] | None:
    """(package, `ops.py:31`): the innermost place of one of the packages on the way of an error."""
    from traceback import walk_tb  # imports much

    place: tuple[str, str] | None = None
    for frame, line in walk_tb(error.__traceback__):
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        if package in packages:
            place = (package, f"{os.path.basename(frame.f_code.co_filename)}:{line}")
    return place


__all__ = [
    "LocatedFailure",
    "LocatingParser",
    "Span",
    "VerifyException",
    "asking",
    "cause_of",
    "error_at_operation",
    "fail",
    "from_exception",
    "message_of",
    "parse_module",
    "verify",
]
