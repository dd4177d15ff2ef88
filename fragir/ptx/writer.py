"""Writing a syntax tree as PTX text. The writer sees the tree and nothing else.

One table from node class to the function that gives the node's text; statements go on lines of
their own, indented by their block. Reading what was written gives an equal tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from fragir.errors import FragirError, kind_of
from fragir.ptx import tree
from fragir.ptx.tree import Module, Node

# Operators of constant expressions, weakest first (ISA 9.2, section 4.5.5).
_LEVELS = ("||", "&&", "|", "^", "&", "== !=", "< > <= >=", "<< >>", "+ -", "* / %")
PRECEDENCE = {op: level for level, ops in enumerate(_LEVELS) for op in ops.split()}


def write(module: Module) -> str:
    """The PTX text of a module; it ends with a newline."""
    if not isinstance(cast("object", module), tree.Module):
        raise FragirError(f"write takes a Module, not {kind_of(module)}")
    lines: list[str] = []
    _write_items(module.items, "", lines)
    lines.append("")
    return "\n".join(lines)


def write_node(node: Node) -> str:
    """The text of any one node; a block or a function has several lines."""
    if isinstance(node, Module):
        return write(node)
    if isinstance(node, tree.Block | tree.Function):
        lines: list[str] = []
        if isinstance(node, tree.Block):
            _write_block(node, "", lines)
        else:
            _write_function(node, lines)
        return "\n".join(lines)
    return _text(node)


# ------------------------------------------------------------------ statements on their lines


def _write_items(items: Iterable[Node], indent: str, lines: list[str]) -> None:
    line_is_open = bool(lines)  # whether a comment can stand on the last line
    for item in items:
        kind = type(item)
        if kind is tree.Comment:
            comment: Any = item
            if comment.trailing and line_is_open:
                lines[-1] += " " + comment.text
            else:
                lines.append(indent + comment.text)
            line_is_open = comment.text.startswith("/*")  # nothing can follow `//` on its line
            continue
        if isinstance(item, tree.Block):
            _write_block(item, indent, lines)
        elif isinstance(item, tree.Function):
            _write_function(item, lines)
        elif kind is tree.Label:
            lines.append(indent[:-1] + _TEXT[kind](item))
        else:
            lines.append(indent + _TEXT[kind](item))
        line_is_open = True


def _write_block(block: tree.Block, indent: str, lines: list[str]) -> None:
    lines.append(indent + "{")
    _write_items(block.items, indent + "\t", lines)
    lines.append(indent + "}")


def _write_function(function: tree.Function, lines: list[str]) -> None:
    head = _function_head(function)
    if function.body is None:
        lines.append(head + ";")
    else:
        lines.append(head)
        _write_block(function.body, "", lines)


# ------------------------------------------------------------------ the text of one node


def _text(node: Node) -> str:
    return _TEXT[type(node)](node)


def _list(nodes: Iterable[Node]) -> str:
    return ", ".join([_TEXT[type(node)](node) for node in nodes])


def _token_text(node: Any) -> str:
    return node.text


def _bracket(node: Node, weakest: int) -> str:
    """`node` as a part of an expression, in brackets if it binds weaker than `weakest`."""
    level = len(_LEVELS)
    if isinstance(node, tree.Conditional):
        level = -1
    elif isinstance(node, tree.Binary):
        level = PRECEDENCE[node.operator]
    elif isinstance(node, tree.Pair):
        level = PRECEDENCE["|"]
    return f"({_text(node)})" if level < weakest else _text(node)


def _binary(node: tree.Binary) -> str:
    level = PRECEDENCE[node.operator]
    left, right = _bracket(node.left, level), _bracket(node.right, level + 1)
    return f"{left} {node.operator} {right}"


def _conditional(node: tree.Conditional) -> str:
    return f"{_bracket(node.condition, 0)} ? {_text(node.then)} : {_text(node.otherwise)}"


def _unary(node: tree.Unary) -> str:
    return node.operator + _bracket(node.operand, len(_LEVELS))


def _address(node: tree.Address) -> str:
    offset = "" if node.offset is None else "+" + _text(node.offset)
    rest = ", " + _list(node.rest) if node.rest else ""
    suffix = "" if node.suffix is None else "." + node.suffix
    return f"[{_text(node.base)}{offset}{rest}]{suffix}"


def _instruction(node: tree.Instruction) -> str:
    text = ".".join(node.opcode)
    if node.operands:
        text = f"{text} {', '.join([_TEXT[type(x)](x) for x in node.operands])}"
    return f"{text};" if node.guard is None else f"{_guard(node.guard)} {text};"


def _guard(node: tree.Guard) -> str:
    return ("@!" if node.negated else "@") + node.register.text


def _dotted_words(words: Iterable[str]) -> str:
    return "".join(f".{word} " for word in words)


def _variable(node: tree.Variable) -> str:
    count = "" if node.count is None else f"<{node.count.text}>"
    sizes = "".join("[]" if x is None else f"[{_text(x)}]" for x in node.dimensions)
    value = "" if node.initializer is None else " = " + _text(node.initializer)
    return node.name.text + count + sizes + value


def _attribute(node: tree.Attribute) -> str:
    return f".{node.name}({_list(node.values)})" if node.values else f".{node.name}"


def _attributes(nodes: tuple[tree.Attribute, ...]) -> str:
    """Each group that is joined in brackets of its own, with a space behind."""
    text = ""
    for node in nodes:
        if node.joined and text:
            text = f"{text[:-2]}, {_attribute(node)}) "
        else:
            text += f".attribute({_attribute(node)}) "
    return text


def _pointer(node: tree.Pointer) -> str:
    space = f" .{node.space}" if node.space else ""
    align = f" .align {node.align.text}" if node.align else ""
    return f".ptr{space}{align}"


def _parameter(node: tree.Declaration) -> str:
    """A declaration without its end, which is all that a parameter has."""
    words = _dotted_words((*node.linkage, node.space))
    if node.bank:
        words = f"{words[:-1]}[{node.bank.text}] "
    words += _attributes(node.attributes)
    if node.align:
        words += f".align {node.align.text} "
    words += _dotted_words(x for x in (node.vector, node.type) if x)
    if node.pointer:
        words += _text(node.pointer) + " "
    return words + _list(node.variables)


def _declaration(node: tree.Declaration) -> str:
    return _parameter(node) + ";"


def _parameters(nodes: tuple[tree.Declaration, ...]) -> str:
    return f"({', '.join(map(_parameter, nodes))})"


def _function_head(node: tree.Function) -> str:
    head = _dotted_words((*node.linkage, node.kind)) + _attributes(node.attributes)
    if node.returns is not None:
        head += _parameters(node.returns) + " "
    head += node.name.text
    if node.parameters is not None:
        inner = ",\n".join("\t" + _parameter(x) for x in node.parameters)
        head += f"(\n{inner}\n)" if inner else "()"
    return head + "".join("\n" + _text(x) for x in node.directives)


def _function_directive(node: tree.FunctionDirective) -> str:
    return f".{node.name} {_list(node.values)}" if node.values else f".{node.name}"


def _call_prototype(node: tree.CallPrototype) -> str:
    returns, parameters = (
        "" if nodes is None else _parameters(nodes) for nodes in (node.returns, node.parameters)
    )
    name = _text(node.name)
    directives = (_text(x) for x in node.directives)
    words = (".callprototype", returns, name, parameters, *directives)
    return " ".join(word for word in words if word) + ";"


def _loc(node: tree.Loc) -> str:
    text = f".loc {node.file.text} {node.line.text} {node.column.text}"
    if node.function:
        offset = f"+{node.function_offset.text}" if node.function_offset else ""
        text += f", function_name {_text(node.function)}{offset}"
    if node.inlined_at:
        text += ", inlined_at " + " ".join(x.text for x in node.inlined_at)
    return text


def _branch_targets(node: tree.BranchTargets) -> str:
    counts = node.counts or (None,) * len(node.labels)
    labels = [
        label.text if count is None else f"{label.text}<{count.text}>"
        for label, count in zip(node.labels, counts, strict=True)
    ]
    return f".branchtargets {', '.join(labels)};"


def _file(node: tree.File) -> str:
    times = [x.text for x in (node.timestamp, node.size) if x]
    return ", ".join([f".file {node.index.text} {node.path.text}", *times])


def _section(node: tree.Section) -> str:
    if isinstance(node.body, str):
        return f".section {node.name} {{{node.body}}}"
    lines = [f".section {node.name}", "{"]
    _write_items(node.body, "\t", lines)
    return "\n".join([*lines, "}"])


def _section_name(node: tree.SectionName) -> str:
    return node.text + ("" if node.offset is None else f"+{node.offset.text}")


_TEXT: Mapping[type, Callable[[Any], str]] = {
    tree.Name: _token_text,
    tree.Integer: _token_text,
    tree.Float: _token_text,
    tree.String: _token_text,
    tree.Comment: _token_text,
    tree.Sink: lambda x: "_",
    tree.Component: lambda x: f"{x.base.text}.{x.component}",
    tree.Vector: lambda x: f"{{{_list(x.elements)}}}",
    tree.Parens: lambda x: f"({_list(x.elements)})",
    tree.Address: _address,
    tree.Index: lambda x: f"{x.base.text}[{_text(x.index)}]",
    tree.Pair: lambda x: f"{_text(x.first)}|{_text(x.second)}",
    tree.Unary: _unary,
    tree.Binary: _binary,
    tree.Conditional: _conditional,
    tree.Cast: lambda x: f"(.{x.type}) {_bracket(x.operand, len(_LEVELS))}",
    tree.Apply: lambda x: f"{_text(x.function)}({_text(x.argument)})",
    tree.Resident: lambda x: f"{_text(x.vector)}|{_text(x.predicate)}",
    tree.Setting: lambda x: f"{x.field} = {x.value}",
    tree.Guard: _guard,
    tree.Instruction: _instruction,
    tree.Label: lambda x: x.name.text + ":",
    tree.Variable: _variable,
    tree.Attribute: _attribute,
    tree.Pointer: _pointer,
    tree.Declaration: _declaration,
    tree.FunctionDirective: _function_directive,
    tree.Pragma: lambda x: f".pragma {_list(x.values)};",
    tree.CallPrototype: _call_prototype,
    tree.BranchTargets: _branch_targets,
    tree.CallTargets: lambda x: f".calltargets {_list(x.functions)};",
    tree.Loc: _loc,
    tree.Version: lambda x: f".version {x.text}",
    tree.Target: lambda x: f".target {', '.join(x.words)}",
    tree.AddressSize: lambda x: f".address_size {x.bits.text}",
    tree.File: _file,
    tree.Section: _section,
    tree.SectionData: lambda x: f".{x.type} {_list(x.values)}",
    tree.SectionName: _section_name,
    tree.Dwarf: lambda x: f"@@DWARF .{x.directive} {_list(x.values)}",
    tree.DwarfFlag: _token_text,
    tree.Alias: lambda x: f".alias {x.name.text}, {x.target.text};",
}
