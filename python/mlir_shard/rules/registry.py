# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which sharding rule an op has: rules are registered by op name, by dialect, or by what an op answers to.

Also which ops are known to have no rule, and why, and which ops propagate first.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.registered_function import (
    InterfaceError,
    RegistrationError,
    ask,
    check_op_names,
    check_takes,
    described,
    has_specific_names,
    registered_names,
)
from mlir_shard.host import ir
from mlir_shard.rules.builder import shape_of
from mlir_shard.sharding import OpShardingRule
from mlir_shard.sharding.verify import check_factor_sizes, check_op_sharding_rule


@dataclass(frozen=True, slots=True)
class RuleOptions:
    """What a pass asks of rules.

    `conservative` leaves out factors that need communication to shard. `computing` is for how an op whose tensors have
    their shardings is computed, where that may be in another way than shardings propagate.
    """

    conservative: bool = False
    computing: bool = False


RuleFunction = Callable[[Any, RuleOptions], "OpShardingRule | None"]
ContextKey = Callable[[Any], Hashable]
ROLE = "sharding rule"


class RuleError(InterfaceError):
    """A rule that failed or does not fit its op; `op` is the op it was asked for."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What is registered for ops: see `sharding_rule`."""

    function: RuleFunction
    context_key: ContextKey | None
    any_sizes: bool = False
    computing_context_key: ContextKey | None = None

    def context_key_for(self, options: RuleOptions) -> ContextKey | None:
        """Returns the context key of rules with these options; None if they depend on the op alone."""
        has_own = options.computing and self.computing_context_key is not None
        return self.computing_context_key if has_own else self.context_key

    @property
    def has_context_key(self) -> bool:
        """Whether a rule depends on more than the op, for some options."""
        return self.context_key is not None or self.computing_context_key is not None

    @property
    def is_own(self) -> bool:
        """Whether the rule is one of this package, which has none that are texts."""
        module = self.function.__module__
        return module.startswith("mlir_shard.rules.") and module != "mlir_shard.rules.text"


_by_name: dict[str, Entry] = {}
_by_dialect: dict[str, Entry] = {}
_by_predicate: list[tuple[Callable[[Any], bool], Entry]] = []
_registrations = 0


def sharding_rule(
    *names: str,
    when: Callable[[Any], bool] | None = None,
    context_key: ContextKey | None = None,
    computing_context_key: ContextKey | None = None,
    any_sizes: bool = False,
) -> Callable[[RuleFunction], RuleFunction]:
    """Registers a function as the sharding rule of ops.

    `names` are op names (`"linalg.matmul"`), or dialects (`"math.*"`); custom calls and composites may be named with
    their target or name (`"stablehlo.custom_call:topk"`). With `when` the function is also the
    rule of every op of any dialect that `when` holds for, an interface or a trait say: asked once per op name. An
    op is looked for by name, then by dialect, then by the predicates in the order of their registration; a name
    registered twice has the later rule.

    The function gets the op and the `RuleOptions`, and returns None where the op shards in no way that it knows.
    Rules are asked for once per distinct op: name, operand and result types, attributes. A rule that looks at
    more (a region, the ops around) says by `context_key` what tells two such ops apart; `computing_context_key`
    replaces it for rules with `computing`. A rule for `any_sizes` copies
    sizes of dimensions into those of factors, and goes by nothing of them but which are 1 and which are equal, nor do
    attributes that are equal mean something else for other sizes: propagation asks it once for many sizes.

    Raises RegistrationError for names that are none, and functions that cannot be called that way.
    """
    check_op_names(names)
    if not names and when is None:
        raise RegistrationError("a sharding rule is for ops: give their names, or `when` it is theirs")
    keys = (("`context_key`", context_key), ("`computing_context_key`", computing_context_key))
    for role, asked in (("predicate `when`", when), *keys):
        if asked is not None:
            check_takes(role, asked, "op")

    def register(function: RuleFunction) -> RuleFunction:
        global _registrations
        check_takes(ROLE, function, "op", "options")
        _registrations += 1
        entry = Entry(function, context_key, any_sizes, computing_context_key)
        for name in names:
            if name.endswith(".*"):
                _by_dialect[name.removesuffix(".*")] = entry
            else:
                _by_name[name] = entry
        if when is not None:
            _by_predicate.append((when, entry))
        return function

    return register


def registrations() -> int:
    """How many rules have been registered: what is known of rules holds until it changes."""
    return _registrations


def entry_of(op: Any) -> Entry | None:
    """What is registered for the rule of an op; None where nothing is."""
    for name in registered_names(op):
        entry = _by_name.get(name) or _by_dialect.get(name.removesuffix(".*"))
        if entry is not None:
            return entry
    return next(
        (entry for holds, entry in _by_predicate if ask("predicate of a sharding rule", holds, op, raises=RuleError)),
        None,
    )


def has_rule(op: Any) -> bool:
    """Whether a function is registered that gives the rules of ops like this one; it may have none for `op`."""
    return entry_of(op.operation) is not None


def is_ruled_from_outside(op: Any) -> bool:
    """Whether the sharding rule of `op` comes from a user: from a registration, or from a custom rule on the op."""
    op = op.operation
    entry = entry_of(op)
    if sdy.SHARDING_RULE in op.attributes:
        return entry is None or not entry.is_own or sdy.value(op.attributes[sdy.SHARDING_RULE]).is_custom_rule
    return entry is not None and not entry.is_own


def has_rule_for_any_sizes(name: str) -> bool:
    """Whether rules of ops of this name go by no size of a dimension but as `sharding_rule` says."""
    entry = _by_name.get(name) or _by_dialect.get(name.partition(".")[0])
    return entry is not None and entry.any_sizes and not entry.has_context_key and not has_specific_names(name)


def depends_on_context(op: Any, options: RuleOptions = RuleOptions()) -> bool:
    """Whether the rule of `op` with these options looks at more than its name, types and attributes."""
    entry = entry_of(op.operation)
    return entry is not None and entry.context_key_for(options) is not None


def context_of(op: Any, options: RuleOptions = RuleOptions()) -> tuple[Hashable] | None:
    """What the rule of `op` looks at beside its name, types and attributes; None where it looks at nothing else.

    Raises RuleError where a rule fails to say so.
    """
    entry = entry_of(op.operation)
    key = None if entry is None else entry.context_key_for(options)
    return None if key is None else (asked_context(key, op),)


def asked_context(context_key: ContextKey, op: Any) -> Hashable:
    """What the `context_key` of a rule gives for an op; raises RuleError where it fails."""
    return ask("`context_key` of the sharding rule", context_key, op, raises=RuleError)


def rule_for(op: Any, options: RuleOptions = RuleOptions()) -> OpShardingRule | None:
    """The sharding rule of `op`: the one in its `sdy.sharding_rule` attribute, else the registered one, else None.

    An op with a dynamic dimension has none.
    Raises RuleError where a rule fails, or does not fit the op's operands and results.
    """
    op = op.operation
    if sdy.SHARDING_RULE in op.attributes:
        return _checked(op, sdy.value(op.attributes[sdy.SHARDING_RULE]), lambda: "the op's own attribute")
    entry = entry_of(op)
    return _ask(op, entry, options) if entry is not None and has_static_shapes(op) else None


def _ask(op: Any, entry: Entry, options: RuleOptions) -> OpShardingRule | None:
    rule = ask(ROLE, entry.function, op, options, raises=RuleError)
    if rule is None:
        return None

    def origin() -> str:
        return described(ROLE, entry.function, op)

    checked = _checked(op, rule, origin)
    violation = check_factor_sizes(rule, *_shapes(op))
    if violation:
        raise RuleError(op, f"{origin()} does not fit: {violation}")
    return checked


def _checked(op: Any, rule: Any, origin: Callable[[], str]) -> OpShardingRule:
    if not isinstance(rule, OpShardingRule):
        raise RuleError(op, f"{origin()} gave {_shown(rule)}, but a rule gives an OpShardingRule or None")
    try:
        violation = check_op_sharding_rule(rule, *_shapes(op))
    except (AttributeError, TypeError) as error:
        raise RuleError(
            op, f"{origin()} gave a rule with fields of other types than they have to be: {error}"
        ) from error
    if violation:
        raise RuleError(op, f"{origin()} does not fit: {violation}")
    return rule


def _shapes(op: Any) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    return [shape_of(value.type) for value in op.operands], [shape_of(value.type) for value in op.results]


def _shown(value: Any) -> str:
    text = repr(value)
    kind = type(value).__name__
    return f"{kind} {text}" if len(text) <= 60 and "\n" not in text else f"a {kind}"


def has_static_shapes(op: Any) -> bool:
    """Whether no operand and no result of `op` has a dynamic dimension or no rank."""
    return all(has_static_shape(value.type) for value in (*op.operands, *op.results))


def has_static_shape(type_: Any) -> bool:
    return not isinstance(type_, ir.ShapedType) or (type_.has_rank and type_.has_static_shape)


_reasons: dict[str, str] = {}


def without_rule(*names: str, because: str) -> None:
    """Says that ops, or dialects (`"shape.*"`), have no sharding rule; `because` is a clause for people."""
    sharding_rule(*names)(_none)
    for name in names:
        _reasons[name] = because


def reason_without_rule(name: str) -> str | None:
    """Why ops of this name have no rule; None where nothing is known of them."""
    return _reasons.get(name) or _reasons.get(f"{name.partition('.')[0]}.*")


def _none(op: Any, options: RuleOptions) -> OpShardingRule | None:
    return None


Group = tuple[str, ...]
_order: list[Group] = []


def register_op_priorities(*order: str | Sequence[str]) -> None:
    """Adds ops to the list: each argument is an op, or several that propagate together, after all those before it.

    An op is given by its name, `"attn.scores"`, all of a dialect by `"attn.*"`. What was listed before moves to its
    new place. Raises RegistrationError for names of no op, and for one that is given twice.
    """
    groups = [(group,) if isinstance(group, str) else tuple(group) for group in order]
    check_order(groups)
    names = {name for group in groups for name in group}
    kept = [tuple(name for name in group if name not in names) for group in _order]
    _order[:] = [group for group in (*kept, *groups) if group]


def op_priorities() -> tuple[Group, ...]:
    """The groups that are listed, the first to propagate first."""
    return tuple(_order)


def check_order(groups: Iterable[Group]) -> None:
    """Raises RegistrationError if a group is empty, or has a string that is not an op name or was given before."""
    seen: set[str] = set()
    for group in groups:
        if not group:
            raise RegistrationError("a group of ops that propagate together has at least one")
        check_op_names(group)
        for name in group:
            if name in seen:
                raise RegistrationError(f"'{name}' is given twice, but an op has one place in the order")
            seen.add(name)


def is_among(name: str, group: Group) -> bool:
    """Whether ops of this name are in a group."""
    return name in group or f"{name.partition('.')[0]}.*" in group
