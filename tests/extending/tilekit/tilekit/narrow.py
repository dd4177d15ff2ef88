"""A check: stores of a warp that write little at a time."""

from typing import Any

from fragir.emulator import Hooks


class NarrowStores(Hooks):
    """Stores to global memory of less than 16 bytes a lane, once for each instruction."""

    def __init__(self, machine: Any, program: Any) -> None:
        super().__init__(machine, program)
        self.told: set[int] = set()

    def on_access(self, access: Any) -> None:
        ins = access.instruction
        if access.kind == "store" and access.space == "global" and access.size < 16:
            if ins.at not in self.told:
                self.told.add(ins.at)
                text = f"{ins.mnemonic} stores {access.size} bytes a lane"
                self.found(self.program, ins.at, "narrow-store", text, severity="remark")
