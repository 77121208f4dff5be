# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The check that an operation accounts for the axes along which its operands and results are partial sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_before_barriers, sharding_of
from mlir_shard.dialects.data_flow_edges import has_edges, keeps_argument_shardings
from mlir_shard.host import ir
from mlir_shard.ir.arrays import ModuleArrays
from mlir_shard.ir.editing import attribute_columns, first_names, functions
from mlir_shard.passes.analyses import analysis, held, held_operations
from mlir_shard.passes.registry import Pass, PassFailure, register
from mlir_shard.rules.reduction import reduction_of_body, reduction_op
from mlir_shard.sharding import ManualAxes, Mesh, ReductionOp, TensorSharding
from mlir_shard.sharding.verify import check_unreduced_transition, common_mesh
from mlir_shard.transforms.call_graph import callee
from mlir_shard.transforms.data_flow_edges import MANUAL
from mlir_shard.transforms.shardings import Side, distinct_shardings_of, shardings_in, shardings_of

CALL = "func.call"
RETURNS = ("func.return", "sdy.return")
REDUCING_COLLECTIVES = ("sdy.all_reduce", "sdy.reduce_scatter")
# Operations that may change unreduced axes; their verifiers check these changes.
_EXPLICIT = ("sdy.reshard", "sdy.sharding_constraint")


class UnreducedAxes:
    """A checker of single operations of a module with these functions and meshes.

    Each check returns the first error, as text that follows the operation's name, or None.
    """

    def __init__(self, functions: Mapping[str, Any], meshes: Mapping[str, Mesh]) -> None:
        self._functions = functions
        self._meshes = meshes
        self._by_name: dict[str, Callable[[Any], str | None]] = {
            CALL: self._check_call,
            "func.return": self._check_return,
            "sdy.return": self._check_return,
            "stablehlo.reduce": self._check_reduce,
            "stablehlo.all_reduce": self._check_collective,
            "stablehlo.reduce_scatter": self._check_collective,
            **dict.fromkeys(REDUCING_COLLECTIVES, _check_operand),
            **dict.fromkeys(_EXPLICIT, lambda _: None),
        }

    def check(self, op: Any) -> str | None:
        """Returns an error message for the unreduced axes that an operation does not account for, or None."""
        return self._by_name.get(op.name, self._check_other)(op)

    def _check_other(self, op: Any) -> str | None:
        return self._check_transition(
            _seen(op.operands), _of(op.results), introduced=reduction_op(op) or ReductionOp.SUM
        )

    def _check_reduce(self, op: Any) -> str | None:
        inputs = list(op.operands)[: len(op.results)]
        return self._check_transition(_seen(inputs), _of(op.results), introduced=reduction_op(op))

    def _check_collective(self, op: Any) -> str | None:
        return self._check_transition(_of(op.operands), _of(op.results), removed=reduction_of_body(op))

    def _check_transition(
        self,
        operands: Sequence[TensorSharding | None],
        results: Sequence[TensorSharding | None],
        introduced: ReductionOp | None = None,
        removed: ReductionOp | None = None,
    ) -> str | None:
        mesh = common_mesh(map(self._mesh_of, (*operands, *results)))
        return check_unreduced_transition(operands, results, mesh, introduced=introduced, removed=removed)

    def _mesh_of(self, sharding: TensorSharding | None) -> Mesh | None:
        ref = None if sharding is None else sharding.mesh_or_ref
        return self._meshes.get(ref) if isinstance(ref, str) else ref

    def _check_call(self, call: Any) -> str | None:
        function = self._functions.get(callee(call))
        if function is None:
            return None
        for index, sharding in enumerate(shardings_of(function, Side.ARGUMENTS)):
            if not _is_resharded(call.operands[index]):
                what = f"operand {index}", f"argument {index} of @{callee(call)}"
                if (found := _difference(_sharding(call.operands[index]), sharding, what)) is not None:
                    return found
        for index, sharding in enumerate(shardings_of(function, Side.RESULTS)):
            what = f"result {index}", f"that of @{callee(call)}"
            if (found := _difference(_sharding(call.results[index]), sharding, what)) is not None:
                return found
        return None

    def _check_return(self, terminator: Any) -> str | None:
        for index, (value, sharding) in enumerate(zip(terminator.operands, _returned(terminator), strict=False)):
            if sharding is not None and not _is_resharded(value):
                what = f"operand {index}", f"result {index} of '{terminator.parent.operation.name}'"
                if (found := _difference(_sharding(value), sharding, what)) is not None:
                    return found
        return None


def _check_operand(op: Any) -> str | None:
    if _sharding(op.operands[0]) is None:
        return "requires an operand with a sharding that declares its unreduced axes"
    return None


def _returned(terminator: Any) -> Iterator[TensorSharding | None]:
    """Yields the shardings of the values that a terminator returns, as seen from inside the region."""
    parent = terminator.parent.operation
    if parent.name == "func.func":
        yield from shardings_of(parent, Side.RESULTS)
        return
    manual: ManualAxes | None = parent.attributes["manual_axes"].value if parent.name == MANUAL else None
    for result in parent.results:
        sharding = _sharding(result)
        yield sharding if sharding is None or manual is None else sharding.without_axes(manual.value)


def _difference(sharding: TensorSharding | None, other: TensorSharding | None, what: tuple[str, str]) -> str | None:
    ours = () if sharding is None else sharding.unreduced_axes
    theirs = () if other is None else other.unreduced_axes
    if set(ours) == set(theirs):
        return None
    texts = ["{" + ", ".join(map(str, axes)) + "}" for axes in (ours, theirs)]
    return (
        f"{what[0]} is unreduced along {texts[0]}, but {what[1]} along {texts[1]}: insert an sdy.reshard between "
        "them, or use the same axes"
    )


def _of(values: Any) -> list[TensorSharding | None]:
    return [_sharding(value) for value in values]


def _seen(operands: Any) -> list[TensorSharding | None]:
    """Returns the shardings of operands; None for resharded ones, whose axes the reshard accounts for."""
    return [None if _is_resharded(value) else _sharding(value) for value in operands]


def _sharding(value: Any) -> TensorSharding | None:
    return sharding_before_barriers(value)


def _is_resharded(value: Any) -> bool:
    while not isinstance(value.owner, ir.Block):
        op = value.owner.operation
        if op.name != "sdy.propagation_barrier":
            return op.name in _EXPLICIT
        value = op.operands[0]
    return False


BARRIER = "sdy.propagation_barrier"


@register
class VerifyUnreducedAxes(Pass):
    """Fails if unreduced axes of operands are missing in the results without a reshard or a reducing collective; if new
    ones could not be reduced by a sum or by the reduction of the operation; or if calls and functions, or returned
    values and results, have different unreduced axes."""

    name = "sdy-verify-unreduced-axes"
    anchor = "func.func"
    summary = "Verifies that unreduced axes are reduced or forwarded"

    def run(self, op: Any) -> bool:
        is_unreduced = any(sharding.unreduced_axes for sharding in analysis(shardings_in, op))
        concerned = _concerned(op) if is_unreduced else held_operations(op, CALL, *REDUCING_COLLECTIVES)
        if not concerned:
            return False
        module = sdy.enclosing_module(op)
        known = analysis(functions, module)
        axes = UnreducedAxes(known, sdy.meshes(module))
        for one in concerned if is_unreduced else _but_plain_calls(concerned, known, op):
            message = axes.check(one)
            if message is not None:
                raise PassFailure(f"'{one.name}' op {message}", one)
        return False


def _but_plain_calls(ops: Sequence[Any], known: Mapping[str, Any], function: Any) -> Sequence[Any]:
    """Returns the operations except calls of functions without unreduced axes; `function` has none either."""
    # Shardings that a dialect keeps in other attributes have not been read.
    if held(function).has_any(keeps_argument_shardings) and any(map(keeps_argument_shardings, first_names(function))):
        return ops
    (symbols,) = attribute_columns(ops, "callee")
    plain = {one for one in set(symbols) if one is not None and not _is_unreduced_signature(known.get(one.value))}
    return [op for op, symbol in zip(ops, symbols, strict=True) if symbol is None or symbol not in plain]


def _is_unreduced_signature(function: Any | None) -> bool:
    if function is None:
        return False
    shardings = (one for side in Side for one in distinct_shardings_of(function, side))
    return any(one.unreduced_axes for one in shardings if one is not None)


def _concerned(function: Any) -> list[Any]:
    """Returns the operations that use or define a value with unreduced axes, and those that reduce, call or return."""
    arrays = ModuleArrays(function)
    names = [op.name for op in arrays.representatives()]
    always = {index for index, name in enumerate(names) if name in (CALL, *RETURNS, *REDUCING_COLLECTIVES)}
    unreduced = _unreduced_values(arrays, names)
    return [
        arrays.operation(number)
        for number, signature in enumerate(arrays.signatures)
        if signature in always or not unreduced.isdisjoint((*arrays.operands(number), *arrays.results(number)))
    ]


def _unreduced_values(arrays: ModuleArrays, names: list[str]) -> set[int]:
    """Returns the numbers of the values with unreduced axes, seen through propagation barriers."""
    of_signature: dict[int, list[bool]] = {}
    found = {value for value, definer in enumerate(arrays.definers) if definer < 0 and _is_unreduced(arrays, value)}
    for op, signature in enumerate(arrays.signatures):
        results = arrays.results(op)
        if names[signature] == BARRIER:
            found.update(results if not found.isdisjoint(arrays.operands(op)) else ())
            continue
        known = of_signature.get(signature)
        if known is None:
            known = [_is_unreduced(arrays, value) for value in results]
            # The sharding of an edge is not in the attributes of its operation, hence not in the signature.
            if not has_edges(names[signature]):
                of_signature[signature] = known
        found.update(value for value, is_unreduced in zip(results, known, strict=True) if is_unreduced)
    return found


def _is_unreduced(arrays: ModuleArrays, value: int) -> bool:
    sharding = sharding_of(arrays.value(value).maybe_downcast())
    return sharding is not None and bool(sharding.unreduced_axes)
