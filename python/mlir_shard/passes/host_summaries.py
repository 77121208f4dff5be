# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One line on each pass of the host, and on its options where something is known about them.

The host does not give the summaries of its passes to Python. The opt tool that may come with it knows those of some;
the others are worded here, or follow from their names.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import subprocess
from collections.abc import Mapping

from mlir_shard import host
from mlir_shard.passes.host_summary_table import SUMMARIES


@dataclasses.dataclass(frozen=True, slots=True)
class Summary:
    """What is known of a pass: `text` is one line, `options` says what each option is for."""

    text: str
    options: Mapping[str, str]


_PASS = re.compile(r" {6}--([\w-]+)(?:=\S+)? +- +(.*)")
_CONVERSION = re.compile(r"(?:convert-)?(.+?)(?:-legalize)?-to-(.+)")
_OPTION = re.compile(r" {8}--([\w-]+)(?:=\S+)? +- +(.*)")


@functools.cache
def _from_opt_tool() -> Mapping[str, Summary]:
    tool = host.opt_tool()
    if tool is None:
        return {}
    try:
        printed = subprocess.run([str(tool), "--help"], capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        # It may be built for another system; the passes can be listed without it.
        return {}
    found: dict[str, Summary] = {}
    options: dict[str, str] = {}
    for line in printed.splitlines():
        if one := _PASS.fullmatch(line):
            options = {}
            found[one[1]] = Summary(one[2], options)
        elif one := _OPTION.fullmatch(line):
            options[one[1]] = one[2]
    return found


def summary(name: str) -> Summary:
    """What is known of a pass of the host."""
    told = _from_opt_tool().get(name)
    if told and told.text:
        return told
    conversion = _CONVERSION.fullmatch(name)
    said_by_name = f"Convert {_words(conversion[1])} to {_words(conversion[2])}" if conversion else ""
    return Summary(SUMMARIES.get(name, said_by_name), told.options if told else {})


def _words(text: str) -> str:
    return text.replace("-", " ")
