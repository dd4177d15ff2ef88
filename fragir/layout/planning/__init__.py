"""How a tile gets from one register layout to another at the least price.

`plan_conversion` compares two layouts, says what has to move (nothing, registers, bytes inside of
registers, lanes, warps) and chooses how: by renaming, by shuffles and selects inside of a warp, or
through shared memory. The plan is data: the instructions of one thread with their lane-dependent
operands (`program`), their counts and their price (`costs`).
"""
