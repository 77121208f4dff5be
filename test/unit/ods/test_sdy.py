# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the definition of sdy, as read and as generated."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from mlir_shard.dialects import _sdy_gen
from mlir_shard.ods.irdl_source import irdl
from mlir_shard.ods.model import DialectDef
from mlir_shard.ods.reader import read

ROOT = Path(__file__).resolve().parents[3]
DEFINITION = ROOT / "dialect_defs" / "sdy.td"


@pytest.fixture(scope="module")
def sdy() -> DialectDef:
    return read(DEFINITION)


def test_the_generated_model_is_the_definition(sdy: DialectDef) -> None:
    assert sdy == _sdy_gen.DIALECT


def test_the_generated_irdl_is_the_definition(sdy: DialectDef) -> None:
    assert irdl(sdy) == _sdy_gen.IRDL


def test_everything_is_there(sdy: DialectDef) -> None:
    assert {op.mnemonic for op in sdy.ops} == {
        "mesh", "sharding_constraint", "reshard", "return", "manual_computation", "sharding_group", "constant",
        "data_flow_edge", "propagation_barrier", "named_computation", "all_gather", "all_slice", "all_to_all",
        "collective_permute", "all_reduce", "reduce_scatter", "sharded_to_unreduced", "replicated_to_unreduced",
        "func_data_flow_edge",
    }  # fmt: skip
    assert {attribute.mnemonic for attribute in sdy.attributes} == {
        "manual_axes", "mesh_axis", "mesh", "sub_axis_info", "axis_ref", "dimension_sharding", "sharding",
        "sharding_per_value", "dim_mapping", "tensor_mapping", "op_sharding_rule", "axis_ref_list",
        "list_of_axis_ref_lists", "all_to_all_param", "all_to_all_param_list", "edge_value_ref",
        "axis_to_propagation_details", "propagation_one_step", "propagation_edges",
    }  # fmt: skip
    assert {enum.name for enum in sdy.enums} == {"PropagationDirection", "EdgeNodeType", "ReductionOp"}


def test_everything_is_said_in_words(sdy: DialectDef) -> None:
    for definition in (*sdy.ops, *sdy.attributes, *sdy.enums):
        assert definition.summary and not definition.summary.endswith("."), definition.name
    for op in sdy.ops:
        assert op.description, op.name
        assert op.assembly_format is not None, op.name
        assert all(part.summary for part in (*op.arguments, *op.results, *op.regions)), op.name
    for attribute in sdy.attributes:
        assert attribute.assembly_format is not None, attribute.name
        assert all(parameter.summary for parameter in attribute.parameters), attribute.name


def test_collectives_say_what_they_allow(sdy: DialectDef) -> None:
    allowances = {
        op.mnemonic: trait.arguments for op in sdy.ops if (trait := op.trait("Sdy_CollectiveOpInterface")) is not None
    }
    assert allowances == {
        "all_gather": (),
        "all_slice": ("allowMissingInputSharding",),
        "all_to_all": (),
        "collective_permute": ("allowDifferentMeshes",),
        "all_reduce": ("allowMissingInputSharding",),
        "reduce_scatter": ("allowMissingInputSharding",),
        "sharded_to_unreduced": (),
        "replicated_to_unreduced": (),
    }


def fields_of(value_class: Any) -> set[str]:
    """Returns the names of the fields of a value's content, without fields that are excluded from comparison."""
    if dataclasses.is_dataclass(value_class):
        return {field.name for field in dataclasses.fields(value_class) if field.compare}
    return set(value_class._fields)


def test_a_parameter_is_named_like_the_field_of_its_value() -> None:
    import mlir_shard.sharding as values

    for attribute in _sdy_gen.DIALECT.attributes:
        value_class = getattr(values, attribute.name.removesuffix("Attr"))
        assert {parameter.name for parameter in attribute.parameters} == fields_of(value_class)
    for enum in _sdy_gen.DIALECT.enums:
        assert {case.symbol for case in enum.cases} == set(getattr(values, enum.name).__members__)
