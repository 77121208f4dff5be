# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutional networks, sharded by batch, by channel and in space."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from model_zoo.program import Draw, Model, model

_DIMS = ("NHWC", "HWIO", "NHWC")


def _conv(x: Any, kernel: Any, stride: int = 1, groups: int = 1) -> Any:
    return jax.lax.conv_general_dilated(
        x, kernel, (stride, stride), "SAME", dimension_numbers=_DIMS, feature_group_count=groups
    )


def _pooled(x: Any, start: float, combiner: Any, size: int = 2, stride: int = 2, padding: str = "VALID") -> Any:
    return jax.lax.reduce_window(x, start, combiner, (1, size, size, 1), (1, stride, stride, 1), padding)


def _batch_normalized(x: Any, scale: Any) -> Any:
    mean = x.mean(axis=(0, 1, 2))
    variance = jnp.square(x - mean).mean(axis=(0, 1, 2))
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale


def _residual(x: Any, block: Any) -> Any:
    hidden = jax.nn.relu(_batch_normalized(_conv(x, block["first"]), block["scale"]))
    return jax.nn.relu(x + _conv(hidden, block["second"]))


def _residual_weights(draw: Draw, channels: int) -> dict[str, Any]:
    return {
        "first": draw.weight(3, 3, channels, channels),
        "second": draw.weight(3, 3, channels, channels),
        "scale": draw.normal(channels) * 0.1 + 1,
    }


def _resnet_loss(weights: Any, images: Any, labels: Any) -> Any:
    x = _pooled(jax.nn.relu(_conv(images, weights["stem"], stride=2)), -jnp.inf, jax.lax.max)
    x = _residual(_residual(x, weights["blocks"][0]), weights["blocks"][1])
    logits = x.mean(axis=(1, 2)) @ weights["head"]
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1).mean()


def _resnet_weights(draw: Draw) -> dict[str, Any]:
    blocks = [_residual_weights(draw, 8), _residual_weights(draw, 8)]
    return {"stem": draw.weight(3, 3, 3, 8), "blocks": blocks, "head": draw.weight(8, 10)}


@model
def resnet() -> Model:
    """The gradient of a residual network with batch normalization, data parallel."""
    draw = Draw("resnet")
    weights = _resnet_weights(draw)
    arguments = (weights, draw.normal(16, 32, 32, 3), draw.integers(10, (16,)))
    return Model("resnet", jax.grad(_resnet_loss), arguments, {"data": 8}, (P(), P("data"), P("data")), P(), 1e-2)


@model
def resnet_in_space() -> Model:
    """The gradient of a residual network, with images also sharded in height."""
    draw = Draw("resnet_in_space")
    weights = _resnet_weights(draw)
    arguments = (weights, draw.normal(4, 32, 32, 3), draw.integers(10, (4,)))
    specs = (P(), P("data", "space"), P("data"))
    return Model(
        "resnet_in_space",
        jax.grad(_resnet_loss),
        arguments,
        {"data": 2, "space": 4},
        specs,
        P(),
        1e-2,
    )


def _kernel_gradient(name: str, stride: int) -> Model:
    draw = Draw(name)

    def gradient(kernel: Any, images: Any, of_output: Any) -> Any:
        return jax.grad(lambda kernel: jnp.sum(_conv(images, kernel, stride) * of_output))(kernel)

    images = draw.normal(2, 32, 32, 8)
    output = draw.normal(2, 32 // stride, 32 // stride, 16)
    space = P(None, "height", "width")
    arguments = (draw.weight(3, 3, 8, 16), images, output)
    return Model(
        name,
        gradient,
        arguments,
        {"height": 4, "width": 2},
        (P(), space, space),
        P(),
        1e-3,
    )


@model
def kernel_gradient() -> Model:
    """The gradient of a kernel, with images sharded in both dimensions of space."""
    return _kernel_gradient("kernel_gradient", 1)


@model
def strided_kernel_gradient() -> Model:
    """The gradient of a kernel of stride 2, with images sharded in both dimensions of space."""
    return _kernel_gradient("strided_kernel_gradient", 2)


def _pool_gradient(name: str, start: float, combiner: Any, size: int, stride: int) -> Model:
    draw = Draw(name)

    def gradient(images: Any) -> Any:
        return jax.grad(lambda x: jnp.sum(jnp.square(_pooled(x, start, combiner, size, stride, "SAME"))))(images)

    space = P(None, "height", "width")
    return Model(
        name,
        gradient,
        (draw.normal(2, 32, 32, 8),),
        {"height": 4, "width": 2},
        (space,),
        space,
    )


@model
def max_pool_gradient() -> Model:
    """The gradient of max pooling, sharded in space."""
    return _pool_gradient("max_pool_gradient", -float("inf"), jax.lax.max, 3, 2)


@model
def average_pool_gradient() -> Model:
    """The gradient of average pooling, sharded in space."""
    return _pool_gradient("average_pool_gradient", 0.0, jax.lax.add, 3, 1)


@model
def unet() -> Model:
    """The gradient of downsampling, upsampling by a transposed convolution, and a skip connection, sharded in space."""
    draw = Draw("unet")
    weights = {
        "down": draw.weight(3, 3, 4, 8),
        "middle": draw.weight(3, 3, 8, 8),
        "up": draw.weight(2, 2, 8, 4),
        "last": draw.weight(3, 3, 8, 4),
    }

    def loss(weights: Any, images: Any) -> Any:
        low = jax.nn.relu(_conv(images, weights["down"], stride=2))
        low = jax.nn.relu(_conv(low, weights["middle"]))
        high = jax.lax.conv_transpose(low, weights["up"], (2, 2), "VALID", dimension_numbers=_DIMS)
        return jnp.mean(jnp.square(_conv(jnp.concatenate([images, high], axis=-1), weights["last"])))

    arguments = (weights, draw.normal(2, 32, 16, 4))
    specs = (P(), P("data", "space"))
    return Model(
        "unet",
        jax.grad(loss),
        arguments,
        {"data": 2, "space": 4},
        specs,
        P(),
        1e-3,
    )


@model
def depthwise_network() -> Model:
    """A ConvNeXt block, with a depthwise convolution and channels sharded."""
    draw = Draw("depthwise_network")
    weights = {"depthwise": draw.weight(7, 7, 1, 16), "up": draw.weight(16, 64), "down": draw.weight(64, 16)}

    def forward(weights: Any, x: Any) -> Any:
        y = _conv(x, weights["depthwise"], groups=16)
        y = (y - y.mean(-1, keepdims=True)) * jax.lax.rsqrt(y.var(-1, keepdims=True) + 1e-5)
        return x + jax.nn.gelu(y @ weights["up"]) @ weights["down"]

    specs = {"depthwise": P(None, None, None, "model"), "up": P(None, "model"), "down": P("model", None)}
    arguments = (weights, draw.normal(4, 16, 16, 16))
    mesh = {"data": 2, "model": 4}
    return Model("depthwise_network", forward, arguments, mesh, (specs, P("data")), P("data"), 1e-3)


@model
def resize_and_crop() -> Model:
    """Bilinear resizing, a crop and a flip of images sharded in height."""
    draw = Draw("resize_and_crop")

    def augmented(images: Any) -> Any:
        larger = jax.image.resize(images, (2, 48, 48, 3), "bilinear")
        return larger[:, 8:40, 8:40, ::-1][:, ::-1]

    space = P(None, "space")
    return Model("resize_and_crop", augmented, (draw.normal(2, 32, 32, 3),), {"space": 8}, (space,), space)
