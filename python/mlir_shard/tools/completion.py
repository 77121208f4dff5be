# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Completion of command lines in bash: a script that contains all completions.

The script is printed once, when the shell is set up, so that completion does not start Python.
"""

from __future__ import annotations

import argparse
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

_FILE_VALUES = ("FILE", "FILE.py", "DIR", "ARRAYS")


@dataclass(frozen=True)
class Completions:
    """The completions of a command.

    flags: the flags, with their dashes. values: the values by flag, if a value is the next word or follows an equals
    sign; by text that ends with an equals sign, such as `--pass=option=`, if a value can only follow this text.
    files: the flags whose values are files.
    """

    flags: Sequence[str]
    values: Mapping[str, Sequence[str]] = field(default_factory=dict)
    files: Sequence[str] = ()


def of_parser(parser: argparse.ArgumentParser) -> Completions:
    """Returns the flags of an argparse parser; values are the choices of arguments, or names of a reader `OneOf`."""
    flags: list[str] = []
    values: dict[str, Sequence[str]] = {}
    files: list[str] = []
    for action in parser._actions:
        flags += action.option_strings
        choices = action.choices if action.choices is not None else getattr(action.type, "names", ())
        for flag in action.option_strings:
            if action.nargs != 0 and choices:
                values[flag] = tuple(map(str, choices))
            elif action.metavar in _FILE_VALUES:
                files.append(flag)
    return Completions(flags, values, files)


def of_shard_opt() -> Completions:
    """Returns the options of shard-opt, and all passes and pipelines with their options, including those of plugins."""
    from mlir_shard.passes import host_listing, host_passes, registry
    from mlir_shard.tools.command_line import OPTIONS

    flags, values, files = [], dict[str, Sequence[str]](), []
    for name, option in OPTIONS.items():
        flag = f"-{name}" if len(name) == 1 else f"--{name}"
        flags.append(flag)
        if option.value in _FILE_VALUES:
            files.append(flag)
        elif option.value.islower():
            values[flag] = option.value.split("|")
    pipelines = {name: one.options for name, one in registry.registered_pipelines().items()}
    own = pipelines | {name: one.options() for name, one in registry.registered().items()}
    for name, options in own.items():
        values[f"--{name}="] = [f"{option.name}=" for option in options]
        values |= {f"--{name}={option.name}=": option.names for option in options}
    for name in host_listing.summaries():
        if name not in own:
            values[f"--{name}="] = [f"{option}=" for option, _ in host_passes.options(name)]
    passes = [*own, *(name for name in host_listing.summaries() if name not in own)]
    values["--help"] = values["-h"] = values["--mlir-print-ir-before"] = values["--mlir-print-ir-after"] = passes
    return Completions([*flags, "-h", *(f"--{name}" for name in passes)], values, files)


_BASH = """\
# Completion of {command} in bash. To set it up: eval "$({command} --print-completion=bash)"
{function}() {{
    local line=${{COMP_LINE:0:COMP_POINT}} IFS=$' \\t\\n'
    local word=${{line##*[[:space:]]}}
    local before=${{line%"$word"}}
    before=${{before%"${{before##*[![:space:]]}}"}}
    local previous=${{before##*[[:space:]]}} key='' typed=$word found='' files=''
    case $word in
        -*=*) key=${{word%=*}}= typed=${{word##*=}} ;;
        -*) found=$({function}_flags) ;;
        *) key=$previous files=1 ;;
    esac
    case $key in
{cases}
    esac
    # The shell has split the word at equals signs, and replaces what is behind the last.
    if [[ $word == -*=* && $COMP_WORDBREAKS != *=* ]]; then
        found=" $found"
        found=${{found// / $key}}
        typed=$word
    fi
    COMPREPLY=()
    if [[ -n $found ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$found" -- "$typed")
        # Behind an equals sign there is more to come.
        [[ ${{#COMPREPLY[@]}} -eq 1 && ${{COMPREPLY[0]}} == *= ]] && compopt -o nospace 2> /dev/null
    fi
    if [[ -n $files ]]; then
        local path
        while IFS= read -r path; do COMPREPLY+=("$path"); done < <(compgen -f -- "$typed")
        compopt -o filenames 2> /dev/null
    fi
    return 0
}}
{function}_flags() {{
    printf '%s\\n' {flags}
}}
complete -F {function} {command}
"""


def script(command: str, completions: Completions) -> str:
    """Returns the text of the script that completes a command in bash 4 or later."""
    return _BASH.format(
        command=command,
        function=f"_{command.replace('-', '_')}",
        cases="\n".join(_cases(completions)),
        flags=" ".join(map(shlex.quote, completions.flags)),
    )


def _cases(completions: Completions) -> Iterator[str]:
    keys: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for key, names in completions.values.items():
        keys[tuple(names)] += [key] if key.endswith("=") else [key, f"{key}="]
    for names, of_names in keys.items():
        if names:
            yield f"        {_pattern(of_names)}) found={shlex.quote(' '.join(names))} files='' ;;"
    if completions.files:
        yield f"        {_pattern([f'{flag}=' for flag in completions.files])}) files=1 ;;"


def _pattern(keys: Sequence[str]) -> str:
    return "|".join(map(shlex.quote, keys))
