"""Mutants of generated kernels that are as right as the original, each with the sentence for it.

The sentences are those of the PTX ISA 9.2. Where a rule names a kernel, it is right of that kernel
alone: of others the same change is an error, and found.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .mutation import Mutant


class Rule(NamedTuple):
    """Which mutants are meant: kernels and statements as regular expressions, changes by name.

    `which`: of such statements of a kernel these, counted from 0; all where it is empty.
    """

    kernel: str
    statement: str
    changes: tuple[str, ...]
    which: tuple[int, ...]
    why: str
    section: str
    sentence: str

    def covers(self, kernel: str, mutant: Mutant) -> bool:
        return bool(
            re.fullmatch(self.kernel, kernel)
            and re.fullmatch(self.statement, mutant.what)
            and mutant.how in self.changes
            and (not self.which or mutant.which in self.which)
        )


_GROUP_WAIT = (
    "wgmma.wait_group",
    "wgmma.wait_group instruction will cause the executing thread to wait until only N or fewer of "
    "the most recent wgmma-groups are pending and all the prior wgmma-groups committed by the "
    "executing threads are complete.",
)
_WARPGROUP = (
    "wgmma.wait_group",
    "Signal the completion of a preceding warpgroup operation.",
)
_BARRIER = (
    "barrier.cta",
    "The barrier{.cta}.sync or barrier{.cta}.red or barrier{.cta}.arrive instruction guarantees "
    "that when the barrier completes, prior memory accesses requested by this thread are performed "
    "relative to all threads participating in the barrier.",
)
_EMPTY = (
    "cp.async.commit_group",
    "If there are no uncommitted cp.async instructions then cp.async.commit_group results in an "
    "empty cp.async-group.",
)
_DRAINED = ("deleted", "one more group stays")

RULES = (
    Rule(
        ".*",
        r"cp\.async\.wait_group 0;",
        _DRAINED,
        (),
        "behind the loop only the groups of its last turns are left, which copy nothing",
        *_EMPTY,
    ),
    Rule(
        "roles .*|cluster .*",
        r"@%p0 fence\.mbarrier_init\.release\.cluster;",
        ("without its guard",),
        (),
        "threads that have initialised no mbarrier order nothing by it",
        "fence",
        "When .op_restrict is .mbarrier_init, the synchronizing effect of the fence only applies "
        "to the prior mbarrier.init operations executed by the same thread on mbarrier objects in "
        ".shared::cta state space.",
    ),
    Rule(
        "cluster .*",
        r"@%p0 fence\.mbarrier_init\.release\.cluster;",
        ("deleted",),
        (),
        "a barrier of the cluster follows, which is not relaxed",
        "barrier.cluster",
        "If the optional .sem qualifier is absent for barrier.cluster.arrive, .release is assumed "
        "by default.",
    ),
    Rule(
        "wgmma tf32 turned",
        r"fence\.proxy\.async\.shared::cta;",
        ("deleted",),
        (0,),
        "what cp.async has copied is read by ld and ldmatrix alone; wgmma reads the transposed "
        "copy, ahead of which there is a fence of its own",
        "Async Proxy",
        "Accessing the same memory location across multiple proxies needs a cross-proxy fence.",
    ),
    Rule(
        "wgmma e4m3 C^T",
        r"bar\.sync 0;",
        ("deleted",),
        (1,),
        "each turn ends with a wait for its products, whose first operand is in registers, so who "
        "has met the others at the next turn's beginning knows that nobody reads the slot",
        *_BARRIER,
    ),
    Rule(
        "wgmma e4m3 C^T",
        r"wgmma\.wait_group\.sync\.aligned 0;",
        _DRAINED,
        (1,),
        "the loop's last turn has waited for all products",
        *_GROUP_WAIT,
    ),
    Rule(
        "ring by hand",
        r"bar\.sync 0;",
        ("deleted",),
        (1,),
        "the block is one warpgroup, and nothing but its products reads the slot: each of its warps "
        "has waited for all of a product",
        *_WARPGROUP,
    ),
    Rule(
        "roles s8 copied",
        r"fence\.proxy\.async\.shared::cta;|bar\.sync 2, 128;",
        ("deleted",),
        (0,),
        "the role is one warpgroup, and nothing but its products reads the transposed copy: each of "
        "its warps has waited for all of a product before it writes the next copy",
        *_WARPGROUP,
    ),
    Rule(
        "roles s8 copied",
        r"bar\.warp\.sync -1;",
        ("deleted",),
        (0,),
        "the role has met since its warps have read the slot, ahead of the products",
        *_BARRIER,
    ),
)


def rule_for(kernel: str, mutant: Mutant) -> Rule | None:
    """The rule by which a mutant is right; None where it is wrong."""
    return next((rule for rule in RULES if rule.covers(kernel, mutant)), None)
