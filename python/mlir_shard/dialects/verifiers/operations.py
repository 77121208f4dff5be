# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The verifier of each sdy operation, attached to the dialect when it is loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from mlir_shard.dialects.data_flow import ARGUMENT_OWNERS, owning_op, sharding_of
from mlir_shard.dialects.mesh_definitions import meshes_in
from mlir_shard.dialects.verifiers.checks import (
    Check,
    Violation,
    check_one_operand,
    check_ranked_tensors,
    check_same_type,
    check_shaped,
    check_static_result,
    integer,
    optional,
    reduction_op,
    require,
    required,
    required_string,
    shape_of,
    verifier,
)
from mlir_shard.dialects.verifiers.meshes import find_mesh, mesh_lookup
from mlir_shard.dialects.verifiers.sharding import (
    bound_manual_axes,
    check_becomes_sharding,
    check_sharding,
    check_sharding_attribute,
    check_shardings,
)
from mlir_shard.host import ir
from mlir_shard.sharding import (
    AllToAllParamList,
    AxisRefList,
    ListOfAxisRefLists,
    ManualAxes,
    Mesh,
    PropagationDirection,
    TensorSharding,
    TensorShardingPerValue,
)
from mlir_shard.sharding.verify import (
    check_all_gather,
    check_all_reduce,
    check_all_slice,
    check_all_to_all,
    check_collective,
    check_collective_permute,
    check_device_numbers,
    check_manual_axes,
    check_manual_values,
    check_reduce_scatter,
    check_replicated_to_unreduced,
    check_sharded_to_unreduced,
    check_tensor_sharding,
)
from mlir_shard.sharding.verify.tensor import NoShape, Shape


@dataclass(frozen=True, slots=True)
class _Collective:
    """The check of a collective.

    Attributes:
        check: takes the shardings of the operand and the result, the attribute, the reduction if the collective
            `reduces`, and the mesh; without attribute, the shardings and both meshes. Returns an error message or None.
        attribute: the name and the type of the attribute that contains the axes.
    """

    check: Callable[..., str | None]
    attribute: tuple[str, type] | None = None
    reduces: bool = False
    operand_may_lack_sharding: bool = False
    meshes_may_differ: bool = False

    def __call__(self, op: Any) -> None:
        """Raises Violation if an op breaks an invariant of all collectives or of this collective."""
        operand = sharding_of(op.operands[0])
        result = required(op, "out_sharding", TensorSharding)
        operand_mesh = None if operand is None else find_mesh(operand, op)
        mesh = find_mesh(result, op)
        shape = shape_of(op.results[0].type)
        require(
            check_collective(
                operand,
                result,
                operand_mesh,
                mesh,
                shape,
                operand_may_lack_sharding=self.operand_may_lack_sharding,
                meshes_may_differ=self.meshes_may_differ,
                manual_axes=bound_manual_axes(op),
            )
        )
        # An invalid sharding of the operand is reported where it is attached.
        if operand is not None and check_tensor_sharding(operand, operand_mesh, shape) is not None:
            return
        if self.attribute is None:
            require(_checked(self.check, operand, result, operand_mesh, mesh))
        else:
            reduction = (reduction_op(op),) if self.reduces else ()
            require(_checked(self.check, operand, result, required(op, *self.attribute), *reduction, mesh))


@lru_cache(maxsize=1 << 14)
def _checked(check: Callable[..., str | None], *values: Any) -> str | None:
    """Returns the result of the check of a collective, cached because layers repeat their collectives."""
    return check(*values)


_PER_DIM, _AXES = ListOfAxisRefLists, AxisRefList
COLLECTIVES: Mapping[str, Check] = {
    "sdy.all_gather": _Collective(check_all_gather, ("gathering_axes", _PER_DIM)),
    "sdy.all_slice": _Collective(check_all_slice, ("slicing_axes", _PER_DIM), operand_may_lack_sharding=True),
    "sdy.all_to_all": _Collective(check_all_to_all, ("params", AllToAllParamList)),
    "sdy.collective_permute": _Collective(check_collective_permute, meshes_may_differ=True),
    "sdy.all_reduce": _Collective(
        check_all_reduce, ("reduction_axes", _AXES), reduces=True, operand_may_lack_sharding=True
    ),
    "sdy.reduce_scatter": _Collective(
        check_reduce_scatter, ("reduce_scatter_axes", _PER_DIM), reduces=True, operand_may_lack_sharding=True
    ),
    "sdy.sharded_to_unreduced": _Collective(check_sharded_to_unreduced, ("axes", _PER_DIM)),
    "sdy.replicated_to_unreduced": _Collective(check_replicated_to_unreduced, ("axes", _AXES)),
}


def check_body(op: Any) -> None:
    """Checks that the operation has one region with one block that ends with sdy.return."""
    if len(op.regions) != 1 or len(op.regions[0].blocks) != 1:
        blocks = [len(region.blocks) for region in op.regions]
        raise Violation(f"requires one region with one block, got {len(blocks)} regions with {sum(blocks)} blocks")
    last = _last_op(op)
    if last is None or last.name != "sdy.return":
        end = "nothing" if last is None else f"'{last.name}'"
        raise Violation(f"has a body that ends with {end}, but must end with 'sdy.return'")


def _last_op(op: Any) -> Any | None:
    operations = op.regions[0].blocks[0].operations
    count = len(operations)
    return operations[count - 1].operation if count else None


def _argument_types(op: Any) -> list[Any]:
    return [argument.type for argument in op.regions[0].blocks[0].arguments]


def _returned_types(op: Any) -> list[Any]:
    terminator = _last_op(op)
    return [] if terminator is None else [operand.type for operand in terminator.operands]


def check_manual_computation(op: Any) -> None:
    """Checks the manual axes, the in and out shardings, and that these give the types of the body."""
    manual = required(op, "manual_axes", ManualAxes)
    ins = required(op, "in_shardings", TensorShardingPerValue)
    outs = required(op, "out_shardings", TensorShardingPerValue)
    mesh_of = mesh_lookup(op)
    meshes = {sharding.mesh_or_ref: mesh_of(sharding) for sharding in (*ins, *outs)}
    sides = [
        ([value.type for value in op.operands], _argument_types(op)),
        ([value.type for value in op.results], _returned_types(op)),
    ]
    shapes = tuple(tuple(map(_hashed_shape, types)) for side in sides for types in side)
    for kind, violation in zip(
        (None, "operand", "result"),
        _manual_violations(manual, ins, outs, tuple(meshes.items()), shapes, frozenset(bound_manual_axes(op))),
        strict=True,
    ):
        require(violation)
        if kind is not None:
            _check_same_elements(kind, *sides[kind == "result"])


def _hashed_shape(type_: Any) -> Shape:
    shape = shape_of(type_)
    return shape if isinstance(shape, NoShape) else tuple(shape)


@lru_cache(1024)
def _manual_violations(
    manual: ManualAxes,
    ins: TensorShardingPerValue,
    outs: TensorShardingPerValue,
    meshes: tuple[tuple[str | Mesh, Mesh | None], ...],
    shapes: tuple[tuple[Shape, ...], ...],
    bound: frozenset[str],
) -> tuple[str | None, str | None, str | None]:
    """Returns the violations of the manual axes, of the operands and of the results; None for one without violation.

    Args:
        manual, ins, outs: the attributes of a manual computation.
        meshes: the meshes of all shardings, each with the name or mesh in the sharding.
        shapes: the shapes of the operands, the arguments of the body, the results and the returned values of the body.
        bound: the manual axes of the enclosing manual computations.
    """
    known = dict(meshes)

    def mesh_of(sharding: TensorSharding) -> Mesh | None:
        return known[sharding.mesh_or_ref]

    # The axes are checked before the local types, because an unknown axis also changes the local types.
    has_meshes = all(mesh is not None for mesh in known.values())
    of_axes = check_manual_axes(manual, ins, outs, mesh_of, manual_axes=bound) if has_meshes else None
    operands, arguments, results, returned = shapes
    return (
        of_axes,
        check_manual_values(ins, manual, mesh_of, operands, arguments, kind="operand", manual_axes=bound),
        check_manual_values(outs, manual, mesh_of, results, returned, kind="result", manual_axes=bound),
    )


def _check_same_elements(kind: str, whole: Sequence[Any], local: Sequence[Any]) -> None:
    for index, (outside, inside) in enumerate(zip(whole, local, strict=True)):
        if not _differ_in_shape_only(outside, inside):
            raise Violation(
                f"{kind} {index} has type {outside}, but its counterpart in the body, which may differ only in "
                f"shape, has type {inside}"
            )


def _differ_in_shape_only(one: Any, other: Any) -> bool:
    if isinstance(one, ir.RankedTensorType) and isinstance(other, ir.RankedTensorType):
        return one.element_type == other.element_type
    return one == other


def check_named_computation(op: Any) -> None:
    """Checks that the body takes the operands' types and returns the results', and the in and out shardings."""
    operands, results = [value.type for value in op.operands], [value.type for value in op.results]
    _check_same_types("operand", operands, "takes", _argument_types(op))
    _check_same_types("result", results, "returns", _returned_types(op))
    for name, types, kind in (("in_shardings", operands, "operand"), ("out_shardings", results, "result")):
        shardings = optional(op, name, TensorShardingPerValue)
        if shardings is not None:
            check_shardings(shardings, types, op, kind)


def _check_same_types(kind: str, outer: Sequence[Any], verb: str, inner: Sequence[Any]) -> None:
    if len(outer) != len(inner):
        raise Violation(f"has {len(outer)} {kind}s, but its body {verb} {len(inner)}: the numbers must be equal")
    for index, (outside, inside) in enumerate(zip(outer, inner, strict=True)):
        if outside != inside:
            raise Violation(f"{kind} {index} has type {outside}, but the body {verb} {inside}")


def check_only_user(op: Any) -> None:
    """Checks that the operand has no other use."""
    count = len(list(op.operands[0].uses))
    if count != 1:
        raise Violation(f"must be the only user of its operand, which has {count} uses")


def check_data_flow_edge(op: Any) -> None:
    """Checks that no sdy op except those with a body defines the operand, and that the sharding, if any, is valid."""
    value = op.operands[0]
    if not isinstance(value.owner, ir.Block):
        source = owning_op(value).name
        if source.startswith("sdy.") and source not in ARGUMENT_OWNERS:
            allowed = " or ".join(ARGUMENT_OWNERS)
            raise Violation(
                f"has an operand that is defined by '{source}', but an sdy op that defines it must be {allowed}"
            )
    sharding = optional(op, "sharding", TensorSharding)
    if sharding is not None:
        check_sharding(sharding, op.results[0].type, op)


def check_func_data_flow_edge(op: Any) -> None:
    """Checks that the operand is an argument of a func.func or a result of a func.call."""
    value = op.operands[0]
    around = owning_op(value).name
    if isinstance(value.owner, ir.Block):
        if around != "func.func":
            raise Violation(f"has an argument of '{around}' as operand, but requires an argument of a 'func.func'")
    elif around != "func.call":
        raise Violation(f"has a result of '{around}' as operand, but requires a result of a 'func.call'")


def check_propagation_barrier(op: Any) -> None:
    """Checks that the barrier blocks propagation in at least one direction."""
    direction = integer(op, "allowed_direction", 32)
    if direction not in list(PropagationDirection):
        raise Violation(f"attribute 'allowed_direction' must be 0 (NONE), 1 (FORWARD) or 2 (BACKWARD), got {direction}")
    if direction == PropagationDirection.BOTH:
        raise Violation("blocks no direction: allowed_direction must be NONE, FORWARD or BACKWARD, not BOTH")


_VISIBILITIES = ('"public"', '"private"', '"nested"')


def check_mesh_op(op: Any) -> None:
    """Checks that the mesh has a name, is directly in a module, and leaves no gap in the devices of all meshes."""
    required_string("sym_name")(op)
    if op.parent is None or op.parent.operation.name != "builtin.module":
        around = "nothing" if op.parent is None else f"'{op.parent.operation.name}'"
        raise Violation(f"must be directly in a 'builtin.module', got {around}")
    visibility = op.attributes.get("sym_visibility")
    if visibility is not None and str(visibility) not in _VISIBILITIES:
        raise Violation(f"attribute 'sym_visibility' must be one of {', '.join(_VISIBILITIES)}, got {visibility}")
    mesh = required(op, "mesh", Mesh)
    others = meshes_in(op.parent.operation).values() if mesh.device_ids else ()
    require(check_device_numbers(mesh, [other for other in others if other is not None]))


def check_sharding_group(op: Any) -> None:
    """Checks that the group's id is not negative."""
    group = integer(op, "group_id", 64)
    if group < 0:
        raise Violation(f"has group_id {group}, but a group id must not be negative")


def check_constant(op: Any) -> None:
    """Checks that the op has no operands and one result of the type of the value, a ranked tensor."""
    if len(op.operands) or len(op.results) != 1:
        raise Violation("must have no operands and one result")
    if "value" not in op.attributes:
        raise Violation("requires an attribute 'value', the elements of a tensor")
    value, result = op.attributes["value"], op.results[0].type
    type_ = getattr(value, "type", None)
    if not isinstance(type_, ir.RankedTensorType):
        raise Violation(f"attribute 'value' must be the elements of a ranked tensor, got {value}")
    if type_ != result:
        raise Violation(f"must have a result of its value's type {type_}, got {result}")


VERIFIERS: Mapping[str, Callable[[Any], bool]] = {
    "sdy.mesh": verifier(check_mesh_op),
    "sdy.sharding_constraint": verifier(check_same_type, check_sharding_attribute, check_becomes_sharding),
    "sdy.reshard": verifier(check_same_type, check_sharding_attribute, check_becomes_sharding),
    "sdy.manual_computation": verifier(check_body, check_manual_computation),
    "sdy.named_computation": verifier(required_string("name"), check_body, check_named_computation),
    "sdy.sharding_group": verifier(check_one_operand, check_ranked_tensors, check_sharding_group),
    "sdy.constant": verifier(check_constant, check_static_result),
    "sdy.data_flow_edge": verifier(
        check_same_type, check_shaped, check_static_result, check_only_user, check_data_flow_edge
    ),
    "sdy.func_data_flow_edge": verifier(
        check_same_type, check_shaped, check_static_result, check_only_user, check_func_data_flow_edge
    ),
    "sdy.propagation_barrier": verifier(check_same_type, check_ranked_tensors, check_propagation_barrier),
    **{name: verifier(check_same_type, check_shaped, check) for name, check in COLLECTIVES.items()},
}
