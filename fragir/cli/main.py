"""The command `fragir`. A command's module is imported when the command is used."""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import sys
from collections.abc import Sequence

import click

from fragir.cli.command import run_guarded, write_examples

GROUPS: dict[str, dict[str, str]] = {
    "Compile and run": {
        "compile": "Compile matrix IR to placed tiles, lane code, PTX or a cubin.",
        "run": "Compile a program, run it, and check the result against its meaning in numpy.",
    },
    "Look at layouts and instructions": {
        "convert": "Plan a conversion between two register layouts: steps, price and bound.",
        "descriptor": "Take a shared-memory or instruction descriptor apart, or build one.",
        "emit": "Write a PTX module that uses an instruction, or a C++ wrapper of it.",
        "explain": "Show a program after every pass, its layouts, PTX and machine code: a page.",
        "explore": "Explore every instruction and any layout, conversion and descriptor: a page.",
        "instructions": "List tensor-core instructions: registers, targets, what is native.",
        "layout": "Show which lane holds which element: of an operand, of any layout.",
    },
    "Judge PTX": {
        "assemble": "Assemble PTX with ptxas; show registers, spills and warnings.",
        "check": "Emulate a PTX kernel with every check on, under several schedules.",
        "emulate": "Run a PTX kernel on the CPU, to the bit.",
        "judge": "Judge a kernel by cases: every schedule, every value, the same function.",
        "mcp": "Serve the judge to programs: the Model Context Protocol over stdio.",
        "sass": "Show machine code, or its loops and what stands in them, of a program or PTX.",
    },
    "Long runs and the environment": {
        "completion": "Print what a shell reads to complete words: mnemonics, passes, files.",
        "doctor": "Show what fragir finds on this machine: tools, packages, GPU.",
        "sweep": "Run many independent tasks: fuzzers, mutants, validation.",
        "validate": "Probe instructions on the emulator or a GPU, with products known exactly.",
    },
}
"""What one wants -> name and help of every command. `fragir/cli/NAME.py` defines it as `main`."""

COMMANDS = {name: about for group in GROUPS.values() for name, about in group.items()}

EXAMPLES = (
    (
        "Compile a product, run it, and hold the result against its meaning:",
        "fragir run examples/gemm.mlir --size m=250,n=130,k=77",
    ),
    ("Its PTX for Hopper:", "fragir compile examples/gemm.mlir --target sm_90a -o gemm.ptx"),
    (
        "Who holds row 9, column 3 of A:",
        "fragir layout mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 a --at 9,3",
    ),
)


class _Commands(click.Group):
    """Knows the names and helps of the commands without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        # Imports and IR are many objects that live to the end: collecting them again and again
        # is a quarter of a compilation's time.
        gc.set_threshold(100_000, 20, 100)
        # Python collects once more when it ends, which takes longer than to leave it all.
        atexit.register(gc.freeze)
        module = importlib.import_module(f"fragir.cli.{cmd_name}")
        found: click.Command = module.main
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean `{near[0]}`?" if near else ""
            ctx.fail(f"There is no command `{args[0]}`.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        widest = max(map(len, COMMANDS))
        for title, group in GROUPS.items():
            with formatter.section(title):
                rows = [(name.ljust(widest), about) for name, about in group.items()]
                formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(formatter, EXAMPLES)


def _version(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"fragir {version('fragir')}")
        ctx.exit()


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_version,
    help="Show the version and leave.",
)
def commands() -> None:
    """fragir compiles a matrix IR to PTX for NVIDIA tensor cores, and runs and checks PTX.

    `fragir COMMAND --help` says more of each, with examples.
    """


def _run(argv: Sequence[str]) -> object:
    if "_FRAGIR_COMPLETE" in os.environ:  # a shell asks what a word may become
        from fragir.cli import shells

        return shells.respond(commands)
    return commands.main(list(argv), prog_name="fragir", standalone_mode=False)


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code: 0 clean, 1 a finding or bad input, 2 usage."""
    return run_guarded(_run, sys.argv[1:] if argv is None else argv)


if __name__ == "__main__":
    sys.exit(main())
