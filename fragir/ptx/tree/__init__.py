"""The syntax tree of PTX: what `fragir.ptx.parse` returns and all that `fragir.ptx.write` sees.

Every node is a frozen, slotted dataclass (`fragir.ptx.node`). A string in a node is the text of one
token of the source, without the leading dot where PTX writes one (`Instruction.opcode` of
`ld.param.u64` is `("ld", "param", "u64")`, `Declaration.type` of `.reg .b32` is `"b32"`). Names of
registers, variables, labels, parameters and functions are `Name` nodes wherever they stand, so that
a walk over `Name` finds every use and every definition.

`at` is the offset in the source text of the node's first token, -1 for a node that was not read.
It takes no part in comparison and hashing: two trees are equal if they say the same. A line and a
column are computed from it when asked for: `module.source.place(node.at)`.

Section numbers are those of the PTX ISA 9.2.
"""

from fragir.ptx.tree.module import AddressSize as AddressSize
from fragir.ptx.tree.module import Alias as Alias
from fragir.ptx.tree.module import Dwarf as Dwarf
from fragir.ptx.tree.module import DwarfFlag as DwarfFlag
from fragir.ptx.tree.module import File as File
from fragir.ptx.tree.module import Item as Item
from fragir.ptx.tree.module import Module as Module
from fragir.ptx.tree.module import Node as Node
from fragir.ptx.tree.module import Section as Section
from fragir.ptx.tree.module import SectionData as SectionData
from fragir.ptx.tree.module import Source as Source
from fragir.ptx.tree.module import Target as Target
from fragir.ptx.tree.module import Version as Version
from fragir.ptx.tree.operands import OPERANDS as OPERANDS
from fragir.ptx.tree.operands import Address as Address
from fragir.ptx.tree.operands import Apply as Apply
from fragir.ptx.tree.operands import Binary as Binary
from fragir.ptx.tree.operands import Cast as Cast
from fragir.ptx.tree.operands import Component as Component
from fragir.ptx.tree.operands import Conditional as Conditional
from fragir.ptx.tree.operands import Float as Float
from fragir.ptx.tree.operands import Index as Index
from fragir.ptx.tree.operands import Integer as Integer
from fragir.ptx.tree.operands import Name as Name
from fragir.ptx.tree.operands import Operand as Operand
from fragir.ptx.tree.operands import Pair as Pair
from fragir.ptx.tree.operands import Parens as Parens
from fragir.ptx.tree.operands import Resident as Resident
from fragir.ptx.tree.operands import Setting as Setting
from fragir.ptx.tree.operands import Sink as Sink
from fragir.ptx.tree.operands import String as String
from fragir.ptx.tree.operands import Unary as Unary
from fragir.ptx.tree.operands import Vector as Vector
from fragir.ptx.tree.statements import Attribute as Attribute
from fragir.ptx.tree.statements import Block as Block
from fragir.ptx.tree.statements import BranchTargets as BranchTargets
from fragir.ptx.tree.statements import CallPrototype as CallPrototype
from fragir.ptx.tree.statements import CallTargets as CallTargets
from fragir.ptx.tree.statements import Comment as Comment
from fragir.ptx.tree.statements import Declaration as Declaration
from fragir.ptx.tree.statements import Function as Function
from fragir.ptx.tree.statements import FunctionDirective as FunctionDirective
from fragir.ptx.tree.statements import Guard as Guard
from fragir.ptx.tree.statements import Instruction as Instruction
from fragir.ptx.tree.statements import Label as Label
from fragir.ptx.tree.statements import Loc as Loc
from fragir.ptx.tree.statements import Pointer as Pointer
from fragir.ptx.tree.statements import Pragma as Pragma
from fragir.ptx.tree.statements import SectionName as SectionName
from fragir.ptx.tree.statements import Statement as Statement
from fragir.ptx.tree.statements import UnreadBlock as UnreadBlock
from fragir.ptx.tree.statements import Variable as Variable
