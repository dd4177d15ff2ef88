"""Sentences of the PTX ISA that kernels break without harm on any machine known.

A finding that rests on one of them has the severity `letter`, and quotes it.
"""

from __future__ import annotations

#: name -> (title of the section, sentence), PTX ISA 9.2.
SENTENCES: dict[str, tuple[str, str]] = {
    # What cp.async writes wgmma reads, and TMA signals mbarriers, as compilers emit it by default.
    "proxies": (
        "Async Proxy",
        "Accessing the same memory location across multiple proxies needs a cross-proxy fence.",
    ),
    # Of mbarriers that nobody has used: compilers reserve more than they need.
    "mbarrier.init": (
        "mbarrier.init",
        "The behavior of performing an mbarrier.init operation on a memory location containing a "
        "valid mbarrier object is undefined; invalidate the mbarrier object using mbarrier.inval "
        "first, before repurposing the memory location for any other purpose, including another "
        "mbarrier object.",
    ),
    # Cooperative groups: one lane acquires, and a shuffle tells the others.
    "warp": (
        "bar.warp.sync",
        "Thus, threads within warp that wish to communicate via memory can store to memory, "
        "execute bar.warp.sync, and then safely read values stored by other threads in warp.",
    ),
    # One thread of a block looks, a barrier tells the others: no fence behind the look.
    "acquire": (
        "Release and Acquire Patterns",
        "The acquire pattern makes some operations from other threads visible to later operations "
        "from the current thread.",
    ),
    # What of a warp has left, or goes round: machines do not wait for it.
    "aligned": (
        "barrier",
        "In conditionally executed code, an aligned barrier{.cta} instruction should only be used "
        "if it is known that all threads in the warp evaluate the condition identically, "
        "otherwise behavior is undefined.",
    ),
    "members": (
        "shfl.sync",
        "shfl.sync will cause executing thread to wait until all non-exited threads corresponding "
        "to membermask have executed shfl.sync with the same qualifiers and same membermask value "
        "before resuming execution.",
    ),
    # A number as any other, and mostly nobody uses it.
    # Machines look at its lowest bit.
    "parity": (
        "mbarrier.test_wait, mbarrier.try_wait",
        "An even phase has integer parity 0 and an odd phase has integer parity of 1. So the valid "
        "values of phaseParity operand are 0 and 1.",
    ),
    # A subtraction, whose result nobody may have used yet.
    "window": (
        "cvta",
        "When converting a generic address into a const, Kernel Function Parameters (.param), "
        "global, local, or shared address, the resulting address is undefined in cases where the "
        "generic address does not fall within the address window of the specified state space.",
    ),
    # A bulk store at a kernel's end: the machine lets it finish.
    "shared": (
        "Shared State Space",
        "The shared (.shared) state space is a memory that is owned by an executing CTA and is "
        "accessible to the threads of all the CTAs within a cluster.",
    ),
    # An arrival whose phase nobody waits for: the thread exits.
    "cluster-wait": (
        "barrier.cluster",
        "barrier.cluster.wait instruction causes the executing thread to wait for all non-exited "
        "threads of the cluster to perform barrier.cluster.arrive.",
    ),
}


def quote(name: str) -> str:
    """The sentence as a message ends with it."""
    title, sentence = SENTENCES[name]
    return f'PTX ISA, {title}: "{sentence}"'
