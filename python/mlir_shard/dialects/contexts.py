# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Contexts for the programs of this project, and the registry of user dialects that every context loads.

A user dialect is defined in Python, as IRDL text, or in another package.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from mlir_shard import host
from mlir_shard.dialects import sdy
from mlir_shard.dialects.registered_function import RegistrationError, check_takes
from mlir_shard.host import ir

Loader = Callable[[Any], None]
_loaders: dict[str, Loader] = {}
# The first and the last of the dialects that `prepare` loads into every context.
_MARKS = ("stablehlo", "sdy")


class DialectError(ImportError):
    """A registered dialect cannot be loaded into a context."""


def register_dialect(dialect: Any) -> Any:
    """Registers a dialect to be loaded into every context that is created from now on; also a class decorator.

    `dialect` is a dialect defined in Python (a subclass of the bindings' `dialects.ext.Dialect`), the text of an IRDL
    module, or a function of the context that loads a dialect from elsewhere, such as a C++ extension. It replaces a
    dialect of the same name, or a function of the same name in the same module. Returns `dialect`.

    Raises RegistrationError for anything else.
    """
    if isinstance(dialect, str):
        _loaders[dialect] = lambda context: _load_irdl(dialect)
    elif _is_python_dialect(dialect):
        _loaders[dialect.DIALECT_NAMESPACE] = lambda context: dialect.load()
    elif callable(dialect) and not inspect.isclass(dialect):
        check_takes("loader of a dialect", dialect, "context")
        _loaders[f"{dialect.__module__}.{dialect.__qualname__}"] = dialect
    else:
        raise RegistrationError(
            f"{dialect!r} is not a dialect: expected a subclass of ext.Dialect, IRDL text, or a function of the context"
        )
    return dialect


def _is_python_dialect(dialect: Any) -> bool:
    return isinstance(dialect, type) and issubclass(dialect, ir.Dialect) and hasattr(dialect, "load")


def load(context: Any) -> None:
    """Loads all registered dialects. Raises DialectError if one cannot be loaded."""
    with context, ir.Location.unknown():
        for name, loader in _loaders.items():
            try:
                loader(context)
            except Exception as error:
                shown = "from IRDL text" if "\n" in name else f"'{name}'"
                raise DialectError(f"the dialect {shown} cannot be loaded: {error}") from error


def _load_irdl(text: str) -> None:
    host.dialect("irdl").load_dialects(ir.Module.parse(text))


def create_context(*, allow_unregistered: bool = False) -> Any:
    """Returns an `ir.Context` with upstream's dialects, StableHLO, CHLO, VHLO, sdy, and registered user dialects.

    Args:
        allow_unregistered: whether operations of other dialects can be parsed in generic form.
    """
    context = ir.Context()
    context.allow_unregistered_dialects = allow_unregistered
    prepare(context)
    return context


def prepare(context: Any) -> None:
    """Loads the dialects of `create_context` into any context of the bindings, once for each context.

    This turns multithreading off: the verifiers of sdy are in Python, which runs in one thread at a time. Programs are
    small compared to the cost of starting threads, and runs stay deterministic.
    """
    if all(map(context.is_dialect_loaded, _MARKS)):
        return
    host.load_upstream(context)
    sdy.load(context)
    load(context)
