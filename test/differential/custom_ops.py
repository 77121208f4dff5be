# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives with their own groups of devices, custom calls with known names, and one with a sharding rule."""

from __future__ import annotations

from differential.scope import Scope, combiner

_SAME_SHAPE = [
    "annotate_device_placement",
    "Cholesky",
    "CompactWyHelper",
    "InspectSharding",
    "InvertDiagBlocksLowerTriangular",
    "InvertDiagBlocksUpperTriangular",
    "LayoutConstraint",
    "MoveToDevice",
    "MoveToHost",
    "X64SplitHigh",
    "X64SplitLow",
    "mhlo.erf",
    "_SPMDInternalOp_RotateRight",
    "xla.megascale.provide_metadata",
    "unknown",
]
# The names of a rule's factors.
_LETTERS = "ijklmnopqrst"
_GROUPS = "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>"


def collective(scope: Scope) -> None:
    value = scope.pick(lambda one: len(one.shape) > 0)
    if value is None:
        return
    rank = len(value.shape)
    dim, other = scope.random.randrange(rank), scope.random.randrange(rank)
    shape = list(value.shape)
    kind = scope.random.randrange(7)
    if kind == 0:
        scope.op("all_reduce", [value], [(value.shape, "f32")], _GROUPS, [combiner(scope, "add")])
    elif kind == 1:
        shape[dim] *= 2
        scope.op("all_gather", [value], [(tuple(shape), "f32")], f"all_gather_dim = {dim} : i64, {_GROUPS}")
    elif kind == 2 and shape[dim] % 2 == 0:
        shape[dim] //= 2
        properties = f"scatter_dimension = {dim} : i64, {_GROUPS}"
        scope.op("reduce_scatter", [value], [(tuple(shape), "f32")], properties, [combiner(scope, "add")])
    elif kind == 3 and shape[dim] % 2 == 0:
        shape[dim] //= 2
        shape[other] *= 2
        properties = (
            f"split_dimension = {dim} : i64, concat_dimension = {other} : i64, split_count = 2 : i64, {_GROUPS}"
        )
        scope.op("all_to_all", [value], [(tuple(shape), "f32")], properties)
    elif kind == 4:
        pairs = "source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>"
        scope.op("collective_permute", [value], [(value.shape, "f32")], pairs)
    elif kind == 5:
        scope.op("collective_broadcast", [value], [(value.shape, "f32")], _GROUPS)
    elif kind == 6:
        scope.op("cross-replica-sum", [value], [(value.shape, "f32")], _GROUPS)


def custom_call(scope: Scope) -> None:
    if value := scope.pick(lambda one: len(one.shape) > 0):
        target = scope.random.choice(_SAME_SHAPE)
        scope.op("custom_call", [value], [(value.shape, "f32")], f'call_target_name = "{target}"')


def decomposition(scope: Scope) -> None:
    value = scope.pick(lambda one: len(one.shape) > 1 and one.shape[-1] == one.shape[-2]) or scope.of_type((4, 8, 8))
    vector = (*value.shape[:-2], value.shape[-1])
    target = scope.random.choice(["Eigh", "Qr", "QrDecompositionBlock"])
    properties = f'call_target_name = "{target}"'
    one, other = scope.op("custom_call", [value], [(value.shape, "f32"), (vector, "f32")], properties)
    if scope.chance(0.5):
        properties = 'call_target_name = "ProductOfElementaryHouseholderReflectors"'
        scope.op("custom_call", [one, other], [(value.shape, "f32")], properties)


def top_k(scope: Scope) -> None:
    value = scope.pick(lambda one: len(one.shape) > 0 and one.shape[-1] > 1)
    if value is None:
        return
    shape = (*value.shape[:-1], value.shape[-1] // 2)
    if scope.chance(0.5):
        properties = 'call_target_name = "mhlo.topk"'
        scope.op("custom_call", [value], [(shape, "f32"), (shape, "i32")], properties)
        return
    numbers = scope.converted(value, "i32")
    low, lowest = scope.of_type(()), scope.constant((), "i32")
    target = scope.random.choice(["ApproxTopK", "PartialReduce"])
    operands = [value, numbers, low, lowest]
    scope.op("custom_call", operands, [(shape, "f32"), (shape, "i32")], f'call_target_name = "{target}"')


def ruled_call(scope: Scope) -> None:
    """Appends an unknown call with a user's sharding rule: shared factors, factors of one side, and a special one."""
    value = scope.pick(lambda one: len(one.shape) > 0)
    if value is None:
        return
    rank = len(value.shape)
    operand_factors, result_factors = list(range(rank)), []
    sizes = list(value.shape)
    for dim, size in enumerate(value.shape):
        if scope.chance(0.8):
            result_factors.append(dim)
        else:
            result_factors.append(len(sizes))
            sizes.append(size)
    special = ""
    if scope.chance(0.6):
        kind = scope.random.choice(["reduction", "need_replication", "permutation", "blocked_propagation"])
        fitting = [dim for dim in operand_factors if kind != "reduction" or dim not in result_factors]
        special = f" {kind}={{{_LETTERS[scope.random.choice(fitting)]}}}" if fitting else ""
    operand = ", ".join(_LETTERS[factor] for factor in operand_factors)
    result = ", ".join(_LETTERS[factor] for factor in result_factors)
    spelled = ", ".join(f"{letter}={size}" for letter, size in zip(_LETTERS, sizes, strict=False))
    rule = f"#sdy.op_sharding_rule<([{operand}], [{operand}])->([{result}]) {{{spelled}}}{special}, custom>"
    operands, attributes = [value, scope.alike(value)], f"sdy.sharding_rule = {rule}"
    properties = 'call_target_name = "ruled"'
    scope.op("custom_call", operands, [(value.shape, "f32")], properties, attributes=attributes)
