# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The interfaces through which dialects take part in sharding: properties of ops, registered by op name.

    from mlir_shard import interfaces

    interfaces.sharding_rule("attn.scores", text="b h q d, b h k d -> b h q k")
    interfaces.elementwise("attn.scale")
    interfaces.op_priorities("attn.scores", "attn.attend")

Registration is by name, so it works for dialects of any origin: defined in Python and registered by `register_dialect`,
loaded from elsewhere, or not registered at all. A registration applies to every pass that begins afterwards. An
inconsistent registration raises RegistrationError. If a registered function fails for an op, an error that names the
function is emitted at the op. `docs/user-dialects.md` walks through an example.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Mapping
from typing import Any, overload

from mlir_shard.dialects.contexts import register_dialect
from mlir_shard.dialects.data_flow_edges import DataFlowEdge, data_flow_edges
from mlir_shard.dialects.registered_function import InterfaceError, RegistrationError, check_op_names
from mlir_shard.rules import constants, registry
from mlir_shard.rules import elementwise as _elementwise
from mlir_shard.rules.builder import RuleBuilder
from mlir_shard.rules.lowering import lowering
from mlir_shard.rules.partition import BlockedTensor, Blocks, PartitionError, partition_rule
from mlir_shard.rules.reduction import reduces_with
from mlir_shard.rules.registry import RuleFunction, RuleOptions
from mlir_shard.rules.registry import register_op_priorities as op_priorities
from mlir_shard.rules.text import RuleTextError, rule_from_text
from mlir_shard.sharding import OpShardingRule, TensorMapping, TensorSharding
from mlir_shard.sharding.rule import FactorType

__all__ = [
    "BlockedTensor",
    "Blocks",
    "DataFlowEdge",
    "FactorType",
    "InterfaceError",
    "OpShardingRule",
    "PartitionError",
    "RegistrationError",
    "RuleBuilder",
    "RuleOptions",
    "TensorMapping",
    "TensorSharding",
    "constant_foldable",
    "constant_like",
    "constant_op",
    "data_flow_edges",
    "elementwise",
    "lowering",
    "op_priorities",
    "partition_rule",
    "reduces_with",
    "register_dialect",
    "sharding_rule",
]


@overload
def sharding_rule(*names: str, text: str, sizes: Mapping[str, int] = ...) -> None: ...


@overload
def sharding_rule(
    *names: str,
    when: Callable[[Any], bool] | None = ...,
    context_key: Callable[[Any], Hashable] | None = ...,
) -> Callable[[RuleFunction], RuleFunction]: ...


def sharding_rule(
    *names: str,
    text: str | None = None,
    sizes: Mapping[str, int] | None = None,
    when: Callable[[Any], bool] | None = None,
    context_key: Callable[[Any], Hashable] | None = None,
) -> Callable[[RuleFunction], RuleFunction] | None:
    """Registers the sharding rule of ops: how the dimensions of their operands and results correspond.

    With `text` the rule is that text, in the style of einsum, operands before results: `"i k, k j -> i j"`. A word is
    a factor; `(h d)` is a dimension of several factors, `_` is a dimension that cannot be sharded, and `...` stands for
    any leading dimensions. A factor in no result is reduced; types of factors follow the rule:
    `"b i -> b i permutation={i}"`, or `reduction`, `need_replication`, `blocked_propagation`. `sizes` gives the sizes
    of factors that shapes do not determine.

    Without `text` this decorates a function of the op and the `RuleOptions` that returns an `OpShardingRule`, built for
    example by a `RuleBuilder`, or None if the op cannot be sharded:

        @interfaces.sharding_rule("attn.softmax")
        def softmax(op, options):
            *batch, last = op.results[0].type.shape
            ...

    It is called once per distinct op: name, types and attributes; `context_key` returns anything else it depends on.
    `names` are names of ops, or all ops of a dialect, `"attn.*"`; with `when` the rule also applies to every op for
    which `when` returns true, decided once per op name. A later registration for a name replaces an earlier one.
    """
    if text is None:
        if sizes is not None:
            raise RegistrationError("`sizes` are for factors of a rule that is text: specify the `text` too")
        return registry.sharding_rule(*names, when=when, context_key=context_key)
    if when is not None or context_key is not None:
        raise RegistrationError(
            "a rule that is text depends only on shapes: `when` and `context_key` are for functions"
        )
    caller = sys._getframe(1)
    place = f"'{text}' in {caller.f_code.co_filename}:{caller.f_lineno}"
    try:
        rule = rule_from_text(text, place, **(sizes or {}))
    except RuleTextError as error:
        raise RegistrationError(f"the sharding rule of {', '.join(map(repr, names))}: {error}") from error
    registry.sharding_rule(*names)(rule)
    return None


def elementwise(*names: str) -> None:
    """Declares ops, or all ops of a dialect (`"attn.*"`), to be elementwise, like MLIR's trait Elementwise.

    Such ops have a sharding rule with one factor for each dimension; they propagate early; and their results are
    constants if their operands are.
    """
    check_op_names(names)
    _elementwise.register_elementwise(*names)


def constant_like(*names: str) -> None:
    """Declares ops without operands to be constants, like Shardy's trait ConstantLike.

    Each use of a constant gets its own copy, so that unrelated uses may be sharded differently.
    """
    check_op_names(names, dialects=False)
    constants.CONSTANTS.update(names)


def constant_op(*names: str) -> None:
    """Declares ops to be the constants of their dialect: `constant_like`, with the value in an attribute.

    After propagation, equal constants with equal shardings are merged again.
    """
    check_op_names(names, dialects=False)
    constants.CONSTANTS.update(names)
    constants.CONSTANT_OPS.update(names)


def constant_foldable(*names: str) -> None:
    """Declares ops whose results are constants if their operands are, like Shardy's trait ConstantFoldable.

    Examples are slices and reshapes. If all operands are constant, each use of the result gets its own copy, like a use
    of a constant, together with copies of the ops that compute it.
    """
    check_op_names(names, dialects=False)
    constants.CONSTANTS_OF_CONSTANTS.update(names)
