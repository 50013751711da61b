"""`penstock completion`: a script that completes commands, flags and their choices in a shell."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from shlex import quote
from typing import NamedTuple

from penstock.edge.cli.kit.aliases import ALIASES
from penstock.edge.cli.kit.command import Command, argument
from penstock.edge.cli.kit.output import Output

_BASH = """\
# Completion of penstock for bash.  Load it with: source <(penstock completion bash)
_penstock_words() {
  case "$1" in
%s
  esac
}
_penstock() {
  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"
  local first="${COMP_WORDS[1]}" command="" words=""
  if (( COMP_CWORD > 1 )); then
    command="$first"
    if (( COMP_CWORD > 2 )) && [[ -n $(_penstock_words "$first ${COMP_WORDS[2]}") ]]; then
      command="$first ${COMP_WORDS[2]}"
    fi
    words=$(_penstock_words "$command $previous")
  fi
  [[ -n $words ]] || words=$(_penstock_words "$command")
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _penstock penstock
"""
_ZSH = """\
# Completion of penstock for zsh.  Load it with: source <(penstock completion zsh)
autoload -U +X compinit && compinit
autoload -U +X bashcompinit && bashcompinit
"""
_FISH = "# Completion of penstock for fish.  Load it with: penstock completion fish | source\n"


class _Flag(NamedTuple):
    names: tuple[str, ...]
    takes_value: bool
    choices: tuple[str, ...]


class _Completed(NamedTuple):
    """A command with all that may follow it."""

    name: str
    summary: str
    subcommands: tuple[str, ...]
    choices: tuple[str, ...]  # of its arguments
    flags: tuple[_Flag, ...]


def bash() -> str:
    commands = list(_commands())
    cases = [_case("", _first_words(commands))]
    for command in commands:
        flags = [flag.names[-1] for flag in command.flags]
        cases.append(_case(command.name, [*command.subcommands, *command.choices, *flags]))
        cases += [
            _case(f"{command.name} {name}", flag.choices)
            for flag in command.flags
            for name in flag.names
            if flag.choices
        ]
    return _BASH % "\n".join(cases)


def zsh() -> str:
    return _ZSH + bash()


def fish() -> str:
    from penstock.edge.cli.registry import ENTRIES

    commands = list(_commands())
    lines = [
        _fish_line("__fish_use_subcommand", f"-f -a {quote(command.name)}", command.summary)
        for command in commands
        if " " not in command.name
    ]
    for command in commands:
        words = command.name.split()
        used = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in words)
        if command.subcommands:
            used += f"; and not __fish_seen_subcommand_from {' '.join(command.subcommands)}"
        for word in command.subcommands:
            summary = ENTRIES[f"{command.name} {word}"].summary
            lines.append(_fish_line(used, f"-f -a {quote(word)}", summary))
        if command.choices:
            lines.append(_fish_line(used, f"-f -a {quote(' '.join(command.choices))}"))
        for flag in command.flags:
            value = f" -x -a {quote(' '.join(flag.choices))}" if flag.choices else " -r"
            lines.append(
                _fish_line(used, f"-l {flag.names[-1][2:]}" + (value if flag.takes_value else ""))
            )
    return _FISH + "\n".join(lines) + "\n"


_SHELLS = {"bash": bash, "zsh": zsh, "fish": fish}


def _commands() -> Iterator[_Completed]:
    # Imported here: the registry lists this module, too.
    from penstock.edge.cli.registry import ENTRIES, load, parser_of

    for name, entry in ENTRIES.items():
        parser = parser_of(name, load(name))
        flags = tuple(
            _Flag(tuple(action.option_strings), action.nargs != 0, _texts(action.choices))
            for action in parser._actions
            if action.option_strings
        )
        choices = tuple(
            text
            for action in parser._actions
            if not action.option_strings
            for text in _texts(action.choices)
        )
        for shown in (name, ALIASES.get(name)):
            if shown is not None:
                yield _Completed(shown, entry.summary, parser.subcommands, choices, flags)


def _texts(choices: object) -> tuple[str, ...]:
    return tuple(map(str, choices)) if isinstance(choices, list | tuple | dict) else ()


def _first_words(commands: list[_Completed]) -> list[str]:
    return list(dict.fromkeys(command.name.partition(" ")[0] for command in commands))


def _case(words: str, answer: list[str] | tuple[str, ...]) -> str:
    return f"    {quote(words)}) echo {quote(' '.join(answer))} ;;"


def _fish_line(condition: str, rest: str, summary: str = "") -> str:
    line = f"complete -c penstock -n {quote(condition)} {rest}"
    return f"{line} -d {quote(summary)}" if summary else line


def _complete(args: Namespace, out: Output) -> None:
    out.text("script", _SHELLS[args.shell]())


COMMANDS = {
    "completion": Command(
        _complete,
        argument("SHELL", "bash, zsh or fish", choices=list(_SHELLS)),
        more="The script completes commands, flags, and values that are one of a few. It calls "
        "neither penstock nor a server; make it again after an upgrade.",
        examples=(
            "penstock completion bash > ~/.local/share/bash-completion/completions/penstock",
            "source <(penstock completion zsh)",
            "penstock completion fish > ~/.config/fish/completions/penstock.fish",
        ),
    ),
}
