"""Mutants of generated kernels that are as right as the original, each with the sentence for it.

The sentences are those of the PTX ISA 9.2. Where a rule names a kernel, it is right of that kernel
alone: of others the same change is an error, and found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .mutation import Mutant


class Rule(NamedTuple):
    """Which mutants are meant: kernels and statements as regular expressions, changes by name.

    `which`: of the kernel's statements these, counted from 0, backwards from -1; all where it is
    empty.
    """

    kernel: str
    statement: str
    changes: tuple[str, ...]
    which: tuple[int, ...]
    why: str
    section: str
    sentence: str

    def covered(self, kernel: str, mutants: Sequence[Mutant]) -> Iterator[Mutant]:
        """Those of a kernel's mutants."""
        if not re.fullmatch(self.kernel, kernel):
            return
        for change in self.changes:
            found = [m for m in mutants if m.how == change and re.fullmatch(self.statement, m.what)]
            chosen = range(-len(found), len(found)) if not self.which else self.which
            yield from (found[at] for at in chosen if -len(found) <= at < len(found))


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
_PHASE = (
    "mbarrier.try_wait",
    "When used with .parity modifier, the phaseParity operand indicates the integer parity of "
    "either the current phase or the immediately preceding phase of the mbarrier object.",
)
_FENCE = (
    "wgmma.fence",
    "The wgmma.fence instruction must be issued by all warps of the warpgroup ... between a "
    "register access by a thread in the warpgroup and any wgmma.mma_async instruction that "
    "accesses the same registers.",
)
_EMPTY = (
    "cp.async.commit_group",
    "If there are no uncommitted cp.async instructions then cp.async.commit_group results in an "
    "empty cp.async-group.",
)
_BULK_WAIT = (
    "cp.async.bulk.wait_group",
    "cp.async.bulk.wait_group instruction will cause the executing thread to wait until only N or "
    "fewer of the most recent bulk async-groups are pending and all of the prior bulk async-groups "
    "committed by the executing threads are complete.",
)
_MEETS = (
    "bar.warp.sync",
    "bar.warp.sync will cause executing thread to wait until all threads corresponding to "
    "membermask have executed a bar.warp.sync with the same membermask value before resuming "
    "execution.",
)
_DRAINED = ("deleted", "one more group stays")

_LEFT = "behind the loop only the groups of its last turns are left, which copy nothing"

RULES = (
    Rule(  # of sums that are loaded in two pieces
        "tensor mxfp8|tensor nvfp4 by threads",
        r"tcgen05\.wait::ld\.sync\.aligned;",
        ("deleted",),
        (0,),
        "the wait for the second piece stands ahead of the arrival that gives the slot back",
        "tcgen05.wait",
        "tcgen05.wait::ld instruction causes the executing thread to block until all prior "
        "tcgen05.ld operations issued by the executing thread have completed.",
    ),
    Rule(  # ahead of the arrival that gives a slot of sums back
        "tensor s8 turned",
        r"tcgen05\.wait::ld\.sync\.aligned;",
        ("deleted",),
        (),
        "the next products of the slot wait for operands, which are fetched behind the release of "
        "old C, and that stands behind all that uses the registers",
        "tcgen05, memory consistency model",
        "An intra-thread ordering through true register dependency will be respected",
    ),
    Rule(
        "tensor (pair )?s8 turned",
        r"fence\.proxy\.async\.shared::cta;",
        ("deleted",),
        (-1,),
        "no thread has accessed the slot since the fence ahead of the copy out of the other",
        "Async Proxy",
        "Accessing the same memory location across multiple proxies needs a cross-proxy fence.",
    ),
    Rule(
        "tensor (pair )?s8 turned",
        r"bar\.warp\.sync -1;",
        ("deleted",),
        (-1,),
        "no thread has accessed the slot since the barrier ahead of the copy out of the other",
        *_BARRIER,
    ),
    Rule(
        "tensor .*",
        r"@%\w+ tcgen05\.relinquish_alloc_permit\.cta_group::\d\.sync\.aligned;",
        ("deleted",),
        (),
        "no other block waits for columns, and the kernel allocates once",
        "tcgen05.relinquish_alloc_permit",
        "tcgen05.relinquish_alloc_permit instruction specifies that the CTA of the executing "
        "thread is relinquishing the right to allocate Tensor Memory. So, it is illegal for a CTA "
        "to perform tcgen05.alloc after any of its constituent threads execute "
        "tcgen05.relinquish_alloc_permit.",
    ),
    Rule(  # where it waits for sums, and for scales, whose slot is followed by that of operands
        "tensor nvfp4 by threads",
        r"bar\.warp\.sync 4294967295;",
        ("deleted",),
        (-3,),
        "the warp meets again at the first slot that it awaits",
        *_MEETS,
    ),
    Rule(  # where it waits for a free slot of sums; for operands it meets again in each turn
        "tensor .*",
        r"bar\.warp\.sync 4294967295;",
        ("deleted",),
        (-2,),
        "the warp meets again at the next slot that it awaits",
        *_MEETS,
    ),
    *(
        Rule(  # ahead of the arrival that gives a slot of sums back
            kernels,
            r"bar\.warp\.sync -1;",
            ("deleted",),
            (which,),
            "all lanes have loaded behind the wait, which the warp executes as one",
            "tcgen05.wait",
            "The mandatory .sync qualifier indicates that tcgen05.wait instruction causes the "
            "executing thread to wait until all threads in the warp execute the same tcgen05.wait "
            "instruction before resuming execution.",
        )
        for kernels, which in (("tensor (?!nvfp4).*", 0), ("tensor nvfp4 by threads", 1))
    ),
    Rule(".*", r"cp\.async\.wait_group 0;", _DRAINED, (-1,), _LEFT, *_EMPTY),
    Rule(  # ahead of an epilogue that takes over the ring's memory
        "wgmma f16 to f16|mma f16, turned",
        r"cp\.async\.wait_group 0;",
        _DRAINED,
        (0,),
        _LEFT,
        *_EMPTY,
    ),
    Rule(
        ".*",
        r"@%\w+ fence\.mbarrier_init\.release\.cluster;",
        ("without its guard",),
        (),
        "threads that have initialised no mbarrier order nothing by it",
        "fence",
        "When .op_restrict is .mbarrier_init, the synchronizing effect of the fence only applies "
        "to the prior mbarrier.init operations executed by the same thread on mbarrier objects in "
        ".shared::cta state space.",
    ),
    Rule(
        "cluster .*|tensor (pair|cluster) .*",
        r"@%p[01] fence\.mbarrier_init\.release\.cluster;",
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
        r"wgmma e4m3 C\^T",
        r"bar\.sync 0;",
        ("deleted",),
        (1,),
        "each turn ends with a wait for its products, whose first operand is in registers, so who "
        "has met the others at the next turn's beginning knows that nobody reads the slot",
        *_BARRIER,
    ),
    Rule(
        r"wgmma e4m3 C\^T",
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
        "the block is one warpgroup, and nothing but its products reads the slot: each of its "
        "warps has waited for all of a product",
        *_WARPGROUP,
    ),
    Rule(
        "roles s8 copied",
        r"fence\.proxy\.async\.shared::cta;|bar\.sync 2, 128;",
        ("deleted",),
        (0, 1),
        "the role is one warpgroup, and nothing but its products reads the transposed copy: each "
        "of its warps has waited for all of a product before it writes the next copy",
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
    Rule(
        "attention",
        r"fence\.proxy\.async\.shared::cta;",
        ("deleted",),
        (-1,),
        "no thread has accessed the slot since the fence ahead of the copy out of it",
        "Async Proxy",
        "Accessing the same memory location across multiple proxies needs a cross-proxy fence.",
    ),
    Rule(
        "attention",
        r"cp\.async\.bulk\.wait_group 0;",
        _DRAINED,
        (),
        "every slot's release has waited until it has been read, and nobody reads what is written",
        *_BULK_WAIT,
    ),
    Rule(
        "attention",
        r"bar\.warp\.sync -1;",
        ("deleted",),
        (),
        "the role has met since its warps have written the slot, which one thread has copied out",
        *_BARRIER,
    ),
    Rule(
        "attention",
        r"bar\.warp\.sync 4294967295;",
        ("deleted",),
        (0,),
        "the warp that fetches meets again for the slots of keys, before the queries' next phase",
        *_PHASE,
    ),
    Rule(
        "attention",
        r"wgmma\.fence\.sync\.aligned;",
        ("deleted",),
        (2, 4),
        "the fence ahead of the first of two products stands behind all accesses to the second's "
        "registers",
        *_FENCE,
    ),
    Rule(
        "attention",
        r"wgmma\.fence\.sync\.aligned;",
        ("deleted",),
        (1,),
        "of blocks of 128 keys, 128 queries cut one at most beside the last: the loop over them "
        "has one turn, and nobody has touched its registers before",
        *_FENCE,
    ),
    Rule(
        "attention",
        r"wgmma\.wait_group\.sync\.aligned 0;",
        _DRAINED,
        (1, 3),
        "it stands in a branch that is never taken: no launch gives 2^32 - 1 bytes",
        "%dynamic_smem_size",
        "Size of the shared memory allocated dynamically at kernel launch.",
    ),
    Rule(
        "roles e4m3 promoted, groups",
        r"wgmma\.wait_group\.sync\.aligned 0;",
        _DRAINED,
        (0,),
        "it stands in a branch that is never taken: no launch gives 2^32 - 1 bytes",
        "%dynamic_smem_size",
        "Size of the shared memory allocated dynamically at kernel launch.",
    ),
    Rule(
        "stream-K warps",
        r"cp\.async\.wait_group 1;",
        _DRAINED,
        (-1,),
        _LEFT,
        *_EMPTY,
    ),
    Rule(
        "split-K roles",
        r"bar\.sync 2, 256;",
        ("deleted",),
        (1,),
        "the part was copied to memory by the thread that counts it, and has been waited for",
        *_BULK_WAIT,
    ),
    Rule(
        "split-K roles",
        r"cp\.async\.bulk\.wait_group 0;",
        _DRAINED,
        (-1,),
        "the only copies to memory have been waited for where the part was counted",
        *_BULK_WAIT,
    ),
)


def rules_of(kernel: str, mutants: Sequence[Mutant]) -> dict[Mutant, Rule]:
    """The rules by which some of a kernel's mutants are right; the others are wrong."""
    return {mutant: rule for rule in RULES for mutant in rule.covered(kernel, mutants)}
