# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the reshards around an op, which follow from its rule and shardings."""

from __future__ import annotations

import pytest

from mlir_shard import asm
from mlir_shard.dialects.sdy import SHARDING
from mlir_shard.resharding.operator.common_axes import op_mesh
from mlir_shard.resharding.operator.op_reshards import OpKind, OpReshards, ShardedOp, reshards_around
from mlir_shard.resharding.sharding_steps import ReshardError
from mlir_shard.sharding import AxisRef, Mesh, OpShardingRule, TensorSharding
from mlir_shard.sharding.rule import TensorMapping

AXES = {"x": 2, "y": 2, "z": 4}
MESHES = {
    "m": Mesh(AXES.items()),
    "reversed": Mesh(AXES.items(), range(15, -1, -1)),
    "six": Mesh({"s": 6}.items()),
    "one": Mesh.maximal(1),
    "none": Mesh(),
}
DOT = OpShardingRule(
    (8, 8, 8),
    (TensorMapping.of([0], [2]), TensorMapping.of([2], [1])),
    (TensorMapping.of([0], [1]),),
    reduction_factors=(2,),
)
ADD = OpShardingRule.pointwise((8, 8), 2)


def sharding(text: str | None) -> TensorSharding | None:
    if text is None:
        return None
    value: TensorSharding = asm.parse_value(
        SHARDING.partition(".")[2], text if text.startswith("<") else f"<@m, {text}>"
    )
    return value


def around(
    rule: OpShardingRule,
    *texts: str | None,
    sizes: tuple[int, ...] = (64, 64, 64),
    kind: OpKind = OpKind.OTHER,
    reducible: bool = True,
    full: bool = True,
) -> OpReshards | None:
    shardings = tuple(map(sharding, texts))
    count = len(rule.operand_mappings)
    op = ShardedOp(rule, shardings[:count], shardings[count:], sizes, kind, reducible)
    return reshards_around(op, MESHES, full=full)


def test_compatible_shardings_need_nothing() -> None:
    assert around(ADD, *['[{"x"}, {}]'] * 3) is None
    assert around(ADD, None, None, None) is None
    assert around(ADD, "<@one, []>", None, "<@one, []>") is None


def test_operand_and_result_are_resharded() -> None:
    found = around(ADD, '[{"x"}, {}]', '[{"x"}, {}]', None)
    assert found is not None
    assert found.operands == (None, None)
    assert found.results == (sharding('[{"x"}, {}]'),)
    assert found.users == (sharding("[{}, {}]"),)
    assert found.reduced_axes == ()


def test_a_sharded_reduction_is_reduced() -> None:
    found = around(DOT, '[{"x"}, {"y"}]', '[{"y"}, {}]', '[{"x"}, {}]')
    assert found is not None
    assert (found.operands, found.users) == ((None, None), (None,))
    assert found.reduced_axes == (AxisRef("y"),)
    assert found.reduced == (sharding('[{"x"}, {}]'),)


def test_not_along_what_the_result_is_partial_along() -> None:
    assert around(DOT, '[{}, {"y"}]', '[{"y"}, {}]', '[{}, {}], unreduced={"y"}') is None


def test_a_reduction_that_nothing_combines_is_whole() -> None:
    found = around(DOT, '[{}, {"y"}]', '[{"y"}, {}]', "[{}, {}]", reducible=False)
    assert found is not None
    assert found.operands == (sharding("[{}, {}]"),) * 2
    assert found.reduced_axes == ()


def test_without_the_full_version_conflicts_stay() -> None:
    assert around(ADD, '[{"x"}, {}]', '[{}, {"x"}]', None, full=False) is None
    assert around(DOT, '[{}, {"y"}]', '[{"y"}, {}]', "[{}, {}]", full=False) is None


def test_without_the_full_version_partial_results_are_reduced_further() -> None:
    found = around(DOT, '[{}, {"x", "y"}]', '[{"x", "y"}, {}]', '[{}, {}], unreduced={"x"}', full=False)
    assert found is not None
    assert found.reduced_axes == (AxisRef("y"),)
    assert around(DOT, '[{}, {"x", "y"}]', '[{"x", "y"}, {}]', '[{"y"}, {}], unreduced={"x"}', full=False) is None
    with pytest.raises(ReshardError, match="shard the reduced dimensions differently"):
        around(DOT, '[{}, {"x", "y"}]', '[{"x"}, {}]', '[{}, {}], unreduced={"x"}', full=False)


class TestDot:
    ROW_BY_COLUMN = ('[{}, {"x"}]', '[{"x"}, {"y"}]', '[{}, {"x"}]')

    def dot(self, *texts: str | None, sizes: tuple[int, ...] = (64, 64, 64)) -> OpReshards | None:
        return around(DOT, *texts, sizes=sizes, kind=OpKind.DOT, full=False)

    def test_the_result_is_made_to_fit(self) -> None:
        found = self.dot(*self.ROW_BY_COLUMN)
        assert found is not None
        assert found.results == (sharding('[{}, {"y"}]'),)
        assert found.users == (sharding('[{}, {"x"}]'),)

    def test_not_where_it_is_larger(self) -> None:
        assert self.dot(*self.ROW_BY_COLUMN, sizes=(64, 8, 64)) is None

    def test_not_where_the_operand_is_whole(self) -> None:
        assert self.dot('[{}, {"x"}]', '[{"x"}, {}]', '[{}, {"x"}]') is None

    def test_not_where_the_operands_disagree(self) -> None:
        assert self.dot('[{}, {"x"}]', '[{"z"}, {"y"}]', '[{}, {"x"}]') is None
        assert self.dot('[{"y"}, {"x"}]', '[{"x"}, {"y"}]', '[{"y"}, {"x"}]') is None

    def test_not_where_two_factors_conflict(self) -> None:
        assert self.dot('[{"z"}, {"x"}]', '[{"x"}, {"y"}]', '[{}, {"x"}]') is None

    def test_not_where_the_result_has_other_axes(self) -> None:
        assert self.dot('[{}, {"x"}]', '[{"x"}, {"y"}]', '[{}, {"z"}]') is None


class TestReshape:
    SPLIT = OpShardingRule((2, 9), (TensorMapping.of([0], [1]),), (TensorMapping.of([0, 1]),))

    def test_axes_are_dealt_out_anew(self) -> None:
        found = around(self.SPLIT, "<@six, [{}, {}]>", '<@six, [{"s"}]>', sizes=(18, 18), kind=OpKind.RESHAPE)
        assert found is not None
        assert found.operands == (sharding('<@six, [{"s":(1)2}, {"s":(2)3}]>'),)
        assert found.users == (None,)

    def test_what_fits_nowhere_stays_out(self) -> None:
        rule = OpShardingRule((4, 5), (TensorMapping.of([0], [1]),), (TensorMapping.of([0, 1]),))
        found = around(rule, "<@six, [{}, {}]>", '<@six, [{"s"}]>', sizes=(20, 20), kind=OpKind.RESHAPE)
        assert found is not None
        assert found.operands == (sharding('<@six, [{"s":(1)2}, {}]>'),)
        assert found.results == (sharding('<@six, [{"s":(1)2}]>'),)


class TestMesh:
    def test_most_sharded_tensors_say_the_order_of_devices(self) -> None:
        found = around(ADD, '<@reversed, [{"x"}, {}]>', '[{"x"}, {}]', '<@reversed, [{"x"}, {}]>')
        assert found is not None
        assert found.operands == (None, sharding('<@reversed, [{"x"}, {}]>'))

    def test_what_is_whole_does_not_count(self) -> None:
        assert around(ADD, '<@reversed, [{"x"}, {}]>', "[{}, {}]", "[{}, {}]", full=True) is not None
        shardings = [sharding(text) for text in ("[{}]", '<@reversed, [{"x"}]>', "[{}]", None)]
        assert op_mesh(shardings, MESHES) == ("reversed", MESHES["reversed"])

    def test_where_all_is_whole_it_is_one_without_device_ids(self) -> None:
        shardings = [sharding(text) for text in ("<@reversed, [{}]>", "[{}]", "<@none, [{}]>")]
        assert op_mesh(shardings, MESHES) == ("m", MESHES["m"])

    def test_the_empty_mesh_goes_with_any_other(self) -> None:
        shardings = [sharding(text) for text in ("[{}]", "<@none, [{}]>", '<@six, [{"s"}]>')]
        assert op_mesh(shardings[:2], MESHES) == ("m", MESHES["m"])
        assert op_mesh(shardings[1:], MESHES) == ("six", MESHES["six"])
        assert op_mesh(shardings, MESHES) is None

    def test_different_meshes_are_none(self) -> None:
        for other in ('<@six, [{"s"}]>', "<@one, []>", "<@unknown, [{}]>"):
            assert op_mesh([sharding("[{}]"), sharding(other)], MESHES) is None
