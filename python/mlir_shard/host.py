# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The MLIR bindings of the host. Only this file depends on the package that contains them.

The bindings are searched under the names in `CANDIDATES`, in that order. If the environment variable
`MLIR_SHARD_HOST` names another package, no other is tried. The resolved prefix follows LLVM's
eudsl-python-extras.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from mlir_shard.deferred import Deferred
from mlir_shard.uninterrupted import uninterrupted

CANDIDATES = ("mlir", "torch_mlir")
ENVIRONMENT_VARIABLE = "MLIR_SHARD_HOST"


class HostError(ImportError):
    """The error that no usable MLIR bindings are installed, or that they lack something this project needs."""


def _is_bindings(package: str) -> bool:
    """Returns whether `package` is a build of MLIR's Python bindings, not a namesake or a placeholder."""
    try:
        return importlib.util.find_spec(f"{package}._mlir_libs") is not None
    except ModuleNotFoundError:
        return False


def _resolve() -> str:
    chosen = os.environ.get(ENVIRONMENT_VARIABLE)
    if chosen:
        if not _is_bindings(chosen):
            raise HostError(f"{ENVIRONMENT_VARIABLE}={chosen}: no package of that name holds MLIR's Python bindings")
        return chosen
    for candidate in CANDIDATES:
        if _is_bindings(candidate):
            return candidate
    raise HostError(
        f"MLIR's Python bindings were not found under any of the names {', '.join(CANDIDATES)}: install them with "
        f"`pip install torch-mlir`, or set {ENVIRONMENT_VARIABLE} to their package"
    )


PREFIX = _resolve()


def module(name: str) -> ModuleType:
    """Returns the module `name` of the bindings, such as `"ir"` or `"dialects.linalg"`."""
    try:
        # A KeyboardInterrupt in an import by native code would abort the process.
        with uninterrupted():
            return importlib.import_module(f"{PREFIX}.{name}")
    except ImportError as error:
        raise HostError(f"the MLIR bindings in `{PREFIX}` cannot load `{name}`: {error}") from error


def _ir() -> ModuleType:
    """Imports the module `ir` without NumPy, whose import is the slowest part: `ir` imports it at its first use."""
    if "numpy" in sys.modules:
        return module("ir")

    def real() -> ModuleType:
        end()
        return importlib.import_module("numpy")

    def end() -> None:
        if sys.modules.get("numpy") is stand_in:
            del sys.modules["numpy"]

    stand_in = sys.modules["numpy"] = Deferred("numpy", real)
    try:
        return module("ir")
    finally:
        end()


if TYPE_CHECKING:
    ir: Any
    passmanager: Any
    rewrite: Any
else:
    ir = _ir()
    passmanager = module("passmanager")


def __getattr__(name: str) -> ModuleType:
    if name == "rewrite":
        return module("rewrite")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def dialect(name: str) -> Any:
    """Returns the host's wrappers of the dialect `name`, imported at the first use: importing linalg takes 0.1 s."""
    return Deferred(name, lambda: module(f"dialects.{name}"))


def execution_engine() -> ModuleType:
    """Returns the host's JIT, `ExecutionEngine`."""
    return module("execution_engine")


def runtime() -> ModuleType:
    """Returns the host's conversions between NumPy arrays and memref descriptors."""
    return module("runtime")


def _extension(name: str) -> ModuleType:
    return module(f"_mlir_libs.{name}")


def library_directory() -> Path:
    """Returns the folder of the host's shared libraries."""
    return Path(_extension("_mlir").__file__ or "").parent


def capi_library() -> Path:
    """Returns the shared library that exports MLIR's C API."""
    for path in sorted(library_directory().glob("lib*CAPI*.so*")) + sorted(library_directory().glob("lib*CAPI*.dylib")):
        return path
    raise HostError(f"the MLIR bindings in `{PREFIX}` have no library with the C API in {library_directory()}")


def capsule_prefix() -> str:
    """Returns the prefix of the names of the capsules of C API objects in the bindings; the class name follows it."""
    return f"{_extension('_mlir').__name__.split('.')[0]}.ir."


# Guards the registrations, which are made once for all threads.
_registration = threading.Lock()
_passes_registered = False


def register_passes() -> None:
    """Registers the passes of StableHLO; the bindings register upstream's passes. Idempotent."""
    global _passes_registered
    with _registration:
        if not _passes_registered:
            _extension("_stablehlo").register_stablehlo_passes()
            _passes_registered = True


def stablehlo_version() -> tuple[int, ...]:
    """Returns the version of StableHLO in the bindings."""
    return tuple(map(int, _extension("_stablehlo").get_current_version().split(".")))


# The bindings have no function that registers CHLO and VHLO: running passes that depend on them loads them.
_DIALECT_CARRIERS = "builtin.module(func.func(stablehlo-complex-math-expander),stablehlo-legalize-to-vhlo)"


# The bindings search for a Python module of wrappers whenever they create a view of an operation. These dialects have
# no such module, so each search would scan the import path again.
_DIALECTS_WITHOUT_WRAPPERS = ("stablehlo", "chlo", "vhlo", "sdy")


def _forestall_wrapper_lookups() -> None:
    with _registration:
        for name in _DIALECTS_WITHOUT_WRAPPERS:
            full_name = f"{PREFIX}.dialects.{name}"
            if full_name not in sys.modules and importlib.util.find_spec(full_name) is None:
                sys.modules[full_name] = ModuleType(full_name)


def _view_elements(attribute: Any) -> Any:
    """Returns the view of an elements attribute, including complex numbers, for which the bindings raise TypeError."""
    element_type = ir.ShapedType(attribute.type).element_type
    if isinstance(element_type, ir.FloatType):
        return ir.DenseFPElementsAttr(attribute)
    if isinstance(element_type, (ir.IntegerType, ir.IndexType)):
        return ir.DenseIntElementsAttr(attribute)
    return ir.DenseElementsAttr(attribute)


_views_registered = False


def _register_views(context: Any) -> None:
    global _views_registered
    with _registration:
        if not _views_registered:
            identity = ir.Attribute.parse("dense<0> : tensor<i1>", context).typeid
            ir.register_type_caster(identity, replace=True)(_view_elements)
            _views_registered = True


def load_upstream(context: Any) -> None:
    """Loads every upstream dialect, StableHLO, CHLO and VHLO into a context, and makes the context single-threaded."""
    register_passes()
    _forestall_wrapper_lookups()
    context.enable_multithreading(False)
    _extension("_stablehlo").register_dialect(context, load=True)
    _register_views(context)
    with context, ir.Location.unknown():
        passmanager.PassManager.parse(_DIALECT_CARRIERS).run(ir.Module.create().operation)
