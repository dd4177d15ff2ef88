"""The PTX ISA's fragment formulas, as text. `maps.py` evaluates them.

Transcribed from the PTX ISA 9.0 (sections 9.7.14.5 to 9.7.15.6; numbering as there). Where the
page gives a formula, this is its text, so that it can be compared by eye with the page; columns of
blanks may differ. Where the page gives only a figure, the heading says `figure`, and the formula is
our own reading of it. This is deliberately a second source beside the compiler's own tables: the
two meet only in tests.

An entry is a heading `[section] shape types : operand elements`, then the formula. `a`, `b` and `c`
name A, B and the accumulators C and D; `elements` is how many elements a lane holds, numbered `i`
from the low bits of the first register up. A line `erratum: x => y` says that the page prints x
where y is meant; the text below it is still the page's.
"""

from __future__ import annotations

DENSE = r"""
[9.7.14.5.1] m8n8k4 f16 : a.row 4
product =  (%laneid % 16) >> 2
row =            %laneid % 4          if %laneid < 16
                (%laneid % 4) + 4     otherwise
col =            i                    for ai where i = {0,..,3}

[9.7.14.5.1] m8n8k4 f16 : a.col 4
product =  (%laneid % 16) >> 2
row =        i % 4           for ai  where i = {0,..,3}   if %laneid < 16
            (i % 4) + 4      for ai  where i = {0,..,3}   otherwise
col =        %laneid % 4

[9.7.14.5.1] m8n8k4 f16 : b.row 4
product =  (%laneid % 16) >> 2
row =        %laneid % 4
col =         i      for bi   where i = {0,..,3}     if %laneid < 16
             i+4     for bi   where i = {0,..,3}     otherwise

[9.7.14.5.1] m8n8k4 f16 : b.col 4
product =  (%laneid % 16) >> 2
row =        i                 for bi   where i = {0,..,3}
col =      %laneid % 4         if %laneid < 16
         (%laneid % 4) + 4     otherwise

[9.7.14.5.1] m8n8k4 f16 : c.f16 8
product =  (%laneid % 16) >> 2
row =       %laneid % 4         if %laneid < 16
           (%laneid % 4) + 4    otherwise
col =          i                for ci   where i = {0,..,7}

[9.7.14.5.1] m8n8k4 f16 : c.f32 8
product =  (%laneid % 16) >> 2
row =     X           if %laneid < 16
        X + 4         otherwise
          where X = (%laneid & 0b1) + (i & 0b10)  for ci where i = {0,..,7}
col = (i & 0b100) + (%laneid & 0b10) + (i & 0b1)  for ci where i = {0,..,7}

[9.7.14.5.2] m8n8k4 f64 : a 1
row =  %laneid >> 2
col =  %laneid % 4

[9.7.14.5.2] m8n8k4 f64 : b 1
row =  %laneid % 4
col =  %laneid >> 2

[9.7.14.5.2] m8n8k4 f64 : c 2
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =      groupID
col =      (threadID_in_group * 2) + (i & 0x1)       for ci   where i = {0, 1}

[9.7.14.5.3] m8n8k16 s8 u8 : a 4
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =              groupID
col =  (threadID_in_group * 4) + i       for ai    where i = {0,..,3}

[9.7.14.5.3] m8n8k16 s8 u8 : b 4
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =  (threadID_in_group * 4) + i       for bi    where i = {0,..,3}
col =    groupID

[9.7.14.5.3] m8n8k16 s8 u8 : c 2
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =   groupID
col =  (threadID_in_group * 2) + i         for ci    where i = {0, 1}

[9.7.14.5.4] m8n8k32 s4 u4 : a 8
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =      groupID
col = (threadID_in_group * 8) + i         for ai    where i = {0,..,7}

[9.7.14.5.4] m8n8k32 s4 u4 : b 8
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row = (threadID_in_group * 8) + i         for bi    where i = {0,..,7}
col =     groupID

[9.7.14.5.4] m8n8k32 s4 u4 : c 2
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =    groupID
col = (threadID_in_group * 2) + i         for ci   where i = {0, 1}

[9.7.14.5.5] m8n8k128 b1 : a 32
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =  groupID
col =  (threadID_in_group * 32) + i       for ai where i = {0,..,31}

[9.7.14.5.5] m8n8k128 b1 : b 32
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row = (threadID_in_group * 32) + i         for bi where i = {0,..,31}
col = groupID

[9.7.14.5.5] m8n8k128 b1 : c 2
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row = groupID
col = (threadID_in_group * 2) + i    for ci where i = {0, 1}

[9.7.14.5.6] m16n8k4 tf32 f64 : a 2
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =      groupID            for a0
           groupID + 8        for a1
col =  threadID_in_group

[9.7.14.5.6] m16n8k4 tf32 f64 : b 1
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =  threadID_in_group
col =  groupID

[9.7.14.5.6] m16n8k4 tf32 f64 : c 4
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =      groupID                            for c0 and c1
           groupID + 8                        for c2 and c3
col =  (threadID_in_group * 2) + (i & 0x1)    for ci   where i = {0,..,3}

[9.7.14.5.7] m16n8k8 f16 bf16 : a 4
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =      groupID            for a0 and a1
           groupID + 8        for a2 and a3
col =  threadID_in_group * 2 + (i & 0x1)    for ai     where i = {0,..,3}

[9.7.14.5.7] m16n8k8 tf32 f64 : a 4
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =      groupID            for a0 and a2
           groupID + 8        for a1 and a3
col =  threadID_in_group       for a0 and a1
       threadID_in_group + 4   for a2 and a3

[9.7.14.5.7] m16n8k8 f16 bf16 : b 2
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =  (threadID_in_group * 2) + i       for bi    where i = {0, 1}
col =  groupID

[9.7.14.5.7] m16n8k8 tf32 f64 : b 2
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =    threadID_in_group         for b0
         threadID_in_group + 4     for b1
col =  groupID

[9.7.14.5.7] m16n8k8 f16 bf16 tf32 f64 : c 4
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =      groupID                            for c0 and c1
           groupID + 8                        for c2 and c3
col =  (threadID_in_group * 2) + (i & 0x1)    for ci   where i = {0,..,3}

[9.7.14.5.8] m16n8k16 f16 bf16 : a 8
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =      groupID            for ai where  0 <= i < 2 || 4 <= i < 6
           groupID + 8        Otherwise
col =  (threadID_in_group * 2) + (i & 0x1)          for ai where i <  4
       (threadID_in_group * 2) + (i & 0x1) + 8      for ai where i >= 4

[9.7.14.5.8] m16n8k16 f64 : a 8
erratum: (i * 2) - 2 + (threadID_in_group => (i * 2) - 2 + (threadID_in_group)
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =  groupID                               for ai where  i % 2 = 0
       groupID + 8                           Otherwise
col =  (i * 2) + threadID_in_group           for ai where i % 2 = 0
       (i * 2) - 2 + (threadID_in_group      Otherwise

[9.7.14.5.8] m16n8k16 f16 bf16 : b 4
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =  (threadID_in_group * 2) + (i & 0x1)           for bi where i <  2
       (threadID_in_group * 2) + (i & 0x1) + 8       for bi where i >= 2
col = groupID

[9.7.14.5.8] m16n8k16 f64 : b 4
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =  threadID_in_group + (i * 4)           for bi where  i < 4
col =  groupID

[9.7.14.5.8] m16n8k16 f16 bf16 f64 : c 4
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =      groupID                               for ci where i <  2
         groupID + 8                             for ci where i >= 2
col =  (threadID_in_group * 2) + (i & 0x1)        for ci where i = {0,..,3}

[9.7.14.5.9] m16n8k16 s8 u8 e4m3 e5m2 : a 8
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =      groupID                            for ai where i < 4
         groupID + 8                          for ai where i >= 4
col =  (threadID_in_group * 4) + (i & 0x3)    for ai where i = {0,..,7}

[9.7.14.5.9] m16n8k16 s8 u8 e4m3 e5m2 : b 4
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =  (threadID_in_group * 4) + i         for bi where i = {0,..,3}
col =  groupID

[9.7.14.5.9] m16n8k16 s8 u8 e4m3 e5m2 : c 4
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =      groupID                               for ci where i <  2
         groupID + 8                             for ci where i >= 2
col =  (threadID_in_group * 2) + (i & 0x1)        for ci where i = {0,..,3}

[9.7.14.5.10] m16n8k32 s4 u4 : a 16
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =      groupID                            for ai where i < 8
         groupID + 8                          for ai where i >= 8
col =  (threadID_in_group * 8) + (i & 0x7)    for ai where i = {0,..,15}

[9.7.14.5.10] m16n8k32 s8 u8 e4m3 e5m2 e3m2 e2m3 e2m1 : a 16
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =      groupID                                      for ai where  0 <= i < 4 || 8 <= i < 12
           groupID + 8                                  otherwise
col =  (threadID_in_group * 4) + (i & 0x3)              for ai where i < 8
       (threadID_in_group * 4) + (i & 0x3) + 16         for ai where i >= 8

[9.7.14.5.10] m16n8k32 s4 u4 : b 8
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =  (threadID_in_group * 8) + (i & 0x7)      for bi where i = {0,..,7}
col =     groupID

[9.7.14.5.10] m16n8k32 s8 u8 e4m3 e5m2 e3m2 e2m3 e2m1 : b 8
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =      (threadID_in_group * 4) + (i & 0x3)           for bi where i < 4
           (threadID_in_group * 4) + (i & 0x3) + 16      for bi where i >= 4
col =   groupID

[9.7.14.5.10] m16n8k32 s4 u4 s8 u8 e4m3 e5m2 e3m2 e2m3 e2m1 : c 4
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =      groupID                               for ci where i <  2
         groupID + 8                             for ci where i >= 2
col =  (threadID_in_group * 2) + (i & 0x1)        for ci where i = {0,..,3}

[9.7.14.5.11] m16n8k64 s4 u4 e2m1 : a 32
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =     groupID                                     for ai where 0 <= i < 8 || 16 <= i < 24
          groupID + 8                                 otherwise
col =      (threadID_in_group * 8) + (i & 0x7)        for ai where i < 16
           (threadID_in_group * 8) + (i & 0x7) + 32   for ai where i >= 16

[9.7.14.5.11] m16n8k64 s4 u4 e2m1 : b 16
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =      (threadID_in_group * 8) + (i & 0x7)          for bi where i < 8
           (threadID_in_group * 8) + (i & 0x7) + 32     for bi where i >= 8
col =   groupID

[9.7.14.5.11] m16n8k64 s4 u4 e2m1 : c 4
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =      groupID                               for ci where i <  2
           groupID + 8                           for ci where i >= 2
col =  (threadID_in_group * 2) + (i & 0x1)       for ci where i = {0,..,3}

[9.7.14.5.12] m16n8k128 b1 : a 64
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =        groupID                               for ai where i < 32
            groupID + 8                           for ai where i >= 32
col =      (threadID_in_group * 32) + (i & 0x1F)   for ai where i = {0, ...,63}

[9.7.14.5.12] m16n8k128 b1 : b 32
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =  (threadID_in_group * 32) + i         for bi where i = {0,...,31}
col =  groupID

[9.7.14.5.12] m16n8k128 b1 : c 4
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =     groupID                                 for ci where i <  2
          groupID + 8                             for ci where i >= 2
col =     (threadID_in_group * 2) + (i & 0x1)     for ci where i = {0, 1, 2, 3}

[9.7.14.5.13] m16n8k256 b1 : a 128
erratum: (threadID_in_group * 32) + i   => (threadID_in_group * 32) + (i & 0x1F)
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =        groupID                              for ai where 0 <= i < 32 || 64 <= i < 96
             groupID + 8                          otherwise
col =      (threadID_in_group * 32) + i           for ai where i < 64
           (threadID_in_group * 32) + (i & 0x1F) + 128       for ai where i >= 64

[9.7.14.5.13] m16n8k256 b1 : b 64
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =      (threadID_in_group * 32) + (i & 0x1F)            for bi where i < 32
           (threadID_in_group * 32) + (i & 0x1F) + 128      for bi where i >= 32
col =      groupID

[9.7.14.5.13] m16n8k256 b1 : c 4
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =      groupID                               for ci where i <  2
         groupID + 8                             for ci where i >= 2
col =  (threadID_in_group * 2) + (i & 0x1)        for ci where i = {0, 1, 2, 3}
"""

# A holds the kept elements only. Its element i is the (i mod P)-th kept element, P being the
# elements of one register, of columns firstcol to lastcol of the full matrix. `e` says which row
# and chunk (of 2, 4 or 8 columns) nibble i of a lane's metadata describes, in the lanes where
# `selected` is not 0, F being the sparsity selector.
SPARSE = r"""
[9.7.14.6.2.1] m16n8k16 f16 bf16 : a 4
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =      groupID            for a0 and a1
           groupID + 8        for a2 and a3
firstcol = threadID_in_group * 4
lastcol  = firstcol + 3

[9.7.14.5.8] m16n8k16 f16 bf16 : b 4
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =  (threadID_in_group * 2) + (i & 0x1)           for bi where i <  2
       (threadID_in_group * 2) + (i & 0x1) + 8       for bi where i >= 2
col = groupID

[9.7.14.6.2.1 figure] m16n8k16 f16 bf16 : e 8
selected = %laneid % 4 == F
row      = (%laneid >> 2) + 8 * (i >> 2)
chunk    = i % 4

[9.7.14.6.2.2] m16n8k32 f16 bf16 : a 8
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =      groupID            for ai where  0 <= i < 2 || 4 <= i < 6
           groupID + 8        Otherwise
firstcol = threadID_in_group * 4              For ai where i < 4
           (threadID_in_group * 4) + 16       for ai where i >= 4
lastcol  = firstcol + 3

[9.7.14.6.2.2 figure] m16n8k32 f16 bf16 : b 8
row = (%laneid % 4) * 2 + (i & 1) + 8 * (i >> 1)
col = %laneid >> 2

[9.7.14.6.2.2 figure] m16n8k32 f16 bf16 : e 8
selected = (%laneid % 4) >> 1 == F
row      = (%laneid >> 2) + 8 * (i >> 2)
chunk    = 4 * (%laneid % 2) + i % 4

[9.7.14.6.2.3] m16n8k16 tf32 : a 4
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =      groupID            for a0 and a2
           groupID + 8        for a1 and a3
firstcol = threadID_in_group * 2             for a0 and a1
           (threadID_in_group * 2) + 8       for a2 and a3
lastcol  = firstcol + 1

[9.7.14.6.2.3 figure] m16n8k16 tf32 : b 4
row = %laneid % 4 + 4 * i
col = %laneid >> 2

[9.7.14.6.2.3 figure] m16n8k16 tf32 : e 8
selected = (%laneid % 4) >> 1 == F
row      = (%laneid >> 2) + 8 * (i >> 2)
chunk    = 4 * (%laneid % 2) + i % 4

[9.7.14.6.2.4] m16n8k8 tf32 : a 2
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =      groupID            for a0
           groupID + 8        for a1
firstcol = threadID_in_group * 2
lastcol  = firstcol + 1

[9.7.14.5.7] m16n8k8 tf32 : b 2
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =    threadID_in_group         for b0
         threadID_in_group + 4     for b1
col =  groupID

[9.7.14.6.2.4 figure] m16n8k8 tf32 : e 8
selected = %laneid % 4 == F
row      = (%laneid >> 2) + 8 * (i >> 2)
chunk    = i % 4

[9.7.14.6.2.5] m16n8k32 s8 u8 : a 8
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =      groupID            for ai where  0 <= i < 4
           groupID + 8        Otherwise
firstcol = threadID_in_group * 8
lastcol  = firstcol + 7

[9.7.14.5.10] m16n8k32 s8 u8 : b 8
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =      (threadID_in_group * 4) + (i & 0x3)           for bi where i < 4
           (threadID_in_group * 4) + (i & 0x3) + 16      for bi where i >= 4
col =   groupID

[9.7.14.6.2.5 figure] m16n8k32 s8 u8 : e 8
selected = (%laneid % 4) >> 1 == F
row      = (%laneid >> 2) + 8 * (%laneid % 2)
chunk    = i

[9.7.14.6.2.6] m16n8k64 s8 u8 e4m3 e5m2 e3m2 e2m3 e2m1 : a 16
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =      groupID            for ai where  0 <= i < 4 || 8 <= i < 12
           groupID + 8        Otherwise
firstcol = threadID_in_group * 8           For ai where i <  8
           (threadID_in_group * 8) + 32    For ai where i >= 8
lastcol  = firstcol + 7

[9.7.14.6.2.6 figure] m16n8k64 s8 u8 e4m3 e5m2 e3m2 e2m3 e2m1 : b 16
row = (%laneid % 4) * 4 + (i & 3) + 16 * (i >> 2)
col = %laneid >> 2

[9.7.14.6.2.6 figure] m16n8k64 s8 u8 e4m3 e5m2 e3m2 e2m3 e2m1 : e 8
selected = 1
row      = (%laneid >> 2) + 8 * (%laneid % 2)
chunk    = 8 * ((%laneid % 4) >> 1) + i

[9.7.14.6.2.7] m16n8k64 s4 u4 : a 16
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =      groupID            for ai where  0 <= i < 8
           groupID + 8        Otherwise
firstcol = threadID_in_group * 16
lastcol  = firstcol + 15

[9.7.14.5.11] m16n8k64 s4 u4 : b 16
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =      (threadID_in_group * 8) + (i & 0x7)          for bi where i < 8
           (threadID_in_group * 8) + (i & 0x7) + 32     for bi where i >= 8
col =   groupID

[9.7.14.6.2.7 figure] m16n8k64 s4 u4 : e 8
selected = (%laneid % 4) >> 1 == F
row      = (%laneid >> 2) + 8 * (%laneid % 2)
chunk    = i

[9.7.14.6.2.8] m16n8k128 s4 u4 e2m1 : a 32
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
row =      groupID            for ai where  0 <= i < 8 || 16 <= i < 24
           groupID + 8        Otherwise
firstcol = threadID_in_group * 16           For ai where i <  16
           (threadID_in_group * 16) + 64    For ai where i >= 16
lastcol  = firstcol + 15

[9.7.14.6.2.8 figure] m16n8k128 s4 u4 e2m1 : b 32
row = (%laneid % 4) * 8 + (i & 7) + 32 * (i >> 3)
col = %laneid >> 2

[9.7.14.6.2.8 figure] m16n8k128 s4 u4 e2m1 : e 8
selected = 1
row      = (%laneid >> 2) + 8 * (%laneid % 2)
chunk    = 8 * ((%laneid % 4) >> 1) + i
"""

# `tid` is the thread of the warpgroup, 0 to 127. Accumulators are written for N = 256; a smaller N
# has the first N/2 elements. Sparse A in registers holds kept elements, K/2 columns of them.
WGMMA = r"""
[9.7.15.5.1.1.1 figure] m64nNk16 f16 bf16 : a 8
row = 16 * (tid // 32) + (tid % 32 >> 2) + 8 * (i // 2 % 2)
col = 2 * (tid % 4) + i % 2 + 8 * (i // 4)

[9.7.15.5.1.1.2 figure] m64nNk8 tf32 : a 4
row = 16 * (tid // 32) + (tid % 32 >> 2) + 8 * (i % 2)
col = tid % 4 + 4 * (i // 2)

[9.7.15.5.1.1.3 figure] m64nNk32 s8 u8 e4m3 e5m2 : a 16
row = 16 * (tid // 32) + (tid % 32 >> 2) + 8 * (i // 4 % 2)
col = 4 * (tid % 4) + i % 4 + 16 * (i // 8)

[9.7.15.5.1.1.4 figure] m64nNk256 b1 : a 128
row = 16 * (tid // 32) + (tid % 32 >> 2) + 8 * (i // 32 % 2)
col = 32 * (tid % 4) + i % 32 + 128 * (i // 64)

[9.7.15.5.1.1 figure] m64nN f16 bf16 tf32 s8 u8 e4m3 e5m2 b1 : d 128
row = 16 * (tid // 32) + (tid % 32 >> 2) + 8 * (i // 2 % 2)
col = 8 * (i // 4) + 2 * (tid % 4) + i % 2

[9.7.15.6.2.1 figure] m64nNk32 f16 bf16 : e 8
selected = (tid % 4) >> 1 == F
row      = 16 * (tid // 32) + (tid % 32 >> 2) + 8 * (i >> 2)
chunk    = 4 * (tid % 2) + i % 4

[9.7.15.6.2.2 figure] m64nNk16 tf32 : e 8
selected = (tid % 4) >> 1 == F
row      = 16 * (tid // 32) + (tid % 32 >> 2) + 8 * (i >> 2)
chunk    = 4 * (tid % 2) + i % 4

[9.7.15.6.2.3 figure] m64nNk64 s8 u8 e4m3 e5m2 : e 8
selected = 1
row      = 16 * (tid // 32) + (tid % 32 >> 2) + 8 * (tid % 2)
chunk    = 8 * (tid % 4 >> 1) + i
"""

# `row` is the stored row (16 bytes at the address that a lane gives), `col` the element in it, for
# element i of one matrix. `ld` and `st` are ldmatrix and stmatrix, `mov.a` and `mov.d` movmatrix.
MATRIX = r"""
[9.7.14.5.15 figure] m8n8 b16 : ld 2
row = %laneid >> 2
col = (%laneid % 4) * 2 + i

[9.7.14.5.15 figure] m8n8 b16 : ld.trans 2
row = (%laneid % 4) * 2 + i
col = %laneid >> 2

[9.7.14.5.15 figure] m16n16 b8 : ld.trans 8
row = (%laneid % 4) * 4 + i % 4
col = (%laneid >> 2) + 8 * (i // 4)

[9.7.14.5.15 figure] m8n16 b8 : ld 4
row = %laneid >> 2
col = (%laneid % 4) * 4 + i

[9.7.14.5.16 figure] m8n8 b16 : st 2
row = %laneid >> 2
col = (%laneid % 4) * 2 + i

[9.7.14.5.16 figure] m8n8 b16 : st.trans 2
row = (%laneid % 4) * 2 + i
col = %laneid >> 2

[9.7.14.5.16 figure] m16n8 b8 : st.trans 4
row = (%laneid % 4) * 2 + i % 2
col = (%laneid >> 2) + 8 * (i // 2)

[9.7.14.5.17 figure] m8n8 b16 : mov.a 2
row = %laneid >> 2
col = (%laneid % 4) * 2 + i

[9.7.14.5.17 figure] m8n8 b16 : mov.d 2
row = (%laneid % 4) * 2 + i
col = %laneid >> 2
"""

# The ISA leaves open which lane holds which element of a wmma fragment. These are the places that
# ptxas 13.2 loads them to, read off its SASS, alike on sm_75, sm_80 and sm_90. A and B of f16 have
# 8 registers in every shape: where these are fewer elements, they follow each other again. The
# shapes m8n8k4, m8n8k32 and m8n8k128 are those of mma.
WMMA = r"""
[9.7.14.4 figure] m16n16k16 f16 bf16 : a 8
row = (%laneid >> 2) + 8 * (i // 2 % 2)
col = (%laneid % 4) * 2 + i % 2 + 8 * (i // 4)

[9.7.14.4 figure] m16n16k16 f16 bf16 : b 8
row = (%laneid % 4) * 2 + i % 2 + 8 * (i // 2 % 2)
col = (%laneid >> 2) + 8 * (i // 4)

[9.7.14.4 figure] m32n8k16 f16 bf16 : a 16
row = (%laneid >> 2) + 8 * (i // 2 % 2) + 16 * (i // 8)
col = (%laneid % 4) * 2 + i % 2 + 8 * (i // 4 % 2)

[9.7.14.4 figure] m32n8k16 f16 bf16 : b 4
row = (%laneid % 4) * 2 + i % 2 + 8 * (i // 2)
col = %laneid >> 2

[9.7.14.4 figure] m8n32k16 f16 bf16 : a 4
row = %laneid >> 2
col = (%laneid % 4) * 2 + i % 2 + 8 * (i // 2)

[9.7.14.4 figure] m8n32k16 f16 bf16 : b 16
row = (%laneid % 4) * 2 + i % 2 + 8 * (i // 4 % 2)
col = (%laneid >> 2) + 8 * (i // 2 % 2) + 16 * (i // 8)

[9.7.14.4 figure] m16n16k16 s8 u8 : a 8
row = (%laneid >> 2) + 8 * (i // 4)
col = (%laneid % 4) * 4 + i % 4

[9.7.14.4 figure] m16n16k16 s8 u8 : b 8
row = (%laneid % 4) * 4 + i % 4
col = (%laneid >> 2) + 8 * (i // 4)

[9.7.14.4 figure] m32n8k16 s8 u8 : a 16
row = (%laneid >> 2) + 8 * (i // 4)
col = (%laneid % 4) * 4 + i % 4

[9.7.14.4 figure] m32n8k16 s8 u8 : b 4
row = (%laneid % 4) * 4 + i
col = %laneid >> 2

[9.7.14.4 figure] m8n32k16 s8 u8 : a 4
row = %laneid >> 2
col = (%laneid % 4) * 4 + i

[9.7.14.4 figure] m8n32k16 s8 u8 : b 16
row = (%laneid % 4) * 4 + i % 4
col = (%laneid >> 2) + 8 * (i // 4)

[9.7.14.4 figure] m16n16k8 tf32 : a 4
row = (%laneid >> 2) + 8 * (i % 2)
col = %laneid % 4 + 4 * (i // 2)

[9.7.14.4 figure] m16n16k8 tf32 : b 4
row = %laneid % 4 + 4 * (i % 2)
col = (%laneid >> 2) + 8 * (i // 2)

[9.7.14.4 figure] m16n16 f16 f32 s32 : c 8
row = (%laneid >> 2) + 8 * (i // 2 % 2)
col = (%laneid % 4) * 2 + i % 2 + 8 * (i // 4)

[9.7.14.4 figure] m32n8 f16 f32 s32 : c 8
row = (%laneid >> 2) + 8 * (i // 2)
col = (%laneid % 4) * 2 + i % 2

[9.7.14.4 figure] m8n32 f16 f32 s32 : c 8
row = (%laneid % 4) * 2 + i % 2
col = (%laneid >> 2) + 8 * (i // 2)
"""
