"""The table of opcodes: what PTX's instructions are called, take, compute and do.

Nothing here executes anything: `fragir.emulator` does, by a row's text or by the name of its step.
"""
