# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a dialect takes part in sharding: what its ops are to propagation, registered by op name.

    from mlir_shard import interfaces

    interfaces.sharding_rule("attn.scores", text="b h q d, b h k d -> b h q k")
    interfaces.elementwise("attn.scale")
    interfaces.op_priorities("attn.scores", "attn.attend")

All of it is by name, so it serves dialects of any origin: defined in Python and registered by `register_dialect`,
loaded from elsewhere, or not registered at all. What is registered counts for every pass that begins afterwards.
Whatever cannot be as it is said raises RegistrationError; what goes wrong when an op is asked about becomes an error
at the op that names the function. `docs/user-dialects.md` walks through an example.
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
    """Registers the sharding rule of ops: how the dimensions of their operands and results go together.

    With `text` the rule is that text, in the manner of einsum, operands before results: `"i k, k j -> i j"`. A word is
    a factor; `(h d)` is a dimension made of several, `_` one that cannot be sharded, `...` any leading dimensions.
    A factor in no result is reduced; types of factors are said behind: `"b i -> b i permutation={i}"`, or
    `reduction`, `need_replication`, `blocked_propagation`. `sizes` gives the factors that shapes leave open.

    Without `text` this decorates a function of the op and the `RuleOptions` that gives an `OpShardingRule`, made by
    for example a `RuleBuilder`, or None where the op cannot be sharded:

        @interfaces.sharding_rule("attn.softmax")
        def softmax(op, options):
            *batch, last = op.results[0].type.shape
            ...

    It is called once per distinct op: name, types and attributes; `context_key` returns what else it depends on.
    `names` are names of ops, or all of a dialect, `"attn.*"`; with `when` the rule is also that of every op for which
    `when` holds, decided once per op name. A later registration for a name replaces an earlier one.
    """
    if text is None:
        if sizes is not None:
            raise RegistrationError("`sizes` gives factors of a rule that is text: give the `text` too")
        return registry.sharding_rule(*names, when=when, context_key=context_key)
    if when is not None or context_key is not None:
        raise RegistrationError("a rule that is text looks at shapes alone: `when` and `context_key` are for functions")
    caller = sys._getframe(1)
    place = f"'{text}' in {caller.f_code.co_filename}:{caller.f_lineno}"
    try:
        rule = rule_from_text(text, place, **(sizes or {}))
    except RuleTextError as error:
        raise RegistrationError(f"the sharding rule of {', '.join(map(repr, names))}: {error}") from error
    registry.sharding_rule(*names)(rule)
    return None


def elementwise(*names: str) -> None:
    """Declares ops, or all of a dialect (`"attn.*"`), to be elementwise, like MLIR's trait Elementwise.

    They have the sharding rule of such ops, one factor for each dimension; they propagate early; and constants that go
    through them stay constants.
    """
    check_op_names(names)
    _elementwise.register_elementwise(*names)


def constant_like(*names: str) -> None:
    """Declares ops without operands to be constants, like Shardy's trait ConstantLike.

    Each use of it gets a copy of its own, so that unrelated uses may be sharded differently.
    """
    check_op_names(names, dialects=False)
    constants.CONSTANTS.update(names)


def constant_op(*names: str) -> None:
    """Declares ops to be the constants of their dialect: `constant_like`, with their value in an attribute.

    After propagation, equal ones with equal shardings become one again.
    """
    check_op_names(names, dialects=False)
    constants.CONSTANTS.update(names)
    constants.CONSTANT_OPS.update(names)


def constant_foldable(*names: str) -> None:
    """Declares ops to make constants of constants, like Shardy's trait ConstantFoldable: slices, reshapes.

    Where all their operands are constant, their result is split like a constant, with all that makes it.
    """
    check_op_names(names, dialects=False)
    constants.CONSTANTS_OF_CONSTANTS.update(names)
