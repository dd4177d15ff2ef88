"""`fragir-opt`: xdsl-opt with our dialects, passes and `-t ptx`, and errors that say where."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from functools import partial
from traceback import walk_tb
from typing import IO

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass, PassPipeline
from xdsl.utils.exceptions import ParseError
from xdsl.xdsl_opt_main import xDSLOptMain

from fragir import plugins
from fragir.cli.command import run_guarded
from fragir.cli.files import check_replaces_none_of, decode_text, read_bytes, write_output
from fragir.compilation import pipeline
from fragir.errors import FragirError, pass_on
from fragir.mlir import diagnostics


class _Whole(io.StringIO):
    """What is to become a file: it outlives its `close`, which xdsl-opt calls in any case."""

    def close(self) -> None:
        pass


class FragirOptMain(xDSLOptMain):
    """Parses with locations, writes files as a whole; everything else is xdsl-opt."""

    def __init__(self, description: str, args: Sequence[str] | None = None) -> None:
        self.text: str | None = None
        """The source, for messages."""
        self._words = list(sys.argv[1:] if args is None else args)
        super().__init__(description, self._words)

    def run(self) -> None:
        """As in xdsl-opt; the output file is replaced once everything has succeeded."""
        output: str | None = self.args.output_file
        check_replaces_none_of(output, self.args.input_file or "-")
        self._output = _Whole()
        super().run()
        if output is not None:
            write_output(output, self._output.getvalue())

    def prepare_output(self) -> IO[str]:
        return sys.stdout if self.args.output_file is None else self._output

    def get_input_stream(self) -> tuple[IO[bytes], str]:
        """The whole input and its file's ending; what ends in nothing known is MLIR, as stdin."""
        name: str = self.args.input_file or "-"
        ending = os.path.splitext(name)[1].removeprefix(".")
        known = name != "-" and ending in self.available_frontends
        return io.BytesIO(read_bytes(name)), ending if known else "mlir"

    def register_all_dialects(self) -> None:
        self.ctx = plugins.FragirContext()

    def register_all_passes(self) -> None:
        self.available_passes.update(plugins.own_passes())
        if {"-h", "--help"} & set(self._words):  # which lists them
            for name in plugins.plugins().names("pass"):
                self.available_passes.setdefault(name, partial(pipeline.pass_class, name))

    def register_all_targets(self) -> None:
        """As in xdsl-opt; other packages are asked where the target is not one of ours."""
        self.available_targets.update(plugins.own_targets())
        options = argparse.ArgumentParser(add_help=False)
        options.add_argument("-t", "--target", default="mlir")
        name = str(options.parse_known_args(self._words)[0].target).partition("{")[0]
        found = None if name in self.available_targets else plugins.plugins().find("target", name)
        if found is not None:
            self.available_targets[name] = found

    def setup_pipeline(self) -> None:
        """As in xdsl-opt; a pass that neither xDSL nor fragir has is looked for elsewhere."""
        for spec in pipeline.specs(self.args.passes):
            kind = pipeline.pass_class(spec.name)
            pipeline.make_pass(kind, spec)
            self.available_passes[spec.name] = lambda kind=kind: kind
        super().setup_pipeline()
        callback = self.pipeline.callback

        def after(last: ModulePass | None, module: ModuleOp, following: ModulePass | None) -> None:
            if last is not None and not self.args.disable_verify:
                pipeline.check_after(last, module, self.text)
            if callback is not None:
                callback(last, module, following)

        self.pipeline = PassPipeline(self.pipeline.passes, after)

    def register_all_frontends(self) -> None:
        super().register_all_frontends()

        def parse_mlir(stream: IO[bytes]) -> ModuleOp:
            text = self.text = decode_text(stream.read(), self.get_input_name(), "MLIR")
            parser = diagnostics.LocatingParser(self.ctx, text, self.get_input_name())
            module = parser.parse_module(not self.args.no_implicit_module)
            if not (self.args.disable_verify or self.args.verify_diagnostics):
                diagnostics.verify(module, text)  # xdsl-opt verifies too, but says no place
            return module

        self.available_frontends["mlir"] = parse_mlir


def _run(argv: Sequence[str]) -> None:
    """xdsl-opt on these arguments; whatever it raises for bad input becomes a FragirError."""
    tool: FragirOptMain | None = None
    try:
        tool = FragirOptMain("fragir-opt", [word for word in argv if word != "--debug"])
        tool.run()
    except (FragirError, OSError):
        raise
    except Exception as error:
        pass_on(error)
        name = tool.get_input_name() if tool is not None else None
        if isinstance(error, ParseError):
            raise diagnostics.from_parse_error(error, name or "<input>") from error
        text = tool.text if tool is not None else None
        one = _pass_of(error)
        packages = plugins.imported_packages()
        raise diagnostics.from_exception(
            error, text, name, packages=packages, doing=f"the pass {one}" if one else "a package"
        ) from error
    except BaseException as error:
        # xDSL's ArgSpecParseError derives from BaseException
        if type(error).__name__ != "ArgSpecParseError":
            raise
        raise FragirError(" ".join(str(error).split())) from error


def _pass_of(error: BaseException) -> str | None:
    """The name of the pass that an exception came out of."""
    for frame, _ in walk_tb(error.__traceback__):
        if isinstance(one := frame.f_locals.get("self"), ModulePass):
            return one.name
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; exit code 1 and one clear line for bad input."""
    return run_guarded(_run, sys.argv[1:] if arguments is None else arguments)
