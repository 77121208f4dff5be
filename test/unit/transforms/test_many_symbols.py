# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The work for a mesh or a function does not grow with the number of meshes or functions in the module."""

from __future__ import annotations

from typing import Any

import pytest

import mlir_shard
from mlir_shard.dialects import mesh_definitions
from mlir_shard.sharding.common_mesh import MeshChange
from mlir_shard.transforms.reshard import unreduced_axes

MANY = 30
TYPE = "tensor<8x6xf32>"


def program() -> str:
    """Returns a function of many arguments, each sharded on a mesh of its own with the same devices."""
    meshes = "\n".join(f'sdy.mesh @m{number} = <["x{number}"=2, "y{number}"=4]>' for number in range(MANY))
    arguments = ", ".join(
        f'%p{number}: {TYPE} {{sdy.sharding = #sdy.sharding<@m{number}, [{{"x{number}"}}, {{}}]>}}'
        for number in range(MANY)
    )
    chain = "\n".join(f"%s{number} = stablehlo.add %p{number}, %p{number} : {TYPE}" for number in range(MANY))
    returned = ", ".join(f"%s{number}" for number in range(MANY))
    types = ", ".join([TYPE] * MANY)
    return f"{meshes}\nfunc.func @main({arguments}) -> ({types}) {{\n{chain}\nreturn {returned} : {types}\n}}"


def test_meshes_are_read_once_for_all_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    read, of_module = [], mesh_definitions._read
    monkeypatch.setattr(mesh_definitions, "_read", lambda module: read.append(module) or of_module(module))
    module = mlir_shard.parse(program(), mlir_shard.create_context())
    assert len(read) == 1
    mlir_shard.run(module, "builtin.module(sdy-basic-propagate)")
    assert len(read) < 10


def test_meshes_are_read_once_for_all_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    sharding = '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}'
    functions = "\n".join(
        f"""func.func @f{number}(%a: {TYPE} {sharding}) -> {TYPE} {{
          %0 = stablehlo.concatenate %a, %a, dim = 0 : ({TYPE}, {TYPE}) -> tensor<16x6xf32>
          return %a : {TYPE}
        }}"""
        for number in range(MANY)
    )
    module = mlir_shard.parse(f'sdy.mesh @mesh = <["x"=2]>\n{functions}', mlir_shard.create_context())
    read, of_module = [], mesh_definitions._read
    monkeypatch.setattr(mesh_definitions, "_read", lambda module: read.append(module) or of_module(module))
    mlir_shard.run(module, "builtin.module(func.func(sdy-insert-explicit-reshards))")
    assert len(read) == 1


def test_functions_are_listed_once_for_the_calls_in_all_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    functions = "\n".join(
        f"""func.func @f{number}(%a: {TYPE}) -> {TYPE} {{
          %0 = call @f{number + 1}(%a) : ({TYPE}) -> {TYPE}
          return %0 : {TYPE}
        }}"""
        for number in range(MANY)
    )
    last = f"func.func private @f{MANY}(%a: {TYPE}) -> {TYPE}"
    module = mlir_shard.parse(f"{functions}\n{last}", mlir_shard.create_context())
    listed, of_module = [], unreduced_axes.functions
    monkeypatch.setattr(unreduced_axes, "functions", lambda module: listed.append(module) or of_module(module))
    mlir_shard.run(module, "builtin.module(func.func(sdy-verify-unreduced-axes))")
    assert len(listed) == 1


def test_meshes_are_expressed_by_the_axes_of_the_first_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    expressed, can_say = [], MeshChange.can_say

    def counted(change: MeshChange, axes: Any) -> bool:
        expressed.append(change)
        return can_say(change, axes)

    monkeypatch.setattr(MeshChange, "can_say", counted)
    module = mlir_shard.parse(program(), mlir_shard.create_context())
    mlir_shard.run(module, "builtin.module(shard-unify-meshes)")
    assert len(expressed) == MANY - 1
    assert mlir_shard.print_module(module).count("sdy.mesh") == 1
