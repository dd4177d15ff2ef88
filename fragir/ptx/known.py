"""The grammar's terminals and frequent shapes; written by fragir/ptx/learn.py."""

# fmt: off
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fragir.ptx.generalise import nth
from fragir.ptx.tree import (
    Address,
    AddressSize,
    Apply,
    Binary,
    CallPrototype,
    Component,
    Declaration,
    File,
    Float,
    FunctionDirective,
    Index,
    Integer,
    Loc,
    Name,
    Pair,
    Parens,
    Pointer,
    Pragma,
    Sink,
    String,
    Target,
    Unary,
    Variable,
    Vector,
    Version,
)

Parts = Sequence[str]
Offsets = Sequence[int]

# name -> regular expression, to be compiled with re.ASCII
TERMINALS = {
    'ADDRESS_SIZE': '\\.address_size(?![\\w$])',
    'ALIAS': '\\.alias(?![\\w$])',
    'ALIGN': '\\.align(?![\\w$])',
    'AT': '@',
    'ATTRIBUTE': '\\.attribute(?![\\w$])',
    'BANG': '!',
    'BINARY': '\\|\\||&&|==|!=|<=|>=|<<|>>|%(?![\\w$])|[*\\/&^|<>]',
    'BRANCH_TARGETS': '\\.branchtargets(?![\\w$])',
    'CALL_PROTOTYPE': '\\.callprototype(?![\\w$])',
    'CALL_TARGETS': '\\.calltargets(?![\\w$])',
    'COLON': ':',
    'COMMA': ',',
    'COMMENT': '\\/\\/[^\n]*|\\/\\*(?s:.)*?\\*\\/|#[ \t]*(?:line[ \t]*)?[0-9]+[ \t]+"[^"\n]*"(?:[ \t]+[0-9]+)*[ \t]*\r?(?=\n|\\Z)',
    'DATA_TYPE': '\\.b(?:8|16|32|64)(?![\\w$])',
    'DWARF': '@@DWARF(?![\\w$])',
    'DWARF_DIRECTIVE': '\\.(?:section|byte|[248]byte|quad)(?![\\w$])',
    'DWARF_FLAG': '@[a-z]+(?![\\w$])',
    'EQUAL': '=',
    'EXACT_FLOAT': '0[fF][0-9a-fA-F]{8}(?![\\w$])',
    'FIELD': '\\.[A-Za-z][A-Za-z0-9]*(?![\\w$])',
    'FILE': '\\.file(?![\\w$])',
    'FLOAT': '0[dD][0-9a-fA-F]{16}(?![\\w$])|(?:[0-9]+\\.[0-9]*|\\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\\w$.])|[0-9]+[eE][+-]?[0-9]+(?![\\w$.])',
    'FUNCTION_DIRECTIVE': '\\.(?:maxnreg|local_maxnreg|maxntid|reqntid|minnctapersm|maxnctapersm|noreturn|reqnctapercluster|explicitcluster|maxclusterrank|blocksareclusters|abi_preserve|abi_preserve_control)(?![\\w$])',
    'FUNCTION_NAME': 'function_name(?![\\w$])',
    'GENERIC': 'generic(?![\\w$])',
    'INLINED_AT': 'inlined_at(?![\\w$])',
    'INTEGER': '(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]*|[1-9][0-9]*)U?(?![\\w$])',
    'KIND': '\\.(?:entry|func)(?![\\w$])',
    'LBRACE': '\\{',
    'LESSTHAN': '<',
    'LINKAGE': '\\.(?:extern|visible|weak|common)(?![\\w$])',
    'LOC': '\\.loc(?![\\w$])',
    'LPAR': '\\(',
    'LSQB': '\\[',
    'MANAGED': '\\.managed(?![\\w$])',
    'MINUS': '\\-',
    'MODIFIERS': '(?:\\.\\w+(?:::\\w+)*)+(?![\\w$]|::)',
    'MORETHAN': '>',
    'NAME': '(?!WARP_SZ(?![\\w$]))(?:[A-Za-z][\\w$]*|[_$%][\\w$]+)(?![\\w$])',
    'OPCODE': '[a-z][a-z0-9_]*(?![\\w$])',
    'PLUS': '\\+',
    'POINTER_SPACE': '\\.(?:const|global|local|shared)(?![\\w$])',
    'PRAGMA': '\\.pragma(?![\\w$])',
    'PTR': '\\.ptr(?![\\w$])',
    'QMARK': '\\?',
    'RBRACE': '\\}',
    'RPAR': '\\)',
    'RSQB': '\\]',
    'SECTION': '\\.section(?![\\w$])',
    'SECTION_BODY': '\\{(?:[^{}"\\/]|"[^"\n]*"|\\/\\/[^\n]*|\\/\\*(?s:.)*?\\*\\/|\\/(?![*\\/]))*+\\}',
    'SECTION_NAME': '\\.[A-Za-z_$][\\w$]*(?:\\.[\\w$]+)*(?![\\w$])',
    'SECTION_REFERENCE': '\\.[A-Za-z_$][\\w$]*(?:\\.[\\w$]+)*(?![\\w$])',
    'SEMICOLON': ';',
    'SINK': '_(?![\\w$])',
    'SPACE': '\\.(?:reg|const|global|local|param|shared|tex)(?![\\w$])',
    'STRING': '"[^"\n]*"',
    'TARGET': '\\.target(?![\\w$])',
    'TILDE': '\\~',
    'TYPE': '\\.(?:pred|b128|[bsu](?:8|16|32|64)|f16x2|f16|f32|f64|e4m3|e5m2|texref|samplerref|surfref)(?![\\w$])',
    'UNIFIED': '\\.unified(?![\\w$])',
    'VBAR': '\\|',
    'VECTOR': '\\.v[24](?![\\w$])',
    'VERSION': '\\.version(?![\\w$])',
    'VERSION_NUMBER': '[0-9]{1,9}\\.[0-9]{1,9}(?![\\w$])',
    'WARP_SIZE': 'WARP_SZ(?![\\w$])',
    'WHITESPACE': '[ \t\r\n\x0c\\v]+',
}


def operands_0(p: Parts, o: Offsets, i: int) -> Any:  # a
    return Name(p[i+1], o[i+1])


def operands_1(p: Parts, o: Offsets, i: int) -> Any:  # _
    return Sink(o[i+1])


def operands_2(p: Parts, o: Offsets, i: int) -> Any:  # 1
    return Integer(p[i+1], o[i+1])


def operands_3(p: Parts, o: Offsets, i: int) -> Any:  # -1
    return Unary('-', Integer(p[i+1], o[i+1]), o[i+0]+p[i+0].index('-'))


def operands_4(p: Parts, o: Offsets, i: int) -> Any:  # 1.5
    return Float(p[i+1], o[i+1])


def operands_5(p: Parts, o: Offsets, i: int) -> Any:  # -1.5
    return Unary('-', Float(p[i+1], o[i+1]), o[i+0]+p[i+0].index('-'))


def operands_6(p: Parts, o: Offsets, i: int) -> Any:  # 1e5
    return Float(p[i+1], o[i+1])


def operands_7(p: Parts, o: Offsets, i: int) -> Any:  # 0f00000000
    return Float(p[i+1], o[i+1])


def operands_8(p: Parts, o: Offsets, i: int) -> Any:  # a.x
    return Component(Name(p[i+1][:-2], o[i+1]), 'x', o[i+1])


def operands_9(p: Parts, o: Offsets, i: int) -> Any:  # a.y
    return Component(Name(p[i+1][:-2], o[i+1]), 'y', o[i+1])


def operands_10(p: Parts, o: Offsets, i: int) -> Any:  # a.z
    return Component(Name(p[i+1][:-2], o[i+1]), 'z', o[i+1])


def operands_11(p: Parts, o: Offsets, i: int) -> Any:  # a.w
    return Component(Name(p[i+1][:-2], o[i+1]), 'w', o[i+1])


def operands_12(p: Parts, o: Offsets, i: int) -> Any:  # !a
    return Unary('!', Name(p[i+1], o[i+1]), o[i+0]+p[i+0].index('!'))


def operands_13(p: Parts, o: Offsets, i: int) -> Any:  # a[1]
    return Index(Name(p[i+1], o[i+1]), Integer(p[i+3], o[i+3]), o[i+1])


def operands_14(p: Parts, o: Offsets, i: int) -> Any:  # a+1
    return Binary('+', Name(p[i+1], o[i+1]), Integer(p[i+3], o[i+3]), o[i+1])


def operands_15(p: Parts, o: Offsets, i: int) -> Any:  # WARP_SZ
    return Name(p[i+1], o[i+1])


def operands_16(p: Parts, o: Offsets, i: int) -> Any:  # a|b
    return Pair(Name(p[i+1], o[i+1]), Name(p[i+3], o[i+3]), o[i+1])


def operands_17(p: Parts, o: Offsets, i: int) -> Any:  # _|b
    return Pair(Sink(o[i+1]), Name(p[i+3], o[i+3]), o[i+1])


def operands_18(p: Parts, o: Offsets, i: int) -> Any:  # a|_
    return Pair(Name(p[i+1], o[i+1]), Sink(o[i+3]), o[i+1])


def operands_19(p: Parts, o: Offsets, i: int) -> Any:  # -a
    return Unary('-', Name(p[i+1], o[i+1]), o[i+0]+p[i+0].index('-'))


def operands_20(p: Parts, o: Offsets, i: int) -> Any:  # a.b0
    return Component(Name(p[i+1][:-3], o[i+1]), 'b0', o[i+1])


def operands_21(p: Parts, o: Offsets, i: int) -> Any:  # a.b1
    return Component(Name(p[i+1][:-3], o[i+1]), 'b1', o[i+1])


def operands_22(p: Parts, o: Offsets, i: int) -> Any:  # a.b2
    return Component(Name(p[i+1][:-3], o[i+1]), 'b2', o[i+1])


def operands_23(p: Parts, o: Offsets, i: int) -> Any:  # a.b3
    return Component(Name(p[i+1][:-3], o[i+1]), 'b3', o[i+1])


def operands_24(p: Parts, o: Offsets, i: int) -> Any:  # a.h0
    return Component(Name(p[i+1][:-3], o[i+1]), 'h0', o[i+1])


def operands_25(p: Parts, o: Offsets, i: int) -> Any:  # a.h1
    return Component(Name(p[i+1][:-3], o[i+1]), 'h1', o[i+1])


def operands_26(p: Parts, o: Offsets, i: int) -> Any:  # [a]
    return Address(Name(p[i+1], o[i+1]), None, (), None, o[i+0]+p[i+0].index('['))


def operands_27(p: Parts, o: Offsets, i: int) -> Any:  # [a+1]
    return Address(Name(p[i+1], o[i+1]), Integer(p[i+3], o[i+3]), (), None, o[i+0]+p[i+0].index('['))


def operands_28(p: Parts, o: Offsets, i: int) -> Any:  # [a+-1]
    return Address(Name(p[i+1], o[i+1]), Unary('-', Integer(p[i+3], o[i+3]), o[i+2]+p[i+2].index('-')), (), None, o[i+0]+p[i+0].index('['))


def operands_29(p: Parts, o: Offsets, i: int) -> Any:  # [a + 1]
    return Address(Name(p[i+1], o[i+1]), Integer(p[i+3], o[i+3]), (), None, o[i+0]+p[i+0].index('['))


def operands_30(p: Parts, o: Offsets, i: int) -> Any:  # [1]
    return Address(Integer(p[i+1], o[i+1]), None, (), None, o[i+0]+p[i+0].index('['))


def operands_31(p: Parts, o: Offsets, i: int) -> Any:  # [a,{b}]
    return Address(Name(p[i+1], o[i+1]), None, (Vector((Name(p[i+3], o[i+3]),), o[i+2]+p[i+2].index('{')),), None, o[i+0]+p[i+0].index('['))


def operands_32(p: Parts, o: Offsets, i: int) -> Any:  # [a,{b,c}]
    return Address(Name(p[i+1], o[i+1]), None, (Vector((Name(p[i+3], o[i+3]), Name(p[i+5], o[i+5])), o[i+2]+p[i+2].index('{')),), None, o[i+0]+p[i+0].index('['))


def operands_33(p: Parts, o: Offsets, i: int) -> Any:  # [a,{b,c,d}]
    return Address(Name(p[i+1], o[i+1]), None, (Vector((Name(p[i+3], o[i+3]), Name(p[i+5], o[i+5]), Name(p[i+7], o[i+7])), o[i+2]+p[i+2].index('{')),), None, o[i+0]+p[i+0].index('['))


def operands_34(p: Parts, o: Offsets, i: int) -> Any:  # [a,{b,c,d,e}]
    return Address(Name(p[i+1], o[i+1]), None, (Vector((Name(p[i+3], o[i+3]), Name(p[i+5], o[i+5]), Name(p[i+7], o[i+7]), Name(p[i+9], o[i+9])), o[i+2]+p[i+2].index('{')),), None, o[i+0]+p[i+0].index('['))


def operands_35(p: Parts, o: Offsets, i: int) -> Any:  # [a,{b,c,d,e,f}]
    return Address(Name(p[i+1], o[i+1]), None, (Vector((Name(p[i+3], o[i+3]), Name(p[i+5], o[i+5]), Name(p[i+7], o[i+7]), Name(p[i+9], o[i+9]), Name(p[i+11], o[i+11])), o[i+2]+p[i+2].index('{')),), None, o[i+0]+p[i+0].index('['))


def operands_36(p: Parts, o: Offsets, i: int) -> Any:  # [a+1,{b,c}]
    return Address(Name(p[i+1], o[i+1]), Integer(p[i+3], o[i+3]), (Vector((Name(p[i+5], o[i+5]), Name(p[i+7], o[i+7])), o[i+4]+p[i+4].index('{')),), None, o[i+0]+p[i+0].index('['))


def operands_37(p: Parts, o: Offsets, i: int) -> Any:  # [a,b,{c,d}]
    return Address(Name(p[i+1], o[i+1]), None, (Name(p[i+3], o[i+3]), Vector((Name(p[i+5], o[i+5]), Name(p[i+7], o[i+7])), o[i+4]+p[i+4].index('{'))), None, o[i+0]+p[i+0].index('['))


def operands_38(p: Parts, o: Offsets, i: int) -> Any:  # [a,b]
    return Address(Name(p[i+1], o[i+1]), None, (Name(p[i+3], o[i+3]),), None, o[i+0]+p[i+0].index('['))


def operands_39(p: Parts, o: Offsets, i: int) -> Any:  # ()
    return Parens((), o[i+0]+p[i+0].index('('))


def operands_40(p: Parts, o: Offsets, i: int) -> Any:  # (a)
    return Parens((Name(p[i+1], o[i+1]),), o[i+0]+p[i+0].index('('))


def operands_41(p: Parts, o: Offsets, i: int) -> Any:  # (_)
    return Parens((Sink(o[i+1]),), o[i+0]+p[i+0].index('('))


def operands_42(p: Parts, o: Offsets, i: int) -> Any:  # (a,b)
    return Parens((Name(p[i+1], o[i+1]), Name(p[i+3], o[i+3])), o[i+0]+p[i+0].index('('))


def operands_43(p: Parts, o: Offsets, i: int) -> Any:  # (a,b,c)
    return Parens((Name(p[i+1], o[i+1]), Name(p[i+3], o[i+3]), Name(p[i+5], o[i+5])), o[i+0]+p[i+0].index('('))


def operands_44(p: Parts, o: Offsets, i: int) -> Any:  # (a,b,c,d)
    return Parens((Name(p[i+1], o[i+1]), Name(p[i+3], o[i+3]), Name(p[i+5], o[i+5]), Name(p[i+7], o[i+7])), o[i+0]+p[i+0].index('('))


def operands_45(p: Parts, o: Offsets, i: int) -> Any:  # (a,b,c,d,e)
    return Parens((Name(p[i+1], o[i+1]), Name(p[i+3], o[i+3]), Name(p[i+5], o[i+5]), Name(p[i+7], o[i+7]), Name(p[i+9], o[i+9])), o[i+0]+p[i+0].index('('))


def operands_46(p: Parts, o: Offsets, i: int) -> Any:  # (a,b,c,d,e,f)
    return Parens((Name(p[i+1], o[i+1]), Name(p[i+3], o[i+3]), Name(p[i+5], o[i+5]), Name(p[i+7], o[i+7]), Name(p[i+9], o[i+9]), Name(p[i+11], o[i+11])), o[i+0]+p[i+0].index('('))


def statement_0(p: Parts, o: Offsets, i: int) -> Any:  # .reg .b32 a;
    return Declaration((), 'reg', None, None, p[i+1][1:], (Variable(Name(p[i+3], o[i+3]), None, (), None, o[i+3]),), (), None, None, o[i+0]+p[i+0].index('.'))


def statement_1(p: Parts, o: Offsets, i: int) -> Any:  # .reg .b32 a<1>;
    return Declaration((), 'reg', None, None, p[i+1][1:], (Variable(Name(p[i+3], o[i+3]), Integer(p[i+5], o[i+5]), (), None, o[i+3]),), (), None, None, o[i+0]+p[i+0].index('.'))


def statement_2(p: Parts, o: Offsets, i: int) -> Any:  # .reg .b32 a, b;
    return Declaration((), 'reg', None, None, p[i+1][1:], (Variable(Name(p[i+3], o[i+3]), None, (), None, o[i+3]), Variable(Name(p[i+5], o[i+5]), None, (), None, o[i+5])), (), None, None, o[i+0]+p[i+0].index('.'))


def statement_3(p: Parts, o: Offsets, i: int) -> Any:  # .reg .b32 a, b, c;
    return Declaration((), 'reg', None, None, p[i+1][1:], (Variable(Name(p[i+3], o[i+3]), None, (), None, o[i+3]), Variable(Name(p[i+5], o[i+5]), None, (), None, o[i+5]), Variable(Name(p[i+7], o[i+7]), None, (), None, o[i+7])), (), None, None, o[i+0]+p[i+0].index('.'))


def statement_4(p: Parts, o: Offsets, i: int) -> Any:  # .reg .b32 a, b, c, d;
    return Declaration((), 'reg', None, None, p[i+1][1:], (Variable(Name(p[i+3], o[i+3]), None, (), None, o[i+3]), Variable(Name(p[i+5], o[i+5]), None, (), None, o[i+5]), Variable(Name(p[i+7], o[i+7]), None, (), None, o[i+7]), Variable(Name(p[i+9], o[i+9]), None, (), None, o[i+9])), (), None, None, o[i+0]+p[i+0].index('.'))


def statement_5(p: Parts, o: Offsets, i: int) -> Any:  # .param .b32 a;
    return Declaration((), 'param', None, None, p[i+1][1:], (Variable(Name(p[i+3], o[i+3]), None, (), None, o[i+3]),), (), None, None, o[i+0]+p[i+0].index('.'))


def statement_6(p: Parts, o: Offsets, i: int) -> Any:  # .param .b8 a[1];
    return Declaration((), 'param', None, None, p[i+1][1:], (Variable(Name(p[i+3], o[i+3]), None, (Integer(p[i+5], o[i+5]),), None, o[i+3]),), (), None, None, o[i+0]+p[i+0].index('.'))


def statement_7(p: Parts, o: Offsets, i: int) -> Any:  # .param .align 1 .b8 a[1];
    return Declaration((), 'param', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (Integer(p[i+7], o[i+7]),), None, o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def statement_8(p: Parts, o: Offsets, i: int) -> Any:  # .local .align 1 .b8 a[1];
    return Declaration((), 'local', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (Integer(p[i+7], o[i+7]),), None, o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def statement_9(p: Parts, o: Offsets, i: int) -> Any:  # .shared .align 1 .b8 a[1];
    return Declaration((), 'shared', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (Integer(p[i+7], o[i+7]),), None, o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def statement_10(p: Parts, o: Offsets, i: int) -> Any:  # .shared .b32 a;
    return Declaration((), 'shared', None, None, p[i+1][1:], (Variable(Name(p[i+3], o[i+3]), None, (), None, o[i+3]),), (), None, None, o[i+0]+p[i+0].index('.'))


def statement_11(p: Parts, o: Offsets, i: int) -> Any:  # .shared .align 1 .b8 a;
    return Declaration((), 'shared', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (), None, o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def statement_12(p: Parts, o: Offsets, i: int) -> Any:  # .loc 1 1 1
    return Loc(Integer(p[i+1], o[i+1]), Integer(p[i+3], o[i+3]), Integer(p[i+5], o[i+5]), None, None, None, o[i+0]+p[i+0].index('.'))


def statement_13(p: Parts, o: Offsets, i: int) -> Any:  # .pragma "a";
    return Pragma((String(p[i+1], o[i+1]),), o[i+0]+p[i+0].index('.'))


def statement_14(p: Parts, o: Offsets, i: int) -> Any:  # .loc 1 1 1, function_name a, inlined_at 1 1 1
    return Loc(Integer(p[i+1], o[i+1]), Integer(p[i+3], o[i+3]), Integer(p[i+5], o[i+5]), Name(p[i+9], o[i+9]), None, (Integer(p[i+13], o[i+13]), Integer(p[i+15], o[i+15]), Integer(p[i+17], o[i+17])), o[i+0]+p[i+0].index('.'))


def statement_15(p: Parts, o: Offsets, i: int) -> Any:  # .loc 1 1 1, function_name a+1, inlined_at 1 1 1
    return Loc(Integer(p[i+1], o[i+1]), Integer(p[i+3], o[i+3]), Integer(p[i+5], o[i+5]), Name(p[i+9], o[i+9]), Integer(p[i+11], o[i+11]), (Integer(p[i+15], o[i+15]), Integer(p[i+17], o[i+17]), Integer(p[i+19], o[i+19])), o[i+0]+p[i+0].index('.'))


def statement_16(p: Parts, o: Offsets, i: int) -> Any:  # .callprototype _ ();
    return CallPrototype(None, Sink(o[i+1]), (), (), o[i+0]+p[i+0].index('.'))


def statement_17(p: Parts, o: Offsets, i: int) -> Any:  # .callprototype _ (.param .b32 _);
    return CallPrototype(None, Sink(o[i+1]), (Declaration((), 'param', None, None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (), None, o[i+5]),), (), None, None, o[i+2]+p[i+2].index('.')),), (), o[i+0]+p[i+0].index('.'))


def statement_18(p: Parts, o: Offsets, i: int) -> Any:  # .callprototype _ (.param .b32 _, .param .b32 _);
    return CallPrototype(None, Sink(o[i+1]), (Declaration((), 'param', None, None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (), None, o[i+5]),), (), None, None, o[i+2]+p[i+2].index('.')), Declaration((), 'param', None, None, p[i+7][1:], (Variable(Name(p[i+9], o[i+9]), None, (), None, o[i+9]),), (), None, None, o[i+6]+p[i+6].index('.'))), (), o[i+0]+p[i+0].index('.'))


def statement_19(p: Parts, o: Offsets, i: int) -> Any:  # .callprototype _ (.param .b32 _, .param .b32 _, .param .b32 _);
    return CallPrototype(None, Sink(o[i+1]), (Declaration((), 'param', None, None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (), None, o[i+5]),), (), None, None, o[i+2]+p[i+2].index('.')), Declaration((), 'param', None, None, p[i+7][1:], (Variable(Name(p[i+9], o[i+9]), None, (), None, o[i+9]),), (), None, None, o[i+6]+p[i+6].index('.')), Declaration((), 'param', None, None, p[i+11][1:], (Variable(Name(p[i+13], o[i+13]), None, (), None, o[i+13]),), (), None, None, o[i+10]+p[i+10].index('.'))), (), o[i+0]+p[i+0].index('.'))


def statement_20(p: Parts, o: Offsets, i: int) -> Any:  # .callprototype _ (.param .b32 _, .param .b32 _, .param .b32 _, .param .b32 _);
    return CallPrototype(None, Sink(o[i+1]), (Declaration((), 'param', None, None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (), None, o[i+5]),), (), None, None, o[i+2]+p[i+2].index('.')), Declaration((), 'param', None, None, p[i+7][1:], (Variable(Name(p[i+9], o[i+9]), None, (), None, o[i+9]),), (), None, None, o[i+6]+p[i+6].index('.')), Declaration((), 'param', None, None, p[i+11][1:], (Variable(Name(p[i+13], o[i+13]), None, (), None, o[i+13]),), (), None, None, o[i+10]+p[i+10].index('.')), Declaration((), 'param', None, None, p[i+15][1:], (Variable(Name(p[i+17], o[i+17]), None, (), None, o[i+17]),), (), None, None, o[i+14]+p[i+14].index('.'))), (), o[i+0]+p[i+0].index('.'))


def statement_21(p: Parts, o: Offsets, i: int) -> Any:  # .callprototype _ (.param .b32 _, .param .b32 _, .param .b32 _, .param .b32 _, .param .b32 _);
    return CallPrototype(None, Sink(o[i+1]), (Declaration((), 'param', None, None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (), None, o[i+5]),), (), None, None, o[i+2]+p[i+2].index('.')), Declaration((), 'param', None, None, p[i+7][1:], (Variable(Name(p[i+9], o[i+9]), None, (), None, o[i+9]),), (), None, None, o[i+6]+p[i+6].index('.')), Declaration((), 'param', None, None, p[i+11][1:], (Variable(Name(p[i+13], o[i+13]), None, (), None, o[i+13]),), (), None, None, o[i+10]+p[i+10].index('.')), Declaration((), 'param', None, None, p[i+15][1:], (Variable(Name(p[i+17], o[i+17]), None, (), None, o[i+17]),), (), None, None, o[i+14]+p[i+14].index('.')), Declaration((), 'param', None, None, p[i+19][1:], (Variable(Name(p[i+21], o[i+21]), None, (), None, o[i+21]),), (), None, None, o[i+18]+p[i+18].index('.'))), (), o[i+0]+p[i+0].index('.'))


def statement_22(p: Parts, o: Offsets, i: int) -> Any:  # .callprototype (.param .b32 _) _ ();
    return CallPrototype((Declaration((), 'param', None, None, p[i+1][1:], (Variable(Name(p[i+3], o[i+3]), None, (), None, o[i+3]),), (), None, None, o[i+0]+nth(p[i+0], '.', 1)),), Sink(o[i+5]), (), (), o[i+0]+p[i+0].index('.'))


def statement_23(p: Parts, o: Offsets, i: int) -> Any:  # .callprototype (.param .b32 _) _ (.param .b32 _);
    return CallPrototype((Declaration((), 'param', None, None, p[i+1][1:], (Variable(Name(p[i+3], o[i+3]), None, (), None, o[i+3]),), (), None, None, o[i+0]+nth(p[i+0], '.', 1)),), Sink(o[i+5]), (Declaration((), 'param', None, None, p[i+7][1:], (Variable(Name(p[i+9], o[i+9]), None, (), None, o[i+9]),), (), None, None, o[i+6]+p[i+6].index('.')),), (), o[i+0]+p[i+0].index('.'))


def statement_24(p: Parts, o: Offsets, i: int) -> Any:  # .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _);
    return CallPrototype((Declaration((), 'param', None, None, p[i+1][1:], (Variable(Name(p[i+3], o[i+3]), None, (), None, o[i+3]),), (), None, None, o[i+0]+nth(p[i+0], '.', 1)),), Sink(o[i+5]), (Declaration((), 'param', None, None, p[i+7][1:], (Variable(Name(p[i+9], o[i+9]), None, (), None, o[i+9]),), (), None, None, o[i+6]+p[i+6].index('.')), Declaration((), 'param', None, None, p[i+11][1:], (Variable(Name(p[i+13], o[i+13]), None, (), None, o[i+13]),), (), None, None, o[i+10]+p[i+10].index('.'))), (), o[i+0]+p[i+0].index('.'))


def statement_25(p: Parts, o: Offsets, i: int) -> Any:  # .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _, .param .b32 _);
    return CallPrototype((Declaration((), 'param', None, None, p[i+1][1:], (Variable(Name(p[i+3], o[i+3]), None, (), None, o[i+3]),), (), None, None, o[i+0]+nth(p[i+0], '.', 1)),), Sink(o[i+5]), (Declaration((), 'param', None, None, p[i+7][1:], (Variable(Name(p[i+9], o[i+9]), None, (), None, o[i+9]),), (), None, None, o[i+6]+p[i+6].index('.')), Declaration((), 'param', None, None, p[i+11][1:], (Variable(Name(p[i+13], o[i+13]), None, (), None, o[i+13]),), (), None, None, o[i+10]+p[i+10].index('.')), Declaration((), 'param', None, None, p[i+15][1:], (Variable(Name(p[i+17], o[i+17]), None, (), None, o[i+17]),), (), None, None, o[i+14]+p[i+14].index('.'))), (), o[i+0]+p[i+0].index('.'))


def statement_26(p: Parts, o: Offsets, i: int) -> Any:  # .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _, .param .b32 _, .param .b32 _);
    return CallPrototype((Declaration((), 'param', None, None, p[i+1][1:], (Variable(Name(p[i+3], o[i+3]), None, (), None, o[i+3]),), (), None, None, o[i+0]+nth(p[i+0], '.', 1)),), Sink(o[i+5]), (Declaration((), 'param', None, None, p[i+7][1:], (Variable(Name(p[i+9], o[i+9]), None, (), None, o[i+9]),), (), None, None, o[i+6]+p[i+6].index('.')), Declaration((), 'param', None, None, p[i+11][1:], (Variable(Name(p[i+13], o[i+13]), None, (), None, o[i+13]),), (), None, None, o[i+10]+p[i+10].index('.')), Declaration((), 'param', None, None, p[i+15][1:], (Variable(Name(p[i+17], o[i+17]), None, (), None, o[i+17]),), (), None, None, o[i+14]+p[i+14].index('.')), Declaration((), 'param', None, None, p[i+19][1:], (Variable(Name(p[i+21], o[i+21]), None, (), None, o[i+21]),), (), None, None, o[i+18]+p[i+18].index('.'))), (), o[i+0]+p[i+0].index('.'))


def statement_27(p: Parts, o: Offsets, i: int) -> Any:  # .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _, .param .b32 _, .param .b32 _, .param .b32 _);
    return CallPrototype((Declaration((), 'param', None, None, p[i+1][1:], (Variable(Name(p[i+3], o[i+3]), None, (), None, o[i+3]),), (), None, None, o[i+0]+nth(p[i+0], '.', 1)),), Sink(o[i+5]), (Declaration((), 'param', None, None, p[i+7][1:], (Variable(Name(p[i+9], o[i+9]), None, (), None, o[i+9]),), (), None, None, o[i+6]+p[i+6].index('.')), Declaration((), 'param', None, None, p[i+11][1:], (Variable(Name(p[i+13], o[i+13]), None, (), None, o[i+13]),), (), None, None, o[i+10]+p[i+10].index('.')), Declaration((), 'param', None, None, p[i+15][1:], (Variable(Name(p[i+17], o[i+17]), None, (), None, o[i+17]),), (), None, None, o[i+14]+p[i+14].index('.')), Declaration((), 'param', None, None, p[i+19][1:], (Variable(Name(p[i+21], o[i+21]), None, (), None, o[i+21]),), (), None, None, o[i+18]+p[i+18].index('.')), Declaration((), 'param', None, None, p[i+23][1:], (Variable(Name(p[i+25], o[i+25]), None, (), None, o[i+25]),), (), None, None, o[i+22]+p[i+22].index('.'))), (), o[i+0]+p[i+0].index('.'))


def parameter_0(p: Parts, o: Offsets, i: int) -> Any:  # .param .b32 a
    return Declaration((), 'param', None, None, p[i+1][1:], (Variable(Name(p[i+3], o[i+3]), None, (), None, o[i+3]),), (), None, None, o[i+0]+p[i+0].index('.'))


def parameter_1(p: Parts, o: Offsets, i: int) -> Any:  # .param .b8 a[1]
    return Declaration((), 'param', None, None, p[i+1][1:], (Variable(Name(p[i+3], o[i+3]), None, (Integer(p[i+5], o[i+5]),), None, o[i+3]),), (), None, None, o[i+0]+p[i+0].index('.'))


def parameter_2(p: Parts, o: Offsets, i: int) -> Any:  # .param .align 1 .b8 a[1]
    return Declaration((), 'param', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (Integer(p[i+7], o[i+7]),), None, o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def parameter_3(p: Parts, o: Offsets, i: int) -> Any:  # .reg .b32 a
    return Declaration((), 'reg', None, None, p[i+1][1:], (Variable(Name(p[i+3], o[i+3]), None, (), None, o[i+3]),), (), None, None, o[i+0]+p[i+0].index('.'))


def parameter_4(p: Parts, o: Offsets, i: int) -> Any:  # .param .b64 .ptr a
    return Declaration((), 'param', None, None, p[i+1][1:], (Variable(Name(p[i+3], o[i+3]), None, (), None, o[i+3]),), (), Pointer(None, None, o[i+2]+p[i+2].index('.')), None, o[i+0]+p[i+0].index('.'))


def parameter_5(p: Parts, o: Offsets, i: int) -> Any:  # .param .b64 .ptr .align 1 a
    return Declaration((), 'param', None, None, p[i+1][1:], (Variable(Name(p[i+5], o[i+5]), None, (), None, o[i+5]),), (), Pointer(None, Integer(p[i+3], o[i+3]), o[i+2]+p[i+2].index('.')), None, o[i+0]+p[i+0].index('.'))


def parameter_6(p: Parts, o: Offsets, i: int) -> Any:  # .param .b64 .ptr .global a
    return Declaration((), 'param', None, None, p[i+1][1:], (Variable(Name(p[i+3], o[i+3]), None, (), None, o[i+3]),), (), Pointer('global', None, o[i+2]+p[i+2].index('.')), None, o[i+0]+p[i+0].index('.'))


def parameter_7(p: Parts, o: Offsets, i: int) -> Any:  # .param .b64 .ptr .global .align 1 a
    return Declaration((), 'param', None, None, p[i+1][1:], (Variable(Name(p[i+5], o[i+5]), None, (), None, o[i+5]),), (), Pointer('global', Integer(p[i+3], o[i+3]), o[i+2]+p[i+2].index('.')), None, o[i+0]+p[i+0].index('.'))


def parameter_8(p: Parts, o: Offsets, i: int) -> Any:  # .param .b32 _
    return Declaration((), 'param', None, None, p[i+1][1:], (Variable(Name(p[i+3], o[i+3]), None, (), None, o[i+3]),), (), None, None, o[i+0]+p[i+0].index('.'))


def parameter_9(p: Parts, o: Offsets, i: int) -> Any:  # .param .align 1 .b8 _[1]
    return Declaration((), 'param', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (Integer(p[i+7], o[i+7]),), None, o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def linked_declaration_0(p: Parts, o: Offsets, i: int) -> Any:  # .global .align 1 .b32 a;
    return Declaration((), 'global', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (), None, o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def linked_declaration_1(p: Parts, o: Offsets, i: int) -> Any:  # .global .align 1 .b8 a[1];
    return Declaration((), 'global', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (Integer(p[i+7], o[i+7]),), None, o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def linked_declaration_2(p: Parts, o: Offsets, i: int) -> Any:  # .global .align 1 .b8 a[1] = {};
    return Declaration((), 'global', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (Integer(p[i+7], o[i+7]),), Vector((), o[i+8]+p[i+8].index('{')), o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def linked_declaration_3(p: Parts, o: Offsets, i: int) -> Any:  # .global .align 1 .b32 a = 1;
    return Declaration((), 'global', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (), Integer(p[i+7], o[i+7]), o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def linked_declaration_4(p: Parts, o: Offsets, i: int) -> Any:  # .global .align 1 .b64 a = generic(b);
    return Declaration((), 'global', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (), Apply(Name(p[i+7], o[i+7]), Name(p[i+9], o[i+9]), o[i+7]), o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def linked_declaration_5(p: Parts, o: Offsets, i: int) -> Any:  # .const .align 1 .b32 a;
    return Declaration((), 'const', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (), None, o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def linked_declaration_6(p: Parts, o: Offsets, i: int) -> Any:  # .const .align 1 .b8 a[1];
    return Declaration((), 'const', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (Integer(p[i+7], o[i+7]),), None, o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def linked_declaration_7(p: Parts, o: Offsets, i: int) -> Any:  # .const .align 1 .b8 a[1] = {};
    return Declaration((), 'const', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (Integer(p[i+7], o[i+7]),), Vector((), o[i+8]+p[i+8].index('{')), o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def linked_declaration_8(p: Parts, o: Offsets, i: int) -> Any:  # .const .align 1 .b32 a = 1;
    return Declaration((), 'const', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (), Integer(p[i+7], o[i+7]), o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def linked_declaration_9(p: Parts, o: Offsets, i: int) -> Any:  # .const .align 1 .b64 a = generic(b);
    return Declaration((), 'const', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (), Apply(Name(p[i+7], o[i+7]), Name(p[i+9], o[i+9]), o[i+7]), o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def linked_declaration_10(p: Parts, o: Offsets, i: int) -> Any:  # .visible .global .align 1 .b32 a;
    return Declaration(('visible',), 'global', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (), None, o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def linked_declaration_11(p: Parts, o: Offsets, i: int) -> Any:  # .visible .global .align 1 .b8 a[1];
    return Declaration(('visible',), 'global', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (Integer(p[i+7], o[i+7]),), None, o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def linked_declaration_12(p: Parts, o: Offsets, i: int) -> Any:  # .visible .global .align 1 .b8 a[1] = {};
    return Declaration(('visible',), 'global', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (Integer(p[i+7], o[i+7]),), Vector((), o[i+8]+p[i+8].index('{')), o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def linked_declaration_13(p: Parts, o: Offsets, i: int) -> Any:  # .visible .global .align 1 .b32 a = 1;
    return Declaration(('visible',), 'global', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (), Integer(p[i+7], o[i+7]), o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def linked_declaration_14(p: Parts, o: Offsets, i: int) -> Any:  # .visible .global .align 1 .b64 a = generic(b);
    return Declaration(('visible',), 'global', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (), Apply(Name(p[i+7], o[i+7]), Name(p[i+9], o[i+9]), o[i+7]), o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def linked_declaration_15(p: Parts, o: Offsets, i: int) -> Any:  # .visible .const .align 1 .b32 a;
    return Declaration(('visible',), 'const', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (), None, o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def linked_declaration_16(p: Parts, o: Offsets, i: int) -> Any:  # .visible .const .align 1 .b8 a[1];
    return Declaration(('visible',), 'const', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (Integer(p[i+7], o[i+7]),), None, o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def linked_declaration_17(p: Parts, o: Offsets, i: int) -> Any:  # .visible .const .align 1 .b8 a[1] = {};
    return Declaration(('visible',), 'const', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (Integer(p[i+7], o[i+7]),), Vector((), o[i+8]+p[i+8].index('{')), o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def linked_declaration_18(p: Parts, o: Offsets, i: int) -> Any:  # .visible .const .align 1 .b32 a = 1;
    return Declaration(('visible',), 'const', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (), Integer(p[i+7], o[i+7]), o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def linked_declaration_19(p: Parts, o: Offsets, i: int) -> Any:  # .visible .const .align 1 .b64 a = generic(b);
    return Declaration(('visible',), 'const', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (), Apply(Name(p[i+7], o[i+7]), Name(p[i+9], o[i+9]), o[i+7]), o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def linked_declaration_20(p: Parts, o: Offsets, i: int) -> Any:  # .weak .global .align 1 .b32 a;
    return Declaration(('weak',), 'global', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (), None, o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def linked_declaration_21(p: Parts, o: Offsets, i: int) -> Any:  # .weak .global .align 1 .b8 a[1];
    return Declaration(('weak',), 'global', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (Integer(p[i+7], o[i+7]),), None, o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def linked_declaration_22(p: Parts, o: Offsets, i: int) -> Any:  # .weak .global .align 1 .b8 a[1] = {};
    return Declaration(('weak',), 'global', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (Integer(p[i+7], o[i+7]),), Vector((), o[i+8]+p[i+8].index('{')), o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def linked_declaration_23(p: Parts, o: Offsets, i: int) -> Any:  # .weak .global .align 1 .b32 a = 1;
    return Declaration(('weak',), 'global', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (), Integer(p[i+7], o[i+7]), o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def linked_declaration_24(p: Parts, o: Offsets, i: int) -> Any:  # .weak .global .align 1 .b64 a = generic(b);
    return Declaration(('weak',), 'global', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (), Apply(Name(p[i+7], o[i+7]), Name(p[i+9], o[i+9]), o[i+7]), o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def linked_declaration_25(p: Parts, o: Offsets, i: int) -> Any:  # .weak .const .align 1 .b32 a;
    return Declaration(('weak',), 'const', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (), None, o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def linked_declaration_26(p: Parts, o: Offsets, i: int) -> Any:  # .weak .const .align 1 .b8 a[1];
    return Declaration(('weak',), 'const', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (Integer(p[i+7], o[i+7]),), None, o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def linked_declaration_27(p: Parts, o: Offsets, i: int) -> Any:  # .weak .const .align 1 .b8 a[1] = {};
    return Declaration(('weak',), 'const', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (Integer(p[i+7], o[i+7]),), Vector((), o[i+8]+p[i+8].index('{')), o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def linked_declaration_28(p: Parts, o: Offsets, i: int) -> Any:  # .weak .const .align 1 .b32 a = 1;
    return Declaration(('weak',), 'const', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (), Integer(p[i+7], o[i+7]), o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def linked_declaration_29(p: Parts, o: Offsets, i: int) -> Any:  # .weak .const .align 1 .b64 a = generic(b);
    return Declaration(('weak',), 'const', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (), Apply(Name(p[i+7], o[i+7]), Name(p[i+9], o[i+9]), o[i+7]), o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def linked_declaration_30(p: Parts, o: Offsets, i: int) -> Any:  # .global .b32 a;
    return Declaration((), 'global', None, None, p[i+1][1:], (Variable(Name(p[i+3], o[i+3]), None, (), None, o[i+3]),), (), None, None, o[i+0]+p[i+0].index('.'))


def linked_declaration_31(p: Parts, o: Offsets, i: int) -> Any:  # .global .align 1 .b64 a = b;
    return Declaration((), 'global', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (), Name(p[i+7], o[i+7]), o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def linked_declaration_32(p: Parts, o: Offsets, i: int) -> Any:  # .common .global .align 1 .b32 a;
    return Declaration(('common',), 'global', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (), None, o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def linked_declaration_33(p: Parts, o: Offsets, i: int) -> Any:  # .extern .global .align 1 .b32 a;
    return Declaration(('extern',), 'global', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (), None, o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def linked_declaration_34(p: Parts, o: Offsets, i: int) -> Any:  # .extern .global .align 1 .b8 a[1];
    return Declaration(('extern',), 'global', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (Integer(p[i+7], o[i+7]),), None, o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def linked_declaration_35(p: Parts, o: Offsets, i: int) -> Any:  # .extern .shared .align 1 .b8 a[];
    return Declaration(('extern',), 'shared', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (None,), None, o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def linked_declaration_36(p: Parts, o: Offsets, i: int) -> Any:  # .shared .align 1 .b8 a[1];
    return Declaration((), 'shared', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (Integer(p[i+7], o[i+7]),), None, o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def linked_declaration_37(p: Parts, o: Offsets, i: int) -> Any:  # .const .b32 a = 1;
    return Declaration((), 'const', None, None, p[i+1][1:], (Variable(Name(p[i+3], o[i+3]), None, (), Integer(p[i+5], o[i+5]), o[i+3]),), (), None, None, o[i+0]+p[i+0].index('.'))


def linked_declaration_38(p: Parts, o: Offsets, i: int) -> Any:  # .shared .b32 a;
    return Declaration((), 'shared', None, None, p[i+1][1:], (Variable(Name(p[i+3], o[i+3]), None, (), None, o[i+3]),), (), None, None, o[i+0]+p[i+0].index('.'))


def linked_declaration_39(p: Parts, o: Offsets, i: int) -> Any:  # .shared .align 1 .b32 a;
    return Declaration((), 'shared', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (), None, o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def linked_declaration_40(p: Parts, o: Offsets, i: int) -> Any:  # .visible .shared .align 1 .b8 a[1];
    return Declaration(('visible',), 'shared', Integer(p[i+1], o[i+1]), None, p[i+3][1:], (Variable(Name(p[i+5], o[i+5]), None, (Integer(p[i+7], o[i+7]),), None, o[i+5]),), (), None, None, o[i+0]+p[i+0].index('.'))


def head_directives_0(p: Parts, o: Offsets, i: int) -> Any:  # .maxntid 1
    return (FunctionDirective('maxntid', (Integer(p[i+1], o[i+1]),), o[i+0]+p[i+0].index('.')),)


def head_directives_1(p: Parts, o: Offsets, i: int) -> Any:  # .maxntid 1,1,1
    return (FunctionDirective('maxntid', (Integer(p[i+1], o[i+1]), Integer(p[i+3], o[i+3]), Integer(p[i+5], o[i+5])), o[i+0]+p[i+0].index('.')),)


def head_directives_2(p: Parts, o: Offsets, i: int) -> Any:  # .reqntid 1
    return (FunctionDirective('reqntid', (Integer(p[i+1], o[i+1]),), o[i+0]+p[i+0].index('.')),)


def head_directives_3(p: Parts, o: Offsets, i: int) -> Any:  # .reqntid 1,1,1
    return (FunctionDirective('reqntid', (Integer(p[i+1], o[i+1]), Integer(p[i+3], o[i+3]), Integer(p[i+5], o[i+5])), o[i+0]+p[i+0].index('.')),)


def head_directives_4(p: Parts, o: Offsets, i: int) -> Any:  # .noreturn
    return (FunctionDirective('noreturn', (), o[i+0]+p[i+0].index('.')),)


def head_directives_5(p: Parts, o: Offsets, i: int) -> Any:  # .minnctapersm 1
    return (FunctionDirective('minnctapersm', (Integer(p[i+1], o[i+1]),), o[i+0]+p[i+0].index('.')),)


def head_directives_6(p: Parts, o: Offsets, i: int) -> Any:  # .maxnreg 1
    return (FunctionDirective('maxnreg', (Integer(p[i+1], o[i+1]),), o[i+0]+p[i+0].index('.')),)


def head_directives_7(p: Parts, o: Offsets, i: int) -> Any:  # .reqnctapercluster 1
    return (FunctionDirective('reqnctapercluster', (Integer(p[i+1], o[i+1]),), o[i+0]+p[i+0].index('.')),)


def head_directives_8(p: Parts, o: Offsets, i: int) -> Any:  # .reqnctapercluster 1,1,1
    return (FunctionDirective('reqnctapercluster', (Integer(p[i+1], o[i+1]), Integer(p[i+3], o[i+3]), Integer(p[i+5], o[i+5])), o[i+0]+p[i+0].index('.')),)


def head_directives_9(p: Parts, o: Offsets, i: int) -> Any:  # .explicitcluster
    return (FunctionDirective('explicitcluster', (), o[i+0]+p[i+0].index('.')),)


def head_directives_10(p: Parts, o: Offsets, i: int) -> Any:  # .maxclusterrank 1
    return (FunctionDirective('maxclusterrank', (Integer(p[i+1], o[i+1]),), o[i+0]+p[i+0].index('.')),)


def item_0(p: Parts, o: Offsets, i: int) -> Any:  # .version 1.0
    return Version(p[i+1], o[i+0]+p[i+0].index('.'))


def item_1(p: Parts, o: Offsets, i: int) -> Any:  # .target a
    return Target((p[i+1],), o[i+0]+p[i+0].index('.'))


def item_2(p: Parts, o: Offsets, i: int) -> Any:  # .target a, b
    return Target((p[i+1], p[i+3],), o[i+0]+p[i+0].index('.'))


def item_3(p: Parts, o: Offsets, i: int) -> Any:  # .address_size 1
    return AddressSize(Integer(p[i+1], o[i+1]), o[i+0]+p[i+0].index('.'))


def item_4(p: Parts, o: Offsets, i: int) -> Any:  # .file 1 "a"
    return File(Integer(p[i+1], o[i+1]), String(p[i+3], o[i+3]), None, None, o[i+0]+p[i+0].index('.'))


def item_5(p: Parts, o: Offsets, i: int) -> Any:  # .file 1 "a", 1, 1
    return File(Integer(p[i+1], o[i+1]), String(p[i+3], o[i+3]), Integer(p[i+5], o[i+5]), Integer(p[i+7], o[i+7]), o[i+0]+p[i+0].index('.'))


def item_6(p: Parts, o: Offsets, i: int) -> Any:  # .pragma "a";
    return Pragma((String(p[i+1], o[i+1]),), o[i+0]+p[i+0].index('.'))


# start symbol -> shape -> what makes a tree of its parts, their offsets and the first one's index
SHAPES: dict[str, dict[tuple[str, ...], Callable[[Parts, Offsets, int], Any]]] = {
    'operands': {
        ('', 'n', ''): operands_0,
        ('', '_', ''): operands_1,
        ('', 'i', ''): operands_2,
        ('-', 'i', ''): operands_3,
        ('', 'v', ''): operands_4,
        ('-', 'v', ''): operands_5,
        ('', 'f', ''): operands_6,
        ('', 'x', ''): operands_7,
        ('', 'n.x', ''): operands_8,
        ('', 'n.y', ''): operands_9,
        ('', 'n.z', ''): operands_10,
        ('', 'n.w', ''): operands_11,
        ('!', 'n', ''): operands_12,
        ('', 'n', '[', 'i', ']'): operands_13,
        ('', 'n', '+', 'i', ''): operands_14,
        ('', 'W', ''): operands_15,
        ('', 'n', '|', 'n', ''): operands_16,
        ('', '_', '|', 'n', ''): operands_17,
        ('', 'n', '|', '_', ''): operands_18,
        ('-', 'n', ''): operands_19,
        ('', 'n.b0', ''): operands_20,
        ('', 'n.b1', ''): operands_21,
        ('', 'n.b2', ''): operands_22,
        ('', 'n.b3', ''): operands_23,
        ('', 'n.h0', ''): operands_24,
        ('', 'n.h1', ''): operands_25,
        ('[', 'n', ']'): operands_26,
        ('[', 'n', '+', 'i', ']'): operands_27,
        ('[', 'n', '+-', 'i', ']'): operands_28,
        ('[', 'n', ' + ', 'i', ']'): operands_29,
        ('[', 'i', ']'): operands_30,
        ('[', 'n', ',{', 'n', '}]'): operands_31,
        ('[', 'n', ',{', 'n', ',', 'n', '}]'): operands_32,
        ('[', 'n', ',{', 'n', ',', 'n', ',', 'n', '}]'): operands_33,
        ('[', 'n', ',{', 'n', ',', 'n', ',', 'n', ',', 'n', '}]'): operands_34,
        ('[', 'n', ',{', 'n', ',', 'n', ',', 'n', ',', 'n', ',', 'n', '}]'): operands_35,
        ('[', 'n', '+', 'i', ',{', 'n', ',', 'n', '}]'): operands_36,
        ('[', 'n', ',', 'n', ',{', 'n', ',', 'n', '}]'): operands_37,
        ('[', 'n', ',', 'n', ']'): operands_38,
        ('()',): operands_39,
        ('(', 'n', ')'): operands_40,
        ('(', '_', ')'): operands_41,
        ('(', 'n', ',', 'n', ')'): operands_42,
        ('(', 'n', ',', 'n', ',', 'n', ')'): operands_43,
        ('(', 'n', ',', 'n', ',', 'n', ',', 'n', ')'): operands_44,
        ('(', 'n', ',', 'n', ',', 'n', ',', 'n', ',', 'n', ')'): operands_45,
        ('(', 'n', ',', 'n', ',', 'n', ',', 'n', ',', 'n', ',', 'n', ')'): operands_46,
    },
    'statement': {
        ('.reg ', 'T', ' ', 'n', ';'): statement_0,
        ('.reg ', 'T', ' ', 'n', '<', 'i', '>;'): statement_1,
        ('.reg ', 'T', ' ', 'n', ',', 'n', ';'): statement_2,
        ('.reg ', 'T', ' ', 'n', ',', 'n', ',', 'n', ';'): statement_3,
        ('.reg ', 'T', ' ', 'n', ',', 'n', ',', 'n', ',', 'n', ';'): statement_4,
        ('.param ', 'T', ' ', 'n', ';'): statement_5,
        ('.param ', 'T', ' ', 'n', '[', 'i', '];'): statement_6,
        ('.param .align ', 'i', ' ', 'T', ' ', 'n', '[', 'i', '];'): statement_7,
        ('.local .align ', 'i', ' ', 'T', ' ', 'n', '[', 'i', '];'): statement_8,
        ('.shared .align ', 'i', ' ', 'T', ' ', 'n', '[', 'i', '];'): statement_9,
        ('.shared ', 'T', ' ', 'n', ';'): statement_10,
        ('.shared .align ', 'i', ' ', 'T', ' ', 'n', ';'): statement_11,
        ('.loc ', 'i', ' ', 'i', ' ', 'i', ''): statement_12,
        ('.pragma ', 's', ';'): statement_13,
        ('.loc ', 'i', ' ', 'i', ' ', 'i', ',', 'F', ' ', 'n', ',', 'I', ' ', 'i', ' ', 'i', ' ', 'i', ''): statement_14,
        ('.loc ', 'i', ' ', 'i', ' ', 'i', ',', 'F', ' ', 'n', '+', 'i', ',', 'I', ' ', 'i', ' ', 'i', ' ', 'i', ''): statement_15,
        ('.callprototype ', '_', '();'): statement_16,
        ('.callprototype ', '_', '(.param ', 'T', ' ', '_', ');'): statement_17,
        ('.callprototype ', '_', '(.param ', 'T', ' ', '_', ',.param ', 'T', ' ', '_', ');'): statement_18,
        ('.callprototype ', '_', '(.param ', 'T', ' ', '_', ',.param ', 'T', ' ', '_', ',.param ', 'T', ' ', '_', ');'): statement_19,
        ('.callprototype ', '_', '(.param ', 'T', ' ', '_', ',.param ', 'T', ' ', '_', ',.param ', 'T', ' ', '_', ',.param ', 'T', ' ', '_', ');'): statement_20,
        ('.callprototype ', '_', '(.param ', 'T', ' ', '_', ',.param ', 'T', ' ', '_', ',.param ', 'T', ' ', '_', ',.param ', 'T', ' ', '_', ',.param ', 'T', ' ', '_', ');'): statement_21,
        ('.callprototype(.param ', 'T', ' ', '_', ')', '_', '();'): statement_22,
        ('.callprototype(.param ', 'T', ' ', '_', ')', '_', '(.param ', 'T', ' ', '_', ');'): statement_23,
        ('.callprototype(.param ', 'T', ' ', '_', ')', '_', '(.param ', 'T', ' ', '_', ',.param ', 'T', ' ', '_', ');'): statement_24,
        ('.callprototype(.param ', 'T', ' ', '_', ')', '_', '(.param ', 'T', ' ', '_', ',.param ', 'T', ' ', '_', ',.param ', 'T', ' ', '_', ');'): statement_25,
        ('.callprototype(.param ', 'T', ' ', '_', ')', '_', '(.param ', 'T', ' ', '_', ',.param ', 'T', ' ', '_', ',.param ', 'T', ' ', '_', ',.param ', 'T', ' ', '_', ');'): statement_26,
        ('.callprototype(.param ', 'T', ' ', '_', ')', '_', '(.param ', 'T', ' ', '_', ',.param ', 'T', ' ', '_', ',.param ', 'T', ' ', '_', ',.param ', 'T', ' ', '_', ',.param ', 'T', ' ', '_', ');'): statement_27,
    },
    'parameter': {
        ('.param ', 'T', ' ', 'n', ''): parameter_0,
        ('.param ', 'T', ' ', 'n', '[', 'i', ']'): parameter_1,
        ('.param .align ', 'i', ' ', 'T', ' ', 'n', '[', 'i', ']'): parameter_2,
        ('.reg ', 'T', ' ', 'n', ''): parameter_3,
        ('.param ', 'T', ' .ptr ', 'n', ''): parameter_4,
        ('.param ', 'T', ' .ptr .align ', 'i', ' ', 'n', ''): parameter_5,
        ('.param ', 'T', ' .ptr .global ', 'n', ''): parameter_6,
        ('.param ', 'T', ' .ptr .global .align ', 'i', ' ', 'n', ''): parameter_7,
        ('.param ', 'T', ' ', '_', ''): parameter_8,
        ('.param .align ', 'i', ' ', 'T', ' ', '_', '[', 'i', ']'): parameter_9,
    },
    'linked_declaration': {
        ('.global .align ', 'i', ' ', 'T', ' ', 'n', ';'): linked_declaration_0,
        ('.global .align ', 'i', ' ', 'T', ' ', 'n', '[', 'i', '];'): linked_declaration_1,
        ('.global .align ', 'i', ' ', 'T', ' ', 'n', '[', 'i', ']={};'): linked_declaration_2,
        ('.global .align ', 'i', ' ', 'T', ' ', 'n', ' = ', 'i', ';'): linked_declaration_3,
        ('.global .align ', 'i', ' ', 'T', ' ', 'n', ' = ', 'G', '(', 'n', ');'): linked_declaration_4,
        ('.const .align ', 'i', ' ', 'T', ' ', 'n', ';'): linked_declaration_5,
        ('.const .align ', 'i', ' ', 'T', ' ', 'n', '[', 'i', '];'): linked_declaration_6,
        ('.const .align ', 'i', ' ', 'T', ' ', 'n', '[', 'i', ']={};'): linked_declaration_7,
        ('.const .align ', 'i', ' ', 'T', ' ', 'n', ' = ', 'i', ';'): linked_declaration_8,
        ('.const .align ', 'i', ' ', 'T', ' ', 'n', ' = ', 'G', '(', 'n', ');'): linked_declaration_9,
        ('.visible .global .align ', 'i', ' ', 'T', ' ', 'n', ';'): linked_declaration_10,
        ('.visible .global .align ', 'i', ' ', 'T', ' ', 'n', '[', 'i', '];'): linked_declaration_11,
        ('.visible .global .align ', 'i', ' ', 'T', ' ', 'n', '[', 'i', ']={};'): linked_declaration_12,
        ('.visible .global .align ', 'i', ' ', 'T', ' ', 'n', ' = ', 'i', ';'): linked_declaration_13,
        ('.visible .global .align ', 'i', ' ', 'T', ' ', 'n', ' = ', 'G', '(', 'n', ');'): linked_declaration_14,
        ('.visible .const .align ', 'i', ' ', 'T', ' ', 'n', ';'): linked_declaration_15,
        ('.visible .const .align ', 'i', ' ', 'T', ' ', 'n', '[', 'i', '];'): linked_declaration_16,
        ('.visible .const .align ', 'i', ' ', 'T', ' ', 'n', '[', 'i', ']={};'): linked_declaration_17,
        ('.visible .const .align ', 'i', ' ', 'T', ' ', 'n', ' = ', 'i', ';'): linked_declaration_18,
        ('.visible .const .align ', 'i', ' ', 'T', ' ', 'n', ' = ', 'G', '(', 'n', ');'): linked_declaration_19,
        ('.weak .global .align ', 'i', ' ', 'T', ' ', 'n', ';'): linked_declaration_20,
        ('.weak .global .align ', 'i', ' ', 'T', ' ', 'n', '[', 'i', '];'): linked_declaration_21,
        ('.weak .global .align ', 'i', ' ', 'T', ' ', 'n', '[', 'i', ']={};'): linked_declaration_22,
        ('.weak .global .align ', 'i', ' ', 'T', ' ', 'n', ' = ', 'i', ';'): linked_declaration_23,
        ('.weak .global .align ', 'i', ' ', 'T', ' ', 'n', ' = ', 'G', '(', 'n', ');'): linked_declaration_24,
        ('.weak .const .align ', 'i', ' ', 'T', ' ', 'n', ';'): linked_declaration_25,
        ('.weak .const .align ', 'i', ' ', 'T', ' ', 'n', '[', 'i', '];'): linked_declaration_26,
        ('.weak .const .align ', 'i', ' ', 'T', ' ', 'n', '[', 'i', ']={};'): linked_declaration_27,
        ('.weak .const .align ', 'i', ' ', 'T', ' ', 'n', ' = ', 'i', ';'): linked_declaration_28,
        ('.weak .const .align ', 'i', ' ', 'T', ' ', 'n', ' = ', 'G', '(', 'n', ');'): linked_declaration_29,
        ('.global ', 'T', ' ', 'n', ';'): linked_declaration_30,
        ('.global .align ', 'i', ' ', 'T', ' ', 'n', ' = ', 'n', ';'): linked_declaration_31,
        ('.common .global .align ', 'i', ' ', 'T', ' ', 'n', ';'): linked_declaration_32,
        ('.extern .global .align ', 'i', ' ', 'T', ' ', 'n', ';'): linked_declaration_33,
        ('.extern .global .align ', 'i', ' ', 'T', ' ', 'n', '[', 'i', '];'): linked_declaration_34,
        ('.extern .shared .align ', 'i', ' ', 'T', ' ', 'n', '[];'): linked_declaration_35,
        ('.shared .align ', 'i', ' ', 'T', ' ', 'n', '[', 'i', '];'): linked_declaration_36,
        ('.const ', 'T', ' ', 'n', ' = ', 'i', ';'): linked_declaration_37,
        ('.shared ', 'T', ' ', 'n', ';'): linked_declaration_38,
        ('.shared .align ', 'i', ' ', 'T', ' ', 'n', ';'): linked_declaration_39,
        ('.visible .shared .align ', 'i', ' ', 'T', ' ', 'n', '[', 'i', '];'): linked_declaration_40,
    },
    'head_directives': {
        ('.maxntid ', 'i', ''): head_directives_0,
        ('.maxntid ', 'i', ',', 'i', ',', 'i', ''): head_directives_1,
        ('.reqntid ', 'i', ''): head_directives_2,
        ('.reqntid ', 'i', ',', 'i', ',', 'i', ''): head_directives_3,
        ('.noreturn',): head_directives_4,
        ('.minnctapersm ', 'i', ''): head_directives_5,
        ('.maxnreg ', 'i', ''): head_directives_6,
        ('.reqnctapercluster ', 'i', ''): head_directives_7,
        ('.reqnctapercluster ', 'i', ',', 'i', ',', 'i', ''): head_directives_8,
        ('.explicitcluster',): head_directives_9,
        ('.maxclusterrank ', 'i', ''): head_directives_10,
    },
    'item': {
        ('.version ', 'v', ''): item_0,
        ('.target ', 'n', ''): item_1,
        ('.target ', 'n', ',', 'n', ''): item_2,
        ('.address_size ', 'i', ''): item_3,
        ('.file ', 'i', ' ', 's', ''): item_4,
        ('.file ', 'i', ' ', 's', ',', 'i', ',', 'i', ''): item_5,
        ('.pragma ', 's', ';'): item_6,
    },
}
