# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes written in Python: declaration, registration by name and lookup.

@register
class CountOps(Pass):
    name = "count-ops"
    anchor = "func.func"
    summary = "Remarks how many operations a function holds"
    nested: bool = option(True, "count inside regions too")

    def run(self, op: ir.Operation) -> None: ...
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import inspect
import pkgutil
import re
import typing
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from mlir_shard.passes.diagnostic import Diagnostic
from mlir_shard.passes.options import Option, declared, format_value, option

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Callable[[Any], Any]:
        """Returns the declaration unchanged: the decorator exists for type checkers alone."""
        return lambda declaration: declaration


class PassFailure(Exception):
    """Raised by a pass that cannot continue, and by `mlir_shard.run` if a pass failed.

    `where` is the operation or the location that the message is about; None is the operation that the pass runs on.
    `notes` are further (message, operation or location) pairs. `diagnostics` has the diagnostics that `run` collected.
    """

    def __init__(
        self,
        message: str = "",
        where: Any = None,
        notes: Sequence[tuple[str, Any]] = (),
        diagnostics: tuple[Diagnostic, ...] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.notes = tuple(notes)
        self.diagnostics = diagnostics


class RegistrationError(TypeError):
    """An error in the declaration of a pass or a pipeline, which prevents its registration."""


@dataclasses.dataclass(frozen=True, slots=True)
class Changes:
    """The operations that a pass has changed: after the pass, these operations alone are verified.

    ops: operations that were created, or got other operands, types or regions. Their users are verified with them.
    moved: operations that were moved, or replaced others with the same result types. Their users are verified only for
        their position after them, and if their verification depends on the operations that define their operands.
    attributed: operations of which attributes alone were changed.
    everywhere: discardable attributes of sdy that may have been changed on any operation, argument or result.
    without: names of operations that do not occur in the operation after the pass.
    analyses: results of analyses of the operation that are valid after the pass, by the function of each.
    """

    ops: Sequence[Any] = ()
    attributed: Sequence[Any] = ()
    everywhere: Sequence[str] = ()
    moved: Sequence[Any] = ()
    without: Collection[str] = ()
    analyses: Mapping[Callable[[Any], Any], Any] = dataclasses.field(default_factory=dict)


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(option,))
@dataclasses.dataclass(kw_only=True, eq=False)
class Pass:
    """A pass: a subclass is a keyword-only dataclass whose fields are its options.

    Attributes:
        name: the command-line name, lower case words separated by dashes.
        anchor: the name of the operations it runs on (`builtin.module`, `func.func`), or None for any operation.
        summary: one line, for `--help`.
        description: more than a line.
        needs: names of operations and discardable attributes, or a predicate on names. If a module has none of them,
            the pass is not run.
    """

    name: ClassVar[str] = ""
    anchor: ClassVar[str | None] = None
    summary: ClassVar[str] = ""
    description: ClassVar[str] = ""
    needs: ClassVar[Collection[str] | Callable[..., bool] | None] = None

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        # Most passes have no options, and the methods of their base: generating them takes time in every process.
        if inspect.get_annotations(cls) or len(cls.__bases__) > 1:
            dataclasses.dataclass(kw_only=True, eq=False)(cls)

    def run(self, op: Any) -> bool | Changes | None:
        """Transforms `op`, an `ir.Operation` of the anchor's name.

        The pass fails if it raises `PassFailure` or emits an error diagnostic. It may change everything inside `op`,
        and nothing outside. The context and the location of `op` are the current ones.

        Returns:
            The changes, which are then verified. False: none. `Changes`: these operations alone; others may have been
            erased, symbols if nothing refers to them. None or True: anything may have changed.
        """
        raise NotImplementedError(f"pass '{self.name}' has no method `run`")

    @classmethod
    def options(cls) -> tuple[Option, ...]:
        """Returns the options of the pass, in the order of their declarations."""
        of_class: Any = cls
        return _options_of(of_class)

    def __str__(self) -> str:
        """Returns the pass as an element of a pipeline, with the options that differ from their defaults."""
        given = [(one.name, getattr(self, one.field), one.default) for one in self.options()]
        texts = [f"{name}={format_value(value)}" for name, value, default in given if value != default]
        return f"{self.name}{{{' '.join(texts)}}}" if texts else self.name


class ModulePass(Pass):
    """A pass on modules."""

    anchor = "builtin.module"


class FunctionPass(Pass):
    """A pass on functions."""

    anchor = "func.func"


@functools.cache
def _options_of(cls: Any) -> tuple[Option, ...]:
    fields = [field for field in dataclasses.fields(cls) if field.init]
    if not fields:
        return ()
    types = typing.get_type_hints(cls)
    return tuple(declared(field.name, types[field.name], field) for field in fields)


@dataclasses.dataclass(frozen=True, slots=True)
class Pipeline:
    """A named sequence of passes: `build(**options)` returns it as text or as a list of passes and texts."""

    name: str
    summary: str
    build: Callable[..., str | Sequence[Pass | str]]
    description: str
    options: tuple[Option, ...]


OWN_PACKAGE = "mlir_shard.transforms"
"""The package that contains the passes of the project."""
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_passes: dict[str, type[Pass]] = {}
_pipelines: dict[str, Pipeline] = {}
_packages: list[str] = []
PassClass = TypeVar("PassClass", bound=type[Pass])
Builder = TypeVar("Builder", bound=Callable[..., str | Sequence[Pass | str]])


def register(pass_class: PassClass) -> PassClass:
    """Registers a subclass of `Pass` under its name: a class decorator.

    Raises:
        RegistrationError: the name is invalid, built in, or taken by another pass, the method `run` is missing, or
            the type of an option cannot be read from text.
    """
    if not (isinstance(pass_class, type) and issubclass(pass_class, Pass)):
        raise RegistrationError(f"{pass_class!r} is not a subclass of mlir_shard.Pass")
    spelling = f"{pass_class.__module__}.{pass_class.__qualname__}"
    _check_name(pass_class.name, spelling, pass_class)
    if pass_class.run is Pass.run:
        raise RegistrationError(f"pass '{pass_class.name}' ({spelling}) has no method `run(self, op)`")
    try:
        pass_class.options()
    except (NameError, TypeError) as error:
        raise RegistrationError(f"pass '{pass_class.name}' ({spelling}): {error}") from error
    _passes[pass_class.name] = pass_class
    return pass_class


def register_pipeline(name: str, summary: str) -> Callable[[Builder], Builder]:
    """Registers a function that builds a pipeline under `name`; the keyword parameters of the function are options.

    The function returns pipeline text (`"a,func.func(b)"`) or a list of passes and such texts. A parameter needs an
    annotation and a default value, which may be an `option` with a help text.
    """

    def decorate(build: Builder) -> Builder:
        spelling = f"{build.__module__}.{build.__qualname__}"
        _check_name(name, spelling, build)
        try:
            options = _parameters_as_options(build)
        except (NameError, TypeError) as error:
            raise RegistrationError(f"pipeline '{name}' ({spelling}): {error}") from error
        _pipelines[name] = Pipeline(name, summary, build, inspect.getdoc(build) or "", options)
        return build

    return decorate


def _parameters_as_options(build: Callable[..., Any]) -> tuple[Option, ...]:
    types = typing.get_type_hints(build)
    options = []
    for parameter in inspect.signature(build).parameters.values():
        default = parameter.default
        field = default if isinstance(default, dataclasses.Field) else dataclasses.field(default=default)
        if default is inspect.Parameter.empty:
            raise TypeError(f"parameter '{parameter.name}' must have a default value")
        options.append(declared(parameter.name, types.get(parameter.name, str), field))
    return tuple(options)


def _check_name(name: str, spelling: str, declaration: Any) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise RegistrationError(f"{spelling}: invalid name {name!r}: expected lower-case words separated by dashes")
    if not _is_in(declaration.__module__, OWN_PACKAGE) and name in _built_in():
        raise RegistrationError(f"{spelling}: '{name}' is the name of a built-in pass or pipeline: choose another name")
    pipeline = _pipelines.get(name)
    other = _passes.get(name) or (pipeline.build if pipeline else None)
    if other is None or other is declaration:
        return
    taken = f"{other.__module__}.{other.__qualname__}"
    # A module that is loaded again declares its passes again.
    if taken != spelling:
        raise RegistrationError(f"{spelling}: the name '{name}' is already used by {taken}")


@functools.cache
def _built_in() -> frozenset[str]:
    """Returns the names of the passes and pipelines of the project and of the host."""
    from mlir_shard.passes import host_listing, own_listing

    own = (own_listing.PASSES_FILE, own_listing.PIPELINES_FILE)
    return frozenset(name for file in (*own, host_listing.PASSES_FILE) for name in host_listing.read_summaries(file))


def search(package: str) -> None:
    """Adds a package whose modules declare passes to the packages that are searched.

    A pass `a-b` is searched in modules `a_b` anywhere below the package, and in the modules that a package below it
    lists in `PASSES`, a mapping from a module's name to the names of the passes and pipelines in it.
    """
    if package not in _packages:
        _packages.append(package)


def find_pass(name: str) -> type[Pass] | None:
    """Returns the registered pass of that name. If none exists yet, imports the module that should declare it."""
    if name not in _passes:
        _import_modules(name)
    return _passes.get(name)


def find_pipeline(name: str) -> Pipeline | None:
    """Returns the registered pipeline of that name, with imports as in `find_pass`."""
    if name not in _pipelines:
        _import_modules(name)
    return _pipelines.get(name)


def is_own(name: str) -> bool:
    """Returns whether the pass or pipeline of that name is one of the project, with imports as in `find_pass`."""
    if (found := find_pass(name)) is not None:
        return _is_in(found.__module__, OWN_PACKAGE)
    pipeline = find_pipeline(name)
    return pipeline is not None and _is_in(pipeline.build.__module__, OWN_PACKAGE)


def registered(besides: str | None = None) -> dict[str, type[Pass]]:
    """Imports all modules of the searched packages, and returns every pass by name, sorted, without those of `besides`.

    The modules of the package `besides` are not imported.
    """
    _import_modules(None, besides)
    return {name: one for name, one in sorted(_passes.items()) if not _is_in(one.__module__, besides)}


def registered_pipelines(besides: str | None = None) -> dict[str, Pipeline]:
    """Returns every pipeline by name, sorted, with imports and omissions as in `registered`."""
    _import_modules(None, besides)
    return {name: one for name, one in sorted(_pipelines.items()) if not _is_in(one.build.__module__, besides)}


def is_searched(package: str) -> bool:
    """Returns whether the modules of a package are searched for passes."""
    return package in _packages


def _is_in(module: str, package: str | None) -> bool:
    return package is not None and module.startswith(f"{package}.")


def _import_modules(name: str | None, besides: str | None = None) -> None:
    """Imports the modules that declare the pass `name`, or all modules if it is None, except those of `besides`."""
    for package in _packages:
        if package == besides:
            continue
        for module, names in _modules_below(package).items():
            if name is None or name in names:
                importlib.import_module(module)


@functools.cache
def _modules_below(package: str) -> dict[str, tuple[str, ...]]:
    """Returns the modules under a package, with the names of their passes. Imports packages, but not the modules."""
    found: dict[str, tuple[str, ...]] = {}
    root = importlib.import_module(package)
    listed = getattr(root, "PASSES", {})
    for entry in pkgutil.iter_modules(root.__path__, f"{package}."):
        if entry.ispkg:
            found |= _modules_below(entry.name)
        else:
            name = entry.name.rpartition(".")[2]
            found[entry.name] = listed.get(name, (name.replace("_", "-"),))
    return found


T = TypeVar("T")
# The shared results of the innermost run of the thread. They hold attributes and types, so they are freed with the run.
_shared: ContextVar[dict[Hashable, Any] | None] = ContextVar("shared", default=None)


@contextlib.contextmanager
def sharing() -> Iterator[None]:
    """Lets the passes that run in the context share results, see `shared`."""
    token = _shared.set({})
    try:
        yield
    finally:
        _shared.reset(token)


def shared(key: Hashable, make: Callable[[], T]) -> T:
    """Returns the result of `make`, computed once for each key in a run, and every time outside of a run."""
    of_run = _shared.get()
    if of_run is None:
        return make()
    if key not in of_run:
        of_run[key] = make()
    found: T = of_run[key]
    return found
