# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes of users: Python files given by path, and installed packages that declare an entry point.

A package declares in its pyproject.toml

    [project.entry-points."mlir_shard.plugins"]
    mine = "my_package.passes"

and the module is imported when names are looked up; importing it registers the passes that it declares.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
from pathlib import Path

from mlir_shard.passes.diagnostic import Diagnostic, Position, error, of_exception

ENTRY_POINT_GROUP = "mlir_shard.plugins"


class PluginError(ImportError):
    """An error of a plugin that cannot be loaded; `diagnostic` has the reason and the place."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


def load_file(path: str) -> None:
    """Runs a Python file that registers passes. Appends its folder to the import path.

    Raises:
        PluginError: the file does not exist or is not Python, or it raised an exception.
    """
    resolved = Path(path).resolve()
    if not resolved.is_file():
        reason = "it is a directory" if resolved.is_dir() else "no such file"
        raise PluginError(error(f"cannot load '{path}': {reason}"))
    name = f"mlir_shard_plugin:{resolved}"
    if name in sys.modules:
        return
    spec = importlib.util.spec_from_file_location(name, resolved)
    if spec is None or spec.loader is None:
        raise PluginError(error(f"cannot load '{path}': it is not a Python file (its name does not end in .py)"))
    if str(resolved.parent) not in sys.path:
        sys.path.append(str(resolved.parent))
    module = importlib.util.module_from_spec(spec)
    # Annotations are resolved in the module, so it has to be registered while it runs.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as syntax:
        del sys.modules[name]
        position = Position(syntax.filename or path, syntax.lineno or 1, syntax.offset or 1)
        raise PluginError(Diagnostic("error", f"cannot load '{path}': {syntax.msg}", position)) from syntax
    except (Exception, SystemExit) as exception:
        del sys.modules[name]
        raise PluginError(of_exception(exception, f"cannot load '{path}':", str(resolved))) from exception


@functools.cache
def load_installed() -> tuple[Diagnostic, ...]:
    """Imports the modules of the entry-point group; returns a warning for each that cannot be imported."""
    if not _some_package_has_plugins():
        return ()
    from importlib import metadata

    warnings = []
    for entry in metadata.entry_points(group=ENTRY_POINT_GROUP):
        try:
            entry.load()
        except (Exception, SystemExit) as exception:
            prefix = f"cannot load the plugin '{entry.name}' ({entry.value}):"
            warnings.append(of_exception(exception, prefix, None, severity="warning"))
    return tuple(warnings)


def _some_package_has_plugins() -> bool:
    """Returns whether an installed package mentions the group, in a hundredth of the time of `importlib.metadata`."""
    for folder in sys.path:
        try:
            entries = list(os.scandir(folder or os.curdir))
        except OSError:
            continue
        for entry in entries:
            if not entry.name.endswith((".dist-info", ".egg-info")):
                continue
            try:
                text = Path(entry.path, "entry_points.txt").read_bytes()
            except OSError:
                continue
            if ENTRY_POINT_GROUP.encode() in text:
                return True
    return False
