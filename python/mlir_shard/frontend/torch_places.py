# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Places of operators in the user's files: of those that a function calls while it is traced, and of errors."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.fx import traceback as node_metadata
from torch.utils._python_dispatch import TorchDispatchMode

_LIBRARIES = tuple(f"{Path(one).parent}/" for one in (torch.__file__, __file__))

_LONGEST_LINE = 60


class _Places(TorchDispatchMode):
    """A mode in which each operator has the line of the user's function that calls it as metadata.

    The tracer records lines only of functions with the name `forward`.
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        frame = sys._getframe(1)
        while frame.f_back is not None and _is_of_library(frame.f_code.co_filename):
            frame = frame.f_back
        code = frame.f_code
        summary = traceback.FrameSummary(code.co_filename, frame.f_lineno, code.co_name)
        node_metadata.set_stack_trace(traceback.StackSummary.from_list([summary]).format())
        return func(*args, **(kwargs or {}))


@contextmanager
def recorded_places() -> Iterator[None]:
    """Records the places of the operators that are traced in this context."""
    with node_metadata.preserve_node_meta(), _Places():
        yield


class WithPlaces(torch.nn.Module):
    """A traced function as a module, whose operators keep their places when they are exported."""

    def __init__(self, traced: torch.fx.GraphModule) -> None:
        super().__init__()
        self.traced = traced

    def forward(self, *args: torch.Tensor) -> Any:
        """Interprets the graph."""
        with node_metadata.preserve_node_meta():
            return torch.fx.Interpreter(self.traced).run(*args)


def line_of_node(node: torch.fx.Node) -> tuple[str, str]:
    """Returns the place of an operator of a graph as the beginning of a message, and its line; empty if not known."""
    lines = [line.strip() for line in (node.stack_trace or "").splitlines()]
    frames = [index for index, line in enumerate(lines) if line.startswith('File "')]
    frames = [index for index in frames if not _is_of_library(_file(lines[index]))]
    if not frames:
        return "", ""
    frame = lines[frames[-1]]
    number = frame.partition(", line ")[2].partition(",")[0]
    return f"{_file(frame)}:{number}: ", "".join(lines[frames[-1] + 1 : frames[-1] + 2])


def line_of_error(error: BaseException) -> tuple[str, str]:
    """Returns the same for the line of the user's function in which an error was raised."""
    frames = [one for one in traceback.extract_tb(error.__traceback__) if not _is_of_library(one.filename)]
    return (f"{frames[-1].filename}:{frames[-1].lineno}: ", frames[-1].line or "") if frames else ("", "")


def in_line(line: str) -> str:
    """Returns a line of a file as part of a message."""
    short = line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…"
    return f" in `{short}`" if line else ""


def _file(line: str) -> str:
    return line.partition('"')[2].partition('"')[0]


def _is_of_library(file: str) -> bool:
    return file.startswith(_LIBRARIES) or file.startswith("<")
