"""How a product is cut and in which order its tiles are computed: what that costs a machine.

Plain Python on numbers of tiles, bytes and cycles; nothing here knows the IR.
"""
