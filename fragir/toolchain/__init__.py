"""NVIDIA's tools: the assembler, the disassembler and the CUDA driver, each found or asked for.

| module | what it wraps |
|---|---|
| `ptxas` | the assembler: PTX text to a cubin, with registers, spills and warnings as data |
| `sass` | the disassembler: a cubin to SASS text and counts of its opcodes |
| `sass_loops` | instructions, loops, what stands between two waits |
| `verdicts` | what ptxas did to a schedule: wgmma made serial, waits put in, spills |
| `cubins` | the cache of cubins on disk |
| `driver` | the CUDA driver: runs a cubin on the GPU |
"""

from __future__ import annotations
