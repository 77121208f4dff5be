# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Turns a fork of the server into a process as `python -m` starts it."""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import importlib
import io
import os
import runpy
import signal
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TextIO

# Variables that an interpreter, its C library and the imported modules read when they start. Those that only jax reads
# may be absent from the request, because a process that loads jax gets them from the process that starts it.
_READ_AT_START = ("PYTHON", "LD_", "MALLOC_", "GLIBC_", "LC_", "LANG", "MLIR_SHARD_HOST")
_READ_BY_JAX = ("JAX_",)
_APPLIED = ("PYTHONPATH", "PYTHONSAFEPATH")
# The same signals as in the client.
FORWARDED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
# The exit status of Python if it cannot write the rest of its output.
_FLUSH_FAILED = 120


@dataclass(frozen=True)
class Request:
    """The start of a client: its command, directory, environment and descriptors, and its ignored signals."""

    module: str
    arguments: list[str]
    directory: bytes
    environment: dict[bytes, bytes]
    descriptors: list[int]
    ignored: list[int]

    @property
    def loads_jax(self) -> bool:
        """True if the request is for a process with devices of PJRT."""
        return self.module == "mlir_shard.runtime.launch.rank" and "pjrt" in self.arguments

    def variable(self, name: str) -> str:
        """Returns a variable of the environment, or an empty text if it is not set."""
        return os.fsdecode(self.environment.get(os.fsencode(name), b""))

    def path(self) -> list[str]:
        """Returns the entries of `sys.path` before those of the interpreter."""
        entries = [entry for entry in self.variable("PYTHONPATH").split(os.pathsep) if entry]
        is_safe = self.variable("PYTHONSAFEPATH") and sys.version_info >= (3, 11)
        directory = os.fsdecode(self.directory)
        return ([] if is_safe else [directory]) + [os.path.join(directory, entry) for entry in entries]


class Template:
    """The environment and the path with which the server was started, and the modules that it has imported since."""

    def __init__(self) -> None:
        self._environment = _read_at_start(os.environ)
        given = {os.path.abspath(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry}
        self._path = [entry for entry in sys.path if entry]
        self._own_path = [entry for entry in self._path if entry not in given]
        self._modules = {name for name in sys.modules if "." not in name} - {__package__}

    def fits(self, request: Request) -> bool:
        """Returns True if a process started for a request would have imported the same modules as the server."""
        environment = _read_at_start(
            {os.fsdecode(key): os.fsdecode(value) for key, value in request.environment.items()}
        )
        differing = {name for name, _ in self._environment.items() ^ environment.items()}
        if any(name in environment or not name.startswith(_READ_BY_JAX) for name in differing):
            return False
        path = self.path(request)
        if [entry for entry in path if entry in self._path] != self._path:
            return False
        return not any(self._modules & _modules_in(entry) for entry in path if entry not in self._path)

    def path(self, request: Request) -> list[str]:
        """Returns `sys.path` of a process started for a request."""
        return list(dict.fromkeys([*request.path(), *self._own_path]))


def run(request: Request, descriptors: Sequence[int], template: Template) -> NoReturn:
    """Turns this fork into the requested process, and ends in the same way."""
    _place_descriptors(descriptors, request.descriptors)
    os.chdir(request.directory)
    os.environb.clear()
    os.environb.update(request.environment)
    for number in FORWARDED:
        default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        signal.signal(number, signal.SIG_IGN if number in request.ignored else default)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream = _stream(number, name) if number in request.descriptors else None
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    sys.path[:] = template.path(request)
    sys.argv = [request.module, *request.arguments]
    importlib.invalidate_caches()
    # The environment determines the folder at its first use.
    tempfile.tempdir = None
    sys.modules.pop(request.module, None)
    _end(_execute(request.module))


def _read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(_READ_AT_START + _READ_BY_JAX) and name not in _APPLIED
    }


def _modules_in(folder: str) -> set[str]:
    """Returns the names of modules that can be imported from a folder, and of all other files in it."""
    try:
        return {name.partition(".")[0] for name in os.listdir(folder)}
    except OSError:
        return set()


def _place_descriptors(received: Sequence[int], wanted: Sequence[int]) -> None:
    """Moves the received files to the wanted numbers, and closes all other files."""
    above = max([*received, *wanted, 2]) + 1
    moved = [fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, above) for number in received]
    os.closerange(0, above)
    for number, target in zip(moved, wanted, strict=True):
        os.dup2(number, target)
    os.closerange(above, max(moved, default=above) + 1)


def _stream(number: int, name: str) -> TextIO:
    """Returns a standard stream as an interpreter makes it when it starts."""
    like: Any = getattr(sys, f"__{name}__")
    raw = os.fdopen(number, "rb" if name == "stdin" else "wb", closefd=False)
    is_by_line = name == "stderr" or os.isatty(number)
    stream = io.TextIOWrapper(raw, like.encoding, like.errors, line_buffering=is_by_line)
    stream.mode = "r" if name == "stdin" else "w"
    return stream


def _execute(module: str) -> int:
    """Runs a module as the main one, and returns its exit status."""
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            return (error.code or 0) & 0xFF
        print(error.code, file=sys.stderr)
        return 1
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
        if isinstance(error, KeyboardInterrupt):
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
        return 1
    return 0


def _end(status: int) -> NoReturn:
    """Ends as an interpreter does, but without destroying its objects, which takes longer than everything else."""
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except OSError as error:
            if stream is sys.stdout:
                print(f"Exception ignored in: {stream!r}\n{type(error).__name__}: {error}", file=sys.stderr)
                status = _FLUSH_FAILED
    # This also flushes the output of C and C++.
    ctypes.CDLL(None).exit(status)
    os._exit(status)
