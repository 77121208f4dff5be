# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowers models in JAX to programs, and computes their expected results by JAX."""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from model_zoo.program import Measured, Model


def measured(model: Model) -> Measured:
    """Returns the program of a model."""
    program = lowered(model)
    arrays = [np.asarray(leaf) for leaf in jax.tree.leaves(model.arguments)]
    return Measured(program.as_text(), arrays, lambda: program.compile().as_text(), lambda: expected(model))


def lowered(model: Model) -> Any:
    """Returns the result of `jax.jit(...).lower(...)`, on virtual devices of the CPU."""
    shape = tuple(model.mesh.values())
    devices = np.array(jax.devices()[: math.prod(shape)]).reshape(shape)
    mesh = jax.sharding.Mesh(devices, tuple(model.mesh))

    def shardings(specs: Any) -> Any:
        return jax.tree.map(
            lambda spec: NamedSharding(mesh, spec), specs, is_leaf=lambda one: isinstance(one, PartitionSpec)
        )

    options = {} if model.out_specs is None else {"out_shardings": shardings(model.out_specs)}
    with jax.sharding.set_mesh(mesh):
        jitted = jax.jit(model.function, in_shardings=shardings(model.in_specs), keep_unused=True, **options)
        return jitted.lower(*model.arguments)


def expected(model: Model) -> list[Any]:
    """Returns the results of the function on one device, or on all devices if it names them."""
    if model.names_devices:
        return [np.asarray(leaf) for leaf in jax.tree.leaves(lowered(model).compile()(*model.arguments))]
    names = tuple(model.mesh)
    one = jax.sharding.Mesh(np.array(jax.devices()[:1]).reshape((1,) * len(names)), names)
    with jax.sharding.set_mesh(one):
        return [np.asarray(leaf) for leaf in jax.tree.leaves(jax.jit(model.function)(*model.arguments))]
