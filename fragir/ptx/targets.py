"""NVIDIA's machines: the one table of what tells one target from another, a row a machine.

`plain`, `a` and `f` are the lowest PTX versions that know `sm_90`, `sm_90a` and `sm_90f` (PTX ISA
9.2, section 11.1.2; asked of ptxas 13.5 and, for sm_70 and sm_72, of ptxas 12.9); `-` is no target.
`shared` is how many KiB a block may ask for (CUDA programming guide, "Compute capabilities"; 8.8
is not in the guide: it is like 8.6 in CCCL's arch_traits.h). `cores` names the generation of its
tensor cores: nothing is published of those of sm_107. What only some Blackwells have, on their `a`
or `f` targets, are words behind that: `fragir.ptx.opcodes.versions` says which
instructions they mean.
"""

from __future__ import annotations

from typing import NamedTuple

_TABLE = """
machine  plain  a    f    shared  cores          words
sm_70    6.0    -    -    96      Volta          dropped
sm_72    6.1    -    -    96      Volta          dropped
sm_75    6.3    -    -    64      Turing
sm_80    7.0    -    -    163     Ampere
sm_86    7.1    -    -    99      Ampere
sm_87    7.4    -    -    163     Ampere
sm_88    9.0    -    -    99      Ampere
sm_89    7.8    -    -    99      Ada
sm_90    7.8    8.0  -    227     Hopper
sm_100   8.6    8.6  8.8  227     Blackwell      server i8 rounding
sm_101   -      -    -    227     Blackwell
sm_103   8.8    8.8  8.8  227     Blackwell      server rounding reducing
sm_107   9.4    9.4  9.4  227     Blackwell      server rounding reducing packed ti16
sm_110   9.0    9.0  9.0  227     Blackwell      server i8 reducing
sm_120   8.7    8.7  8.8  99      RTX-Blackwell  consumer packed
sm_121   8.8    8.8  8.8  99      RTX-Blackwell  consumer packed
"""


class TargetRow(NamedTuple):
    """A row: `versions` by suffix (`""`, `a`, `f`), `shared` in bytes."""

    number: int
    versions: dict[str, str]
    shared: int
    cores: str
    words: frozenset[str]

    def targets(self, suffixes: str) -> tuple[str, ...]:
        """Its targets with these suffixes, such as sm_100a, sm_100f; a blank is the plain one."""
        return tuple(f"sm_{self.number}{s}" for s in map(str.strip, suffixes) if s in self.versions)


def _row(line: str) -> TargetRow:
    name, *versions, shared, cores = line.split()[:6]
    by_suffix = {s: v for s, v in zip(("", "a", "f"), versions, strict=True) if v != "-"}
    number = int(name.removeprefix("sm_"))
    cores = cores.replace("-", " ")
    return TargetRow(number, by_suffix, int(shared) << 10, cores, frozenset(line.split()[6:]))


MACHINES = tuple(map(_row, _TABLE.strip().splitlines()[1:]))


def targets_with(words: str, suffixes: str = "af") -> tuple[str, ...]:
    """The targets of the machines that have one of these words, those with these suffixes; a blank
    is the plain one.
    """
    wanted = set(words.split())
    found = [m.targets(suffixes) for m in MACHINES if wanted & m.words]
    return tuple(target for targets in found for target in targets)
