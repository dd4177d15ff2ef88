"""What hardware must say, in one prepared call of some minutes: a kit, its run, its report.

| module | where | what |
|---|---|---|
| `kit` | both | what a step is given: carried cubins, expected bits, sizes |
| `build` | here | `make gpu-kit` |
| `session` | there | `run.sh`: the steps in order, in processes of their own, within limits |
| `worker` | there | such a process: units of one step, one after the other |
| `steps` | both | the table of steps |
| `timing_cases`, `timing_copies` | both | the table of `microbenchmarks` |
| `peers`, `cublaslt`, `triton_cubins` | both | PyTorch, cuBLASLt, Triton as contenders |
| `contest`, `device` | there | contenders that take turns: medians, intervals, clocks |
| `report` | here | `make gpu-report DIR`: results, README's table, the page of the documentation |
| `stand_in`, `rehearse` | here | the whole of it on the emulator, in place of a driver |

A step is a module with `units(kit)`, names in the order of what must not be missing;
`prepare(kit)`, which makes here what they need there; and `run(work)`, the result of one unit:
plain JSON, with `wrong` where hardware says otherwise than what was expected, in words.
"""
