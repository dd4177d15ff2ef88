"""`frag.roles`: warps that do different things, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation, opt_prop_def, prop_def, traits_def, var_region_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import NoTerminator, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.definition import op_definition
from fragir.dialects.frag.rings import RingType, SlotType
from fragir.dialects.frag.types import held_tile
from fragir.dialects.shorthands import integers
from fragir.ptx.machines import THREADS

GROUP = 128
"""Threads of a warpgroup, which setmaxnreg counts by (PTX ISA 9.2, section 9.7.19.5)."""
REGISTERS = 65536
"""Of a multiprocessor, which one block may have all of (CUDA C++ Programming Guide, limits)."""
FEWEST, MOST, UNIT = 24, 256, 8
"""What setmaxnreg takes: multiples of 8 from 24 to 256 registers a thread."""


class Role(NamedTuple):
    """What some warps of a block do."""

    name: str
    body: Region
    warps: tuple[int, int] | None = None
    """Warps along the rows and columns of tiles, for mma.sync and everything else."""
    warpgroups: tuple[int, int] | None = None
    """The same in warpgroups, for wgmma."""
    registers: int | None = None
    """Registers a thread asks for when the role begins; by default what the lowering thinks fit."""

    @property
    def threads(self) -> int:
        """Its threads, those included that only fill up a warpgroup where registers are moved."""
        if self.warpgroups is not None:
            return GROUP * self.warpgroups[0] * self.warpgroups[1]
        assert self.warps is not None
        return 32 * self.warps[0] * self.warps[1]


@op_definition
class RolesOp(IRDLOperation):
    """Divides the warps of a block: each region is run by the warps of its role, all side by side.

    `frag.roles "load" warps [1, 1] registers 24 {...}, "multiply" warpgroups [2, 1] {...}`. The
    numbers say how a role's tiles lie over its warps or warpgroups, like `frag.warps` and
    `frag.warpgroups` of a function without roles. The block has the threads of all roles, in their
    order. Within a role, barriers, copies and conversions are those of its threads. Roles meet in
    rings (`frag.ring`); tiles and slots of one are unknown to the others. `registers` are moved
    between warpgroups at the beginning (setmaxnreg; PTX ISA 9.2, section 9.7.19.5): then every
    role has whole warpgroups, of which idle warps end at once. With `packed` ahead of the roles,
    those of warps stand beside each other in a warpgroup, and registers stay as they are.
    """

    name = "frag.roles"
    names = prop_def(ArrayAttr[StringAttr])
    shapes = prop_def(DenseArrayBase.constr(i64))
    """For each role, warps along rows and columns."""
    groups = prop_def(DenseArrayBase.constr(i64))
    """For each role, whether these are warpgroups: 1 or 0."""
    registers = prop_def(DenseArrayBase.constr(i64))
    """For each role, 0 where it is not said."""
    packed = opt_prop_def(UnitAttr)
    bodies = var_region_def("single_block")
    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())

    def __init__(self, roles: Sequence[Role], *, packed: bool = False):
        shapes = [n for role in roles for n in (role.warpgroups or role.warps or (1, 1))]
        super().__init__(
            properties={
                "names": ArrayAttr([StringAttr(role.name) for role in roles]),
                "shapes": DenseArrayBase.from_list(i64, shapes),
                "groups": DenseArrayBase.from_list(
                    i64, [int(role.warpgroups is not None) for role in roles]
                ),
                "registers": DenseArrayBase.from_list(i64, [role.registers or 0 for role in roles]),
                "packed": UnitAttr() if packed else None,
            },
            regions=[[role.body for role in roles]],
        )

    def roles(self) -> list[Role]:
        """The roles in order."""
        shapes, registers = integers(self.shapes), integers(self.registers)
        found: list[Role] = []
        for at, (name, group, body) in enumerate(
            zip(self.names, integers(self.groups), self.bodies, strict=True)
        ):
            shape = shapes[2 * at], shapes[2 * at + 1]
            found.append(
                Role(
                    name.data,
                    body,
                    None if group else shape,
                    shape if group else None,
                    registers[at] or None,
                )
            )
        return found

    @property
    def moves_registers(self) -> bool:
        """Whether a role asks for registers."""
        return any(integers(self.registers))

    @classmethod
    def parse(cls, parser: Parser) -> RolesOp:
        packed = parser.parse_optional_keyword("packed") is not None
        roles = parser.parse_comma_separated_list(parser.Delimiter.NONE, lambda: _parse(parser))
        return cls(roles, packed=packed)

    def print(self, printer: Printer) -> None:
        if self.packed is not None:
            printer.print_string(" packed")
        for at, role in enumerate(self.roles()):
            printer.print_string(", " if at else " ")
            printer.print_string_literal(role.name)
            shape = role.warpgroups or role.warps
            kind = "warps" if role.warpgroups is None else "warpgroups"
            printer.print_string(f" {kind} {list(shape or ())} ")
            if role.registers is not None:
                printer.print_string(f"registers {role.registers} ")
            printer.print_region(role.body, print_empty_block=False)

    def verify_(self) -> None:
        count = len(self.bodies)
        given = (len(self.names), len(self.shapes) // 2, len(self.groups), len(self.registers))
        if not count or any(number != count for number in given):
            raise VerifyException("frag.roles: give name, warps and a region for every role")
        roles = self.roles()
        names = [role.name for role in roles]
        for name in names:
            if names.count(name) > 1:
                raise VerifyException(f"frag.roles: two roles are called {name!r}")
        for role in roles:
            if min(role.warpgroups or role.warps or (0, 0)) < 1:
                raise VerifyException(f"frag.roles: {role.name!r} has no warps; write warps [1, 1]")
        self._check_threads(roles)
        if self.packed is not None and self.moves_registers:
            raise VerifyException(
                "frag.roles: packed roles share warpgroups, between which alone registers move; "
                "write `packed` or `registers`"
            )
        self._check_registers(roles)
        parent = self.parent_op()
        if parent is not None and parent.name != "func.func":
            raise VerifyException(
                f"frag.roles stands inside of {parent.name}; write it at the top level of the "
                "function, loops within the roles"
            )
        siblings = () if self.parent is None else self.parent.ops
        if any(isinstance(op, RolesOp) and op is not self for op in siblings):
            raise VerifyException("frag.roles: a kernel divides its warps once")
        for role in roles:
            _check_outside(role, self)

    def _check_threads(self, roles: Sequence[Role]) -> None:
        threads = self.threads()
        if threads > THREADS:
            raise VerifyException(
                f"frag.roles: {threads} threads a block; the machine takes {THREADS} at most"
            )

    def threads(self) -> int:
        """The threads of the block."""
        return sum(self.extents())

    def extents(self) -> list[int]:
        """The threads of each role, with those that only fill up a warpgroup.

        wgmma and setmaxnreg take whole warpgroups, which begin at multiples of four warps.
        """
        if self.packed is not None:
            return self._packed_extents()
        whole = self.moves_registers or any(integers(self.groups))
        unit = GROUP if whole else 32
        return [-(-role.threads // unit) * unit for role in self.roles()]

    def _packed_extents(self) -> list[int]:
        """The same where a warpgroup is only filled up ahead of a role of warpgroups."""
        found: list[int] = []
        for role in self.roles():
            start = sum(found)
            if role.warpgroups is not None and start % GROUP:
                found[-1] += GROUP - start % GROUP
            found.append(role.threads)
        return found

    def _check_registers(self, roles: Sequence[Role]) -> None:
        for role in roles:
            number = role.registers
            if number is None:
                continue
            if not FEWEST <= number <= MOST or number % UNIT:
                raise VerifyException(
                    f"frag.roles: {role.name!r} asks for {number} registers; write a multiple of "
                    f"{UNIT} from {FEWEST} to {MOST}"
                )
        # what a role that says nothing needs at least counts too
        total = sum(
            (role.registers or FEWEST) * threads
            for role, threads in zip(roles, self.extents(), strict=True)
        )
        threads = self.threads()
        each = REGISTERS // threads // UNIT * UNIT
        if self.moves_registers and total > each * threads:
            raise VerifyException(
                f"frag.roles: {total} registers in all; {threads} threads have {each * threads} "
                f"of a multiprocessor's {REGISTERS}, {each} each"
            )


def _parse(parser: Parser) -> Role:
    """One role."""
    name = parser.parse_str_literal("the role's name")
    groups = parser.parse_optional_keyword("warpgroups") is not None
    if not groups:
        parser.parse_keyword("warps")
    place = parser.pos
    shape = parser.parse_comma_separated_list(
        parser.Delimiter.SQUARE, lambda: parser.parse_integer(allow_boolean=False)
    )
    if len(shape) != 2:
        parser.raise_error("write how many along rows and along columns: [2, 1]", place)
    pair = shape[0], shape[1]
    registers = None
    if parser.parse_optional_keyword("registers"):
        registers = parser.parse_integer(allow_boolean=False)
    body = parser.parse_region()
    if not body.blocks:  # an empty one
        body.add_block(Block())
    return Role(name, body, None if groups else pair, pair if groups else None, registers)


def _check_outside(role: Role, roles: RolesOp) -> None:
    """VerifyException where a role uses a tile or a slot of another one, or of before, or a ring
    that is also taken from outside of roles.
    """
    for op in role.body.walk():
        for value in op.operands:
            if not _is_outside(value, roles):
                continue
            if _belongs_to_threads(value.type):
                raise VerifyException(
                    f"frag.roles: {role.name!r} uses a value of type {value.type} that other "
                    "threads hold; roles meet in rings (frag.ring)"
                )
            if isinstance(value.type, RingType):
                for use in value.uses:
                    if not roles.is_ancestor(use.operation):
                        raise VerifyException(
                            f"frag.roles: the ring of {role.name!r} is taken outside of the roles "
                            f"too, by {use.operation.name}; make another ring for that"
                        )


def _belongs_to_threads(type_: Attribute) -> bool:
    return held_tile(type_) is not None or isinstance(type_, SlotType)


def _is_outside(value: SSAValue, roles: RolesOp) -> bool:
    """Whether a value is made before the roles."""
    owner = value.owner
    op = owner if isinstance(owner, Operation) else owner.parent_op()
    while op is not None and op is not roles:
        op = op.parent_op()
    return op is None
