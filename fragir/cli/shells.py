"""Completion in bash, zsh and fish: click's classes, with scripts that know words to go on with.

The shell runs `fragir` with `_FRAGIR_COMPLETE=bash_complete`, click finds the parameter at the
cursor, `fragir.cli.completers` the words. Of click's scripts three things are otherwise: a word
that is not over (`partial`: a folder, a part of a mnemonic) gets no blank behind it; words may have
commas (fish) and colons, at which bash breaks words (`COMP_WORDBREAKS`); and `fragir-opt` is
completed by `fragir`, which imports less.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import (
    BashComplete,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    shell_complete,
    split_arg_string,
)

from fragir.cli.completers import attach

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

VARIABLE = "_FRAGIR_COMPLETE"

_BASH = """\
%(complete_func)s() {
    local line type value
    COMPREPLY=()
    while IFS= read -r line; do
        type=${line%%%%,*} value=${line#*,}
        [[ $type == partial ]] && compopt -o nospace
        COMPREPLY+=("$value")
    done < <(COMP_LINE="$COMP_LINE" COMP_POINT="$COMP_POINT" COMP_WORDBREAKS="$COMP_WORDBREAKS" \\
        %(complete_var)s=bash_complete "${1%%%%-opt}" 2>/dev/null)
}
complete -o nosort -F %(complete_func)s %(prog_name)s %(prog_name)s-opt
"""

_ZSH = """\
#compdef %(prog_name)s %(prog_name)s-opt
%(complete_func)s() {
    local -a response whole open described
    response=("${(@f)$(COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT - 1)) \\
        %(complete_var)s=zsh_complete %(prog_name)s 2>/dev/null)}")
    for type key about in ${response}; do
        if [[ $type == partial ]]; then
            open+=("$key")
        elif [[ $about == _ ]]; then
            whole+=("$key")
        else
            described+=("$key:$about")
        fi
    done
    (( $#described )) && _describe -V words described -U
    (( $#whole )) && compadd -U -V words -a whole
    (( $#open )) && compadd -U -S '' -V words -a open
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    %(complete_func)s "$@"
else
    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
    compdef %(complete_func)s %(prog_name)s %(prog_name)s-opt
fi
"""

_FISH = """\
function %(complete_func)s
    set -l response (COMP_WORDS=(commandline -cp) COMP_CWORD=(commandline -ct) \\
        %(complete_var)s=fish_complete %(prog_name)s 2>/dev/null)
    for line in $response
        string split -m 1 "," -- $line | tail -n 1
    end
end
complete --no-files --command %(prog_name)s --arguments "(%(complete_func)s)"
complete --no-files --command %(prog_name)s-opt --arguments "(%(complete_func)s)"
"""


class _Words(ShellComplete):
    """Gives the parameters of the command that is typed their words, which nothing else needs."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        command = self.cli
        if isinstance(command, click.Group) and args:
            command = command.get_command(click.Context(command), args[0])
        if command is not None:
            attach(command.params)
        return super().get_completions(args, incomplete)


class FragirBash(_Words, BashComplete):
    """Bash: the line up to the cursor, split as a shell does, not at bash's word breaks."""

    name = "bash"
    source_template = _BASH

    def get_completion_args(self) -> tuple[list[str], str]:
        raw = os.fsencode(os.environ["COMP_LINE"])[: int(os.environ["COMP_POINT"])]
        line = raw.decode(errors="replace")
        words = split_arg_string(f"{line}\0")  # the last word is there, be it empty
        return words[1:-1], words[-1].removesuffix("\0")

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        """What is to be put in place of what stands behind the last break of the word."""
        found = super().get_completions(args, incomplete)
        option, equals, value = incomplete.partition("=")
        begun = value if equals and option.startswith("--") else incomplete
        breaks = os.environ.get("COMP_WORDBREAKS", ":=")
        kept = 1 + max((begun.rfind(each) for each in ":=" if each in breaks), default=-1)
        for item in found:
            item.value = item.value[kept:]
        return found


class FragirZsh(_Words, ZshComplete):
    """Zsh, with words that are not over."""

    name = "zsh"
    source_template = _ZSH

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        return _whole_words(super().get_completions(args, incomplete), incomplete)


class FragirFish(_Words, FishComplete):
    """Fish, which puts no blank behind a word that ends in a dot, colon, comma or slash."""

    name = "fish"
    source_template = _FISH

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        return _whole_words(super().get_completions(args, incomplete), incomplete)


def _whole_words(found: list[CompletionItem], incomplete: str) -> list[CompletionItem]:
    """Values with the option that stands before them in the same word."""
    option, equals, _ = incomplete.partition("=")
    if equals and option.startswith("--"):
        for item in found:
            item.value = f"{option}={item.value}"
    return found


SHELLS = ("bash", "zsh", "fish")
for _class in (FragirBash, FragirZsh, FragirFish):
    add_completion_class(_class)


def script(shell: str, cli: click.Command) -> str:
    """What a shell is to read to know the words of `fragir` and `fragir-opt`."""
    classes = {"bash": FragirBash, "zsh": FragirZsh, "fish": FragirFish}
    found: Any = classes[shell](cli, {}, "fragir", VARIABLE)
    return str(found.source_template % found.source_vars())


def respond(cli: click.Command) -> int:
    """Answers a shell as the environment asks; the exit code."""
    line = os.environ.get("COMP_LINE", os.environ.get("COMP_WORDS", ""))
    program = os.path.basename(line.split(maxsplit=1)[0]) if line.strip() else "fragir"
    if program == "fragir-opt":
        from fragir.cli.opt_words import opt as cli
    return shell_complete(cli, {}, "fragir", VARIABLE, os.environ[VARIABLE])
