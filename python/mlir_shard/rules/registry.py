# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The registry of sharding rules: rules are registered by op name, by dialect, or by a predicate on ops.

Also the ops that are known to have no rule, with the reason, and the order in which ops propagate.
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
    """Options of a pass for the rules it uses.

    `conservative` leaves out factors that need communication to shard. `computing` is for the rule by which an op is
    computed once its tensors have shardings, which may differ from the rule by which shardings propagate.
    """

    conservative: bool = False
    computing: bool = False


RuleFunction = Callable[[Any, RuleOptions], "OpShardingRule | None"]
ContextKey = Callable[[Any], Hashable]
ROLE = "sharding rule"


class RuleError(InterfaceError):
    """The error of a rule that failed or does not fit its op, which is `op`."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A registration for ops, see `sharding_rule`."""

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
        """Whether the rule is one of this package; rules from text are not."""
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
    their target or name (`"stablehlo.custom_call:topk"`). With `when` the function is also the rule of every op of any
    dialect for which `when` holds, an interface or a trait for example: `when` is called once per op name. An op is
    looked up by name, then by dialect, then by the predicates in the order of their registration; if a name is
    registered twice, the later rule is used.

    The function gets the op and the `RuleOptions`, and returns None if it cannot shard the op. It is called once per
    distinct op: name, operand and result types, attributes. If a rule depends on more (a region, the ops around),
    `context_key` returns a key that distinguishes such ops; `computing_context_key` replaces it for rules with
    `computing`. A rule for `any_sizes` copies the sizes of dimensions to factors, depends on sizes only by which are 1
    and which are equal, and reads equal attributes in the same way for all sizes: propagation calls it once for many
    sizes.

    Raises RegistrationError if a name is not valid, or if a function cannot be called this way.
    """
    check_op_names(names)
    if not names and when is None:
        raise RegistrationError("a sharding rule must name at least one op, or have a predicate `when`")
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
    """Returns how many rules have been registered; cached rules are valid until this number changes."""
    return _registrations


def entry_of(op: Any) -> Entry | None:
    """Returns the registration of the rule of an op; None if none exists."""
    for name in registered_names(op):
        entry = _by_name.get(name) or _by_dialect.get(name.removesuffix(".*"))
        if entry is not None:
            return entry
    return next(
        (entry for holds, entry in _by_predicate if ask("predicate of a sharding rule", holds, op, raises=RuleError)),
        None,
    )


def has_rule(op: Any) -> bool:
    """Returns whether a function is registered for the rules of ops like this one; it may return None for `op`."""
    return entry_of(op.operation) is not None


def is_ruled_from_outside(op: Any) -> bool:
    """Returns whether the sharding rule of `op` is a user's: from a registration, or a custom rule on the op."""
    op = op.operation
    entry = entry_of(op)
    if sdy.SHARDING_RULE in op.attributes:
        return entry is None or not entry.is_own or sdy.value(op.attributes[sdy.SHARDING_RULE]).is_custom_rule
    return entry is not None and not entry.is_own


def has_rule_for_any_sizes(name: str) -> bool:
    """Returns whether rules of ops of this name depend on sizes of dimensions only as `sharding_rule` allows."""
    entry = _by_name.get(name) or _by_dialect.get(name.partition(".")[0])
    return entry is not None and entry.any_sizes and not entry.has_context_key and not has_specific_names(name)


def depends_on_context(op: Any, options: RuleOptions = RuleOptions()) -> bool:
    """Returns whether the rule of `op` with these options depends on more than its name, types and attributes."""
    entry = entry_of(op.operation)
    return entry is not None and entry.context_key_for(options) is not None


def context_of(op: Any, options: RuleOptions = RuleOptions()) -> tuple[Hashable] | None:
    """Returns the context key of the rule of `op`, in a tuple; None if the rule depends on the op alone.

    Raises RuleError if the function that gives the key fails.
    """
    entry = entry_of(op.operation)
    key = None if entry is None else entry.context_key_for(options)
    return None if key is None else (asked_context(key, op),)


def asked_context(context_key: ContextKey, op: Any) -> Hashable:
    """Returns the key that the `context_key` of a rule gives for an op. Raises RuleError if it fails."""
    return ask("`context_key` of the sharding rule", context_key, op, raises=RuleError)


def rule_for(op: Any, options: RuleOptions = RuleOptions()) -> OpShardingRule | None:
    """Returns the sharding rule of `op`: that in its `sdy.sharding_rule` attribute, else the registered one, else None.

    Registered rules do not apply to an op with a dynamic dimension. Raises RuleError if a rule fails, or does not fit
    the op's operands and results.
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
        raise RuleError(op, f"{origin()} does not match the op: {violation}")
    return checked


def _checked(op: Any, rule: Any, origin: Callable[[], str]) -> OpShardingRule:
    if not isinstance(rule, OpShardingRule):
        raise RuleError(op, f"{origin()} returned {_shown(rule)}, but must return an OpShardingRule or None")
    try:
        violation = check_op_sharding_rule(rule, *_shapes(op))
    except (AttributeError, TypeError) as error:
        raise RuleError(op, f"{origin()} returned a rule with fields of invalid types: {error}") from error
    if violation:
        raise RuleError(op, f"{origin()} does not match the op: {violation}")
    return rule


def _shapes(op: Any) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    return [shape_of(value.type) for value in op.operands], [shape_of(value.type) for value in op.results]


def _shown(value: Any) -> str:
    text = repr(value)
    kind = type(value).__name__
    return f"{kind} {text}" if len(text) <= 60 and "\n" not in text else f"a {kind}"


def has_static_shapes(op: Any) -> bool:
    """Returns whether all operands and results of `op` that are shaped are ranked and have no dynamic dimension."""
    return all(has_static_shape(value.type) for value in (*op.operands, *op.results))


def has_static_shape(type_: Any) -> bool:
    return not isinstance(type_, ir.ShapedType) or (type_.has_rank and type_.has_static_shape)


_reasons: dict[str, str] = {}


def without_rule(*names: str, because: str) -> None:
    """Registers that ops, or dialects (`"shape.*"`), have no sharding rule; `because` is a clause with the reason."""
    sharding_rule(*names)(_none)
    for name in names:
        _reasons[name] = because


def reason_without_rule(name: str) -> str | None:
    """Returns the reason why ops of this name have no rule; None if no reason is registered."""
    return _reasons.get(name) or _reasons.get(f"{name.partition('.')[0]}.*")


def _none(op: Any, options: RuleOptions) -> OpShardingRule | None:
    return None


Group = tuple[str, ...]
_order: list[Group] = []


def register_op_priorities(*order: str | Sequence[str]) -> None:
    """Adds ops to the list: each argument is an op, or several that propagate together, after all those before it.

    An op is given by its name, `"attn.scores"`, all of a dialect by `"attn.*"`. Names that were listed before move to
    their new place. Raises RegistrationError if a name is not that of an op, or is given twice.
    """
    groups = [(group,) if isinstance(group, str) else tuple(group) for group in order]
    check_order(groups)
    names = {name for group in groups for name in group}
    kept = [tuple(name for name in group if name not in names) for group in _order]
    _order[:] = [group for group in (*kept, *groups) if group]


def op_priorities() -> tuple[Group, ...]:
    """Returns the groups that are listed; the first one propagates first."""
    return tuple(_order)


def check_order(groups: Iterable[Group]) -> None:
    """Raises RegistrationError if a group is empty, or has a string that is not an op name or was given before."""
    seen: set[str] = set()
    for group in groups:
        if not group:
            raise RegistrationError("a group of ops that propagate together must not be empty")
        check_op_names(group)
        for name in group:
            if name in seen:
                raise RegistrationError(f"'{name}' is given twice, but an op can have only one place in the order")
            seen.add(name)


def is_among(name: str, group: Group) -> bool:
    """Returns whether ops of this name are in a group."""
    return name in group or f"{name.partition('.')[0]}.*" in group
