# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The passes of the host: whether a name is that of a pass, its options, and the operations that it runs on.

Python cannot list the passes that the host registers. So a name is looked up by parsing `any(name)`, which accepts
every pass. The host prints a parsed pipeline with all options and their defaults, from which these are read. A pipeline
of the host (`sparsifier`) is replaced by its printed text: under a wrong anchor the name itself would abort the
process, while the text is refused with an error.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import tempfile
from typing import Any
from weakref import WeakKeyDictionary

from mlir_shard import host
from mlir_shard.host import ir, passmanager
from mlir_shard.passes.diagnostic import standard_error_to
from mlir_shard.passes.options import did_you_mean, split_options

_NAME = re.compile(r"[\w-]+")
_UNREGISTERED = re.compile(r"'([^']*)' does not refer to a registered pass")
_NO_OPTION = re.compile(r"no such option (\S*)")
_RESTRICTED = re.compile(
    r"Can't add pass '([^']*)' restricted to '([^']*)' on a PassManager intended to run on '([^']*)'"
)
_BAD_VALUE = re.compile(r"for the --(\S+) option: (.*)")


class HostPassError(ValueError):
    """An error of a pass of the host that cannot be made. `wanted_anchor` is the right anchor if that is the error."""

    def __init__(self, message: str, wanted_anchor: str | None = None) -> None:
        super().__init__(message)
        self.wanted_anchor = wanted_anchor


@dataclasses.dataclass(frozen=True, slots=True)
class HostPass:
    """A pass of the host with its options, or the passes of a pipeline of the host.

    text: the pipeline text; anchor: the only operation that it runs on, or None; is_pipeline: whether `text` is the
    expansion of the pipeline `name`.
    """

    name: str
    text: str
    anchor: str | None
    is_pipeline: bool = False


@functools.cache
def _probing_context() -> Any:
    host.register_passes()
    return ir.Context()


def _parse(text: str) -> tuple[str, str]:
    """Returns the pipeline as the host prints it, and the reason of its refusal: one of the two is empty."""
    context = _probing_context()
    if "{" not in text:
        try:
            return str(passmanager.PassManager.parse(text, context)), ""
        except ValueError as error:
            return "", str(error)
    # The host prints the reason why an option is refused to standard error.
    with tempfile.TemporaryFile() as printed:
        try:
            with standard_error_to(printed):
                return str(passmanager.PassManager.parse(text, context)), ""
        except ValueError as error:
            printed.seek(0)
            return "", printed.read().decode(errors="replace") + str(error)


@functools.cache
def is_registered(name: str) -> bool:
    """Returns whether the host has a pass or a pipeline of that name."""
    if not _NAME.fullmatch(name):
        return False
    printed, refused = _parse(f"any({name})")
    return bool(printed) or _UNREGISTERED.search(refused) is None


def _inside(printed: str) -> str:
    return printed[printed.index("(") + 1 : -1]


def _names_itself(name: str, inside: str) -> bool:
    return inside == name or inside.startswith(f"{name}{{")


@functools.cache
def options(name: str) -> tuple[tuple[str, str], ...]:
    """Returns the (name, default value) pairs of the options of a pass of the host; none for a pipeline.

    Options that hold lists have no default value, so the host does not print them.
    """
    inside = _inside(_parse(f"any({name})")[0])
    if not _names_itself(name, inside) or inside == name:
        return ()
    return tuple((key, value or "") for key, value, _ in split_options(inside[len(name) + 1 : -1]))


@functools.cache
def make(name: str, option_text: str = "") -> HostPass:
    """Makes a pass of the host with options.

    Raises:
        HostPassError: the pass does not exist, or does not take one of the options.
    """
    given = f"{name}{{{option_text}}}" if option_text.strip() else name
    printed, refused = _parse(f"any({given})")
    if not printed:
        raise HostPassError(_why(name, option_text, refused))
    inside = _inside(printed)
    if _names_itself(name, inside):
        return HostPass(name, given, _restriction(given))
    return HostPass(name, inside, _restriction(inside), is_pipeline=True)


def _restriction(text: str) -> str | None:
    restricted = _RESTRICTED.search(_parse(f"builtin.module({text})")[1])
    if restricted:
        return restricted.group(2)
    # The right anchor causes no diagnostic, so try another.
    restricted = _RESTRICTED.search(_parse(f"func.func({text})")[1])
    return restricted.group(2) if restricted else None


def check(one: HostPass, anchor: str) -> None:
    """Checks that a pass can be nested in `anchor`.

    Raises:
        HostPassError: the pass cannot be nested there; `wanted_anchor` is the anchor that it can be nested in.
    """
    refused = _parse(f"{anchor}({one.text})")[1]
    if not refused:
        return
    restricted = _RESTRICTED.search(refused)
    if restricted is None:
        raise HostPassError(_why(one.name, one.text, refused))
    raise HostPassError("", wanted_anchor=restricted.group(2))


def _why(name: str, option_text: str, refused: str) -> str:
    unknown = _NO_OPTION.search(refused)
    if unknown:
        known = [key for key, _ in options(name)]
        hint = did_you_mean(unknown.group(1), known) or (f": its options are {', '.join(known)}" if known else "")
        return f"'{name}' has no option '{unknown.group(1)}'{hint}"
    bad = _BAD_VALUE.search(refused)
    if bad:
        no_member = re.match(r"Cannot find option named ('.*')", bad.group(2))
        reason = f"{no_member.group(1)} is not one of its values" if no_member else bad.group(2).rstrip("!")
        return f"option '{bad.group(1)}' of '{name}': {reason}"
    if _UNREGISTERED.search(refused):
        inner = _UNREGISTERED.findall(refused)[0]
        return f"'{inner}' is not a registered host pass" + ("" if inner == name else f" (in the options of '{name}')")
    return f"invalid options '{option_text}' for '{name}'"


def run(text: str, op: Any, *, verify_each: bool) -> None:
    """Runs pipeline text of host passes on an operation.

    Raises:
        ir.MLIRError: a pass failed.
    """
    manager = _manager(text, op.context)
    manager.enable_verifier(verify_each)
    manager.run(op)


# The first run of a pass manager initializes its passes: `canonicalize` collects the patterns of all dialects.
_managers: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()
_MOST_MANAGERS = 64


def _manager(text: str, context: Any) -> Any:
    """Returns the pass manager of pipeline text in a context, which later runs use again."""
    managers = _managers.setdefault(context, {})
    if text not in managers:
        if len(managers) == _MOST_MANAGERS:
            managers.clear()
        managers[text] = passmanager.PassManager.parse(text, context)
    return managers[text]


def class_name(name: str) -> str:
    """Returns the title of a pass in IR dumps and timings: its name as one word, `Canonicalize` for `canonicalize`."""
    acronyms = {"cse", "dce", "sccp", "cf", "scf", "llvm", "gpu", "mpi", "spirv", "nvvm", "rocdl", "sroa", "ir"}
    return "".join(word.upper() if word in acronyms else word.capitalize() for word in name.split("-"))
