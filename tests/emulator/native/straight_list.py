"""The C functions of straight runs, made of the texts of the table of opcodes.

`python -m tests.emulator.native.straight_list` writes them anew; `make core` does so first.
"""

from pathlib import Path

import fragir.emulator.native
from fragir.emulator.values.c import header
from fragir.ptx.opcodes.table import OPCODES

PLACE = Path(fragir.emulator.native.__file__).parent / "source" / "straight_list.h"


def text() -> str:
    return header(row for row in OPCODES.rows if row in OWN)


#: Without those that other tests have registered.
OWN = frozenset(OPCODES.rows)

if __name__ == "__main__":
    PLACE.write_text(text(), "utf-8")
