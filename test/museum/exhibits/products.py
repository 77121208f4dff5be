# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exhibits of matrix products, convolutions, and their gradients."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P
from model_zoo.program import Draw

from museum.exhibit import Parts, exhibit

NOWHERE = P()
ROWS, COLUMNS = P("x", None), P(None, "x")


@exhibit("openxla/xla", 40034, "partial sums over two axes become sharded along one, and are not summed over the other")
def gradient_sharded_along_one_axis() -> Parts:
    def loss(weights: Any, x: Any) -> Any:
        weights = lax.with_sharding_constraint(weights, P(None, "model"))
        hidden = lax.with_sharding_constraint(jnp.tanh(x @ weights), P(("replica", "data"), "model"))
        return (hidden**2).sum()

    draw = Draw("sharded along one")
    batch = P(("replica", "data"), None)
    mesh = {"replica": 2, "data": 2, "model": 2}
    kept = P("data", "model")
    return jax.grad(loss), (draw.weight(8, 6), draw.normal(16, 8)), mesh, (kept, batch), kept


@exhibit("pytorch/xla", 5279, "the all-reduce behind a matrix sharded by columns and one by rows is for one device")
def columns_then_rows() -> Parts:
    draw = Draw("columns then rows")
    arguments = (draw.normal(4, 2), draw.normal(2, 32), draw.normal(32, 8))
    return lambda a, b, c: (a @ b) @ c, arguments, {"x": 8}, (NOWHERE, COLUMNS, ROWS), None


@exhibit("pytorch/xla", 5264, "the operands of a difference and of a quotient are exchanged")
def difference_and_quotient() -> Parts:
    draw = Draw("difference")
    arguments = (np.abs(draw.normal(16, 8)) + 1, np.abs(draw.normal(16, 8)) + 1)
    return lambda a, b: (a - b, a / b), arguments, {"x": 8}, (ROWS, COLUMNS), None


@exhibit("tenstorrent/tt-xla", 902, "a product depends on how its result is sharded")
def product_of_any_sharding() -> Parts:
    def products(x: Any, y: Any) -> Any:
        specs = (P("x", None), P(None, "y"), P("x", "y"), P(), P(("x", "y"), None), P("y", "x"))
        return [lax.with_sharding_constraint(x @ y, spec) for spec in specs]

    draw = Draw("products")
    return products, (draw.normal(8, 6), draw.normal(6, 8)), {"x": 2, "y": 2}, (P("x", None), P(None, "y")), None


@exhibit("EnzymeAD/Reactant.jl", 743, "a product of two matrices that are sharded along the same dimension is wrong")
def product_of_rows() -> Parts:
    a = np.arange(1, 5, dtype=np.float32).reshape(2, 2)
    by_model = P("model", None)
    return lambda a, b: a @ b, (a, a.T.copy()), {"data": 2, "model": 2}, (by_model, by_model), None


@exhibit("jax-ml/jax", 16894, "a convolution of stride 2 is wrong with the batch and the filters along one axis")
def strided_convolution() -> Parts:
    def convolve(image: Any, kernel: Any, bias: Any) -> Any:
        return lax.conv_general_dilated(image, kernel, (2, 2), ((1, 1), (1, 1))) + bias

    draw = Draw("strided")
    arguments = (draw.normal(8, 6, 8, 8), draw.normal(16, 6, 3, 3), draw.normal(16, 1, 1))
    return convolve, arguments, {"x": 8}, (P("x"), P("x"), P("x")), None


@exhibit("openxla/xla", 42481, "the gradient of a lookup is sliced before it is summed, and leaks into other rows")
def gradient_of_a_lookup() -> Parts:
    def loss(table: Any, ids: Any, scale: Any) -> Any:
        table = lax.with_sharding_constraint(table, P(None, None))
        found = lax.with_sharding_constraint(jnp.take(table, ids, axis=0), P("data", "model", None))
        return (found * scale).sum()

    draw = Draw("lookup")
    ids = np.array([[0, 3, 3, 9], [12, 0, 5, 3]], np.int32)
    specs = (P("model", None), P("data", "model"), P("data", "model", None))
    return jax.grad(loss), (draw.normal(16, 4), ids, draw.normal(2, 4, 4)), {"data": 2, "model": 4}, specs, specs[0]


@exhibit("openxla/xla", 49143, "a gradient that a loop sums by scatters is summed over devices in the wrong place")
def scattered_gradients_in_a_loop() -> Parts:
    def accumulate(table: Any, ids: Any, cotangents: Any) -> Any:
        def loss(table: Any, ids: Any, cotangent: Any) -> Any:
            return (table[ids] * cotangent).sum()

        def step(total: Any, batch: Any) -> Any:
            return total + jax.grad(loss)(table, *batch), None

        return lax.scan(step, jnp.zeros_like(table), (ids, cotangents))[0]

    draw = Draw("scattered")
    arguments = (draw.normal(24, 6), draw.integers(24, (2, 8, 5)), draw.normal(2, 8, 5, 6))
    return accumulate, arguments, {"x": 4}, (ROWS, COLUMNS, COLUMNS), ROWS
