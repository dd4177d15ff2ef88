"""`fragir-opt`: xdsl-opt with our dialects, passes and `-t ptx`, and errors that say where."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import IO

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import ParseError
from xdsl.xdsl_opt_main import xDSLOptMain

from fragir import diagnostics
from fragir.errors import FragirError


class FragirOptMain(xDSLOptMain):
    """Parses with locations; everything else is xdsl-opt."""

    def register_all_dialects(self) -> None:
        from xdsl.dialects import get_all_dialects

        from fragir.universe import FRAGIR_UNIVERSE

        for name, dialect in {**get_all_dialects(), **FRAGIR_UNIVERSE.all_dialects}.items():
            self.ctx.register_dialect(name, dialect)

    def register_all_frontends(self) -> None:
        super().register_all_frontends()

        def parse_mlir(stream: IO[bytes]) -> ModuleOp:
            text = stream.read().decode("utf-8")
            parser = diagnostics.LocatingParser(self.ctx, text, self.get_input_name())
            module = parser.parse_module(not self.args.no_implicit_module)
            if not (self.args.disable_verify or self.args.verify_diagnostics):
                diagnostics.verify(module, text)  # xdsl-opt verifies too, but says no place
            return module

        self.available_frontends["mlir"] = parse_mlir


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; exit code 1 and one clear line for bad input."""
    arguments = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in arguments
    tool: FragirOptMain | None = None
    try:
        tool = FragirOptMain("fragir-opt", [a for a in arguments if a != "--debug"])
        tool.run()
        return 0
    except BrokenPipeError:
        return 1
    except OSError as error:
        known = FragirError(error.strerror or str(error), file=error.filename)
    except UnicodeDecodeError:
        known = FragirError("this file is no UTF-8 text")
    except (Exception, RecursionError) as error:
        if debug:
            raise
        name = tool.get_input_name() if tool is not None else None
        known = (
            diagnostics.from_parse_error(error, name or "<input>")
            if isinstance(error, ParseError)
            else diagnostics.from_exception(error, None, name)
        )
    except BaseException as error:
        # xDSL's ArgSpecParseError derives from BaseException
        if type(error).__name__ != "ArgSpecParseError":
            raise
        known = FragirError(" ".join(str(error).split()))
    print(f"error: {known}", file=sys.stderr)
    return 1
