"""`fragir mcp`: the judge for programs, over the Model Context Protocol.

Needs the extra `mcp` (`pip install 'fragir[mcp]'`) for the protocol; the tools themselves, and
`--call`, do not.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import click

from fragir.cli.command import Document, as_fragir_error, command, print_json
from fragir.cli.limits import workers_option
from fragir.errors import FragirError

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

    from fragir.judge.tools import Tools

TOOLS = ("judge", "explain_finding", "list_supported")
GIB = 1 << 30

INSTRUCTIONS = """\
fragir judges PTX kernels for NVIDIA GPUs on a CPU. Call `judge` with a kernel and a case (launches
and a reference in numpy). Only the verdict `pass` is one; `incomplete` is no pass. Mend the first
reason of verdict `fail`, ask `explain_finding` what it means, and judge again with the same seed;
at the end judge once more with another seed and strict=true. Do not change the case to make a
kernel pass. `list_supported` says which instructions are refused."""

EXAMPLES = (
    (
        "What a finding means, and how it is mended, without a client:",
        'fragir mcp --call explain_finding --arguments \'{"finding": "proxy-fence"}\'',
    ),
    ("What can be judged, and what is refused by name:", "fragir mcp --call list_supported"),
)


@command(examples=EXAMPLES)
@click.option(
    "--seconds",
    type=click.FloatRange(1, 86400),
    default=120.0,
    show_default=True,
    metavar="S",
    help="What one judgement may take.",
)
@click.option(
    "--memory",
    type=click.FloatRange(0.5, 4096),
    default=4.0,
    show_default=True,
    metavar="GIB",
    help="What one judgement may take, in GiB.",
)
@workers_option("Judgements at once.")
@click.option(
    "--call",
    type=click.Choice(TOOLS),
    help="Call this tool once, print its answer as JSON, serve nothing.",
)
@click.option(
    "--arguments", metavar="JSON", default="{}", help="Of --call: the tool's arguments by name."
)
def main(seconds: float, memory: float, workers: int, call: str | None, arguments: str) -> None:
    """Serve the judge to programs: the Model Context Protocol over stdin and stdout.

    Three tools: judge (a kernel and a case, or their paths, to a verdict), explain_finding (what a
    finding means, and how it is mended), list_supported. Kernels and cases run in processes of
    their own, within limits; errors are answers, with a message.
    """
    from fragir.judge.tools import Tools

    tools = Tools(seconds, int(memory * GIB), workers)
    if call is not None:
        print_json(_called(tools, call, arguments))
        return
    if arguments != "{}":
        raise click.UsageError("--arguments are those of --call")
    build_server(tools).run("stdio")


def _called(tools: Tools, name: str, arguments: str) -> Document:
    """What one tool answers."""
    try:
        given: object = json.loads(arguments)
    except ValueError as error:
        raise FragirError(f"--arguments is no JSON: {error}") from error
    if not isinstance(given, dict):
        raise FragirError("--arguments is an object: {NAME: VALUE, ...}")
    tool: Callable[..., Document] = getattr(tools, name)
    try:
        bound = inspect.signature(tool).bind(**cast("dict[str, Any]", given))
    except TypeError as error:
        raise FragirError(f"{name} takes other arguments: {error}") from error
    return tool(*bound.args, **bound.kwargs)


def build_server(tools: Tools) -> MCPServer[Any]:
    """The server with the three tools; FragirError where the protocol's SDK is not installed."""
    try:
        from mcp.server.mcpserver import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
    except ImportError:
        raise FragirError(
            "the Model Context Protocol's SDK (mcp, version 2 or newer) is not installed",
            hint="pip install 'fragir[mcp]'",
        ) from None
    from importlib.metadata import version

    def told(tool: Callable[..., Document]) -> Callable[..., Document]:
        """The tool, whose errors are answers with a message, whatever is raised."""

        @functools.wraps(tool)
        def answer(*args: object, **named: object) -> Document:
            try:
                return tool(*args, **named)
            except Exception as error:
                raise ToolError(str(as_fragir_error(error))) from None

        return answer

    server: MCPServer[Any] = MCPServer(
        "fragir", instructions=INSTRUCTIONS, version=version("fragir"), log_level="ERROR"
    )
    for name in TOOLS:
        server.tool()(told(getattr(tools, name)))
    return server
