"""``userdp completion``: scripts with which shells complete commands, options and their values."""

from __future__ import annotations

import argparse

from userdp.cli.arguments import commands_of, options_of
from userdp.cli.rows import Answer, Commands, option

SHELLS = ("bash", "zsh", "fish")
BASH = """_userdp() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} words=
    if [ "$COMP_CWORD" -eq 1 ]; then
        words="{commands}"
    else
        case "${{COMP_WORDS[1]}} ${{COMP_WORDS[COMP_CWORD-1]}}" in
{values}
            *) case "${{COMP_WORDS[1]}}" in
{options}
            esac ;;
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _userdp userdp
"""
"""Where no word fits, files are offered (`-o default`)."""

COMMANDS = Commands()


@COMMANDS.add(
    "completion",
    "print a script for completion in bash, zsh or fish",
    "Print a script that makes the shell complete commands, options and values.",
    "userdp completion bash > ~/.local/share/bash-completion/completions/userdp\n"
    'eval "$(userdp completion zsh)"      # in ~/.zshrc, after compinit\n'
    "userdp completion fish > ~/.config/fish/completions/userdp.fish",
    option("shell", SHELLS),
)
def completion(options: argparse.Namespace) -> Answer:
    """Run the command."""
    return Answer(script(options.parser, options.shell).removesuffix("\n"))


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """The script for a shell."""
    commands = commands_of(parser)
    return _fish(commands) if shell == "fish" else _bash(commands, shell)


def _bash(commands: dict[str, argparse.ArgumentParser], shell: str) -> str:
    values, options = [], []
    for name, command in commands.items():
        actions = options_of(command)
        for action in actions:
            flags = action.option_strings or ([name] if action.choices else [])
            if flags and action.nargs != 0:  # after an option that takes a value, no other option is offered
                places = "|".join(f'"{name} {flag}"' if action.option_strings else f'"{name} {name}"' for flag in flags)
                values.append(f'            {places}) words="{" ".join(action.choices or ())}" ;;')
        flags = [flag for action in actions for flag in action.option_strings]
        options.append(f'                {name}) words="{" ".join(flags)}" ;;')
    text = BASH.format(commands=" ".join(commands), values="\n".join(values), options="\n".join(options))
    return f"autoload -U +X bashcompinit && bashcompinit\n{text}" if shell == "zsh" else text


def _fish(commands: dict[str, argparse.ArgumentParser]) -> str:
    lines = [f"complete -c userdp -n __fish_use_subcommand -f -a '{' '.join(commands)}'"]
    for name, command in commands.items():
        for action in options_of(command):
            parts = [f"complete -c userdp -n '__fish_seen_subcommand_from {name}'"]
            parts += [f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in action.option_strings]
            if action.choices:
                parts.append(f"-x -a '{' '.join(action.choices)}'")
            elif action.nargs != 0:
                parts.append("-r")
            if action.option_strings or action.choices:
                lines.append(" ".join(parts))
    return "\n".join(lines) + "\n"
