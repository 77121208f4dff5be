# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Resolves pipeline text, `builtin.module(a,b{x=1},func.func(c))`, to passes of the project, plugins and the host."""

from __future__ import annotations

import copy
import dataclasses
import functools
import re
from collections.abc import Iterable, Sequence

from mlir_shard.passes import host_listing, host_passes, own_listing, plugins, registry
from mlir_shard.passes.host_passes import HostPass, HostPassError
from mlir_shard.passes.options import OptionError, did_you_mean, read_options, skip_group
from mlir_shard.passes.registry import Pass, Pipeline


class PipelineError(ValueError):
    """An error of a pipeline that cannot be run: malformed text, an unknown name or option, a wrong nesting.

    `text` is the pipeline's text, empty if none exists, and `offset` is the position of the error in it, in
    characters.
    """

    def __init__(self, message: str, text: str = "", offset: int = 0) -> None:
        super().__init__(f"{message} (at character {offset + 1} of '{text}')" if text else message)
        self.message = message
        self.text = text
        self.offset = offset

    def at(self, text: str, offset: int) -> PipelineError:
        """Returns the same error with another place."""
        return PipelineError(self.message, text, offset)


class NestingError(PipelineError):
    """An error of a pass or pipeline that runs on `wanted`, nested in `anchor`; `what` is "pass" or "pipeline"."""

    def __init__(self, what: str, name: str, wanted: str, anchor: str, text: str = "", offset: int = 0) -> None:
        where = f"move it out of {anchor}(...)" if wanted == MODULE else f"write {wanted}({name})"
        super().__init__(f"{what} '{name}' runs on {wanted}, not on {anchor}: {where}", text, offset)
        self._of = (what, name, wanted, anchor)

    def at(self, text: str, offset: int) -> PipelineError:
        """Returns the same error with another place."""
        return NestingError(*self._of, text, offset)

    def of_pipeline(self, name: str, anchor: str) -> PipelineError:
        """Returns the error for the pipeline `name` on `anchor` that contains the wrongly nested pass or pipeline."""
        _, _, wanted, inside = self._of
        if inside != anchor:
            return PipelineError(f"in pipeline '{name}': {self.message}")
        return NestingError("pipeline", name, wanted, anchor)


@dataclasses.dataclass(frozen=True, slots=True)
class Element:
    """A name in a pipeline: a pass or pipeline with options, or an anchor around `children`."""

    name: str
    offset: int
    options: str = ""
    options_offset: int = 0
    children: tuple[Element, ...] | None = None


_WORD = re.compile(r"[A-Za-z0-9_.$-]+")


def parse(text: str) -> tuple[Element, ...]:
    """Parses the elements of a pipeline.

    Raises:
        PipelineError: the text is malformed.
    """
    reader = _Reader(text)
    elements = reader.elements()
    if reader.at < len(text):
        raise reader.error(f"unexpected '{text[reader.at]}'")
    return elements


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def error(self, message: str) -> PipelineError:
        return PipelineError(message, self.text, self.at)

    def skip_space(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def take(self, character: str) -> bool:
        self.skip_space()
        if self.text[self.at : self.at + 1] == character:
            self.at += 1
            return True
        return False

    def elements(self) -> tuple[Element, ...]:
        self.skip_space()
        if self.at == len(self.text) or self.text[self.at] == ")":
            return ()
        found = [self.element()]
        while self.take(","):
            found.append(self.element())
        self.skip_space()
        return tuple(found)

    def element(self) -> Element:
        self.skip_space()
        word = _WORD.match(self.text, self.at)
        if word is None:
            raise self.error("expected the name of a pass or an operation")
        self.at = word.end()
        options, options_offset = "", 0
        if self.text[self.at : self.at + 1] == "{":
            options_offset = self.at + 1
            try:
                self.at = skip_group(self.text, self.at)
            except OptionError as error:
                self.at = error.offset
                raise self.error(error.message) from None
            options = self.text[options_offset : self.at - 1]
        if not self.take("("):
            return Element(word.group(), word.start(), options, options_offset)
        if options:
            self.at = options_offset
            raise self.error(f"'{word.group()}' contains passes and cannot have options")
        children = self.elements()
        if not self.take(")"):
            raise self.error(f"expected ')' after the passes of '{word.group()}'")
        return Element(word.group(), word.start(), children=children)


MODULE = "builtin.module"
ANY = "any"


@dataclasses.dataclass(frozen=True, slots=True)
class Nest:
    """Steps that run on each operation named `anchor` (for `any`, each operation) directly inside the current one."""

    anchor: str
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return f"{self.anchor}({','.join(map(step_text, self.steps))})"


Step = Pass | HostPass | Nest


def step_text(step: Step) -> str:
    """Returns a step as pipeline text."""
    return step.text if isinstance(step, HostPass) else str(step)


def from_text(text: str) -> Nest:
    """Resolves the text of a pipeline, `anchor(...)`. The result has its own instances of all passes.

    Raises:
        PipelineError: the text is malformed, or a name, an option or the nesting is wrong.
    """
    built_in = _of_built_in(text)
    return _resolved(parse(text), text) if built_in is None else _copied(built_in)


@functools.lru_cache(maxsize=64)
def _of_built_in(text: str) -> Nest | None:
    """Resolves the text of a pipeline in which all names are built in, as others may be registered again; else None."""
    elements = parse(text)
    left = list(elements)
    while left:
        element = left.pop()
        if element.children is not None:
            left += element.children
        elif not registry.is_own(element.name) and not host_passes.is_registered(element.name):
            return None
    return _resolved(elements, text)


def _copied(nest: Nest) -> Nest:
    return Nest(nest.anchor, tuple(_copied(one) if isinstance(one, Nest) else copy.copy(one) for one in nest.steps))


def _resolved(elements: tuple[Element, ...], text: str) -> Nest:
    if len(elements) != 1 or elements[0].children is None:
        raise PipelineError(f"the pipeline must be wrapped in the operation it runs on: {MODULE}({text.strip()})", text)
    return _nest(elements[0], text, ())


def from_passes(passes: Iterable[Pass | str], anchor: str = MODULE) -> Nest:
    """Makes a pipeline on `anchor` of passes and texts; passes that run on another operation are nested in it.

    Raises:
        PipelineError: there is an error in a text, or a pass cannot run on any operation inside `anchor`.
    """
    return from_steps(_resolve_all(passes, anchor, ()), anchor)


def from_steps(steps: Iterable[Step], anchor: str = MODULE) -> Nest:
    """Makes a pipeline on `anchor` of steps; passes that run on another operation are nested in it.

    Raises:
        PipelineError: a pass cannot run on any operation inside `anchor`.
    """
    return Nest(anchor, tuple(_auto_nested(steps, anchor)))


def check_runs_on(nest: Nest, op_name: str, text: str = "") -> None:
    """Checks that a pipeline can run on an operation of that name; `text` is the text of the pipeline.

    Raises:
        PipelineError: the pipeline runs on another operation.
    """
    if nest.anchor not in (ANY, op_name):
        raise PipelineError(f"the pipeline runs on {nest.anchor}, not on {op_name}: write {op_name}({nest})", text)


def _resolve_all(passes: Iterable[Pass | str], anchor: str, active: tuple[str, ...]) -> Iterable[Step]:
    for one in passes:
        if isinstance(one, Pass):
            yield one
        elif isinstance(one, str):
            for element in parse(one):
                if element.children is not None and element.name == anchor:
                    yield from _nest(element, one, active).steps
                else:
                    yield from _resolve(element, one, anchor, active)
        else:
            raise PipelineError(f"a pipeline must consist of passes and pipeline texts, got {one!r}")


def _nest(element: Element, text: str, active: tuple[str, ...]) -> Nest:
    if "." not in element.name and element.name != ANY:
        is_pass = is_known(element.name)
        what = (
            "is a pass and cannot contain passes"
            if is_pass
            else ("is not an operation: expected an anchor such as func.func")
        )
        raise PipelineError(f"'{element.name}' {what}", text, element.offset)
    steps: list[Step] = []
    for child in element.children or ():
        for step in _resolve(child, text, element.name, active):
            try:
                _check_nesting(step, element.name)
            except PipelineError as error:
                raise error.at(text, child.offset) from None
            steps.append(step)
    return Nest(element.name, tuple(steps))


def is_known(name: str) -> bool:
    """Returns whether there is a pass or a pipeline of that name."""
    return bool(registry.find_pass(name) or registry.find_pipeline(name) or host_passes.is_registered(name))


def _resolve(element: Element, text: str, anchor: str, active: tuple[str, ...]) -> tuple[Step, ...]:
    if element.children is not None:
        return (_nest(element, text, active),)
    try:
        return make(element.name, element.options, anchor, active)
    except OptionError as error:
        raise PipelineError(error.message, text, element.options_offset + error.offset) from None
    except PipelineError as error:
        raise error.at(text, element.offset) from None


def make(name: str, options: str = "", anchor: str = MODULE, active: tuple[str, ...] = ()) -> tuple[Step, ...]:
    """Makes the pass of that name with options from text, or the steps on `anchor` of the pipeline of that name.

    `active` names the pipelines that are being expanded.

    Raises:
        PipelineError: a pass or pipeline does not exist, or a pipeline contains itself.
        OptionError: an option is unknown or has an invalid value.
    """
    pass_class = registry.find_pass(name)
    if pass_class is not None:
        return (pass_class(**read_options(options, pass_class.options(), name)),)
    known = registry.find_pipeline(name)
    if known is not None:
        return _expand(known, options, anchor, active)
    if not host_passes.is_registered(name):
        raise PipelineError(f"'{name}' is neither a pass nor a pipeline{did_you_mean(name, known_names())}")
    try:
        one = host_passes.make(name, options)
    except HostPassError as error:
        raise OptionError(str(error)) from None
    if not one.is_pipeline:
        return (one,)
    steps = tuple(step for element in parse(one.text) for step in _resolve(element, one.text, anchor, active))
    if anchor not in (ANY, MODULE) and any(_wanted_anchor(step, anchor) == MODULE for step in steps):
        raise NestingError("pipeline", name, MODULE, anchor)
    return steps


def _expand(known: Pipeline, options: str, anchor: str, active: tuple[str, ...]) -> tuple[Step, ...]:
    if known.name in active:
        raise PipelineError(f"pipeline '{known.name}' contains itself, through {' and '.join(active)}")
    values = {one.field: one.default for one in known.options} | read_options(options, known.options, known.name)
    built = known.build(**values)
    passes: Sequence[Pass | str] = (built,) if isinstance(built, str) else built
    try:
        return from_steps(_resolve_all(passes, anchor, (*active, known.name)), anchor).steps
    except NestingError as error:
        raise error.of_pipeline(known.name, anchor) from None
    except (OptionError, PipelineError) as error:
        raise PipelineError(f"in pipeline '{known.name}': {error.message}") from None


def known_names() -> tuple[str, ...]:
    """Returns every name that a pipeline may use: passes and pipelines of the project, of plugins and of the host."""
    plugins.load_installed()
    return tuple(dict.fromkeys((*own_listing.passes(), *own_listing.pipelines(), *host_listing.summaries())))


def _auto_nested(steps: Iterable[Step], anchor: str) -> Iterable[Step]:
    """Wraps each pass that runs on another operation than `anchor` in a nest, and consecutive ones in one nest."""
    gathered: list[Step] = []
    nested_last = False
    for step in steps:
        wanted = None if isinstance(step, Nest) else step.anchor
        if wanted in (None, anchor):
            gathered.append(step)
            nested_last = False
            continue
        if wanted == MODULE and not isinstance(step, Nest):
            # Only modules contain modules.
            raise NestingError("pass", step.name, MODULE, anchor)
        last = gathered[-1] if gathered else None
        if nested_last and isinstance(last, Nest) and last.anchor == wanted:
            gathered[-1] = Nest(wanted, (*last.steps, step))
        else:
            gathered.append(Nest(wanted, (step,)))
        nested_last = True
    for step in gathered:
        _check_nesting(step, anchor)
    return gathered


def _check_nesting(step: Step, anchor: str) -> None:
    wanted = _wanted_anchor(step, anchor)
    if wanted is not None and not isinstance(step, Nest):
        raise NestingError("pass", step.name, wanted, anchor)


def _wanted_anchor(step: Step, anchor: str) -> str | None:
    """Returns the name of the operation that a pass runs on. None if the pass can run on `anchor`."""
    if isinstance(step, HostPass):
        try:
            host_passes.check(step, anchor)
            return None
        except HostPassError as error:
            if error.wanted_anchor is None:
                raise PipelineError(str(error)) from None
            return None if anchor == ANY else error.wanted_anchor
    wanted = None if isinstance(step, Nest) else step.anchor
    return None if anchor in (ANY, wanted) else wanted
