# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The bytes that a device must receive in a train step, counted by hand from the parallelism of a model.

For n devices with tensors of b bytes on each, a device receives b (n - 1) / n bytes in an all-gather to b, a
reduce-scatter of b and an all-to-all of b, and twice that in an all-reduce of b. Everything is in bf16.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import prod

from mlir_shard.resharding.cost.communication import CollectiveKind
from train_steps import llama, moe
from train_steps.llama import LlamaSizes
from train_steps.moe import MoeSizes

_BYTES = 2


@dataclass(frozen=True, slots=True)
class Need:
    """The bytes that a device receives in collectives of a kind along mesh axes, and their purpose."""

    kind: CollectiveKind
    axes: tuple[str, ...]
    bytes_received: float
    purpose: str


_Needs = Iterator[Need]


def llama_needs(sizes: LlamaSizes) -> _Needs:
    """Yields the needs: per layer, weights gathered twice, their gradients reduced, five reductions of activations."""
    data, fsdp, model = (llama.MESH[name] for name in ("data", "fsdp", "model"))
    need = partial(_need, llama.MESH)
    kv = sizes.width * sizes.groups * sizes.head
    layer = (2 + 2 * sizes.heads_per_group) * kv + 3 * sizes.width * sizes.hidden
    activations = _BYTES * sizes.batch * sizes.length * sizes.width // (data * fsdp)
    # Forward, the sums after attention and MLP; the first of them again; and for the gradients, those before both.
    yield need("all_reduce", ("model",), 5 * sizes.layers * activations, "activations of layers")
    yield from _weights(need, ("data",), 2, sizes.layers * layer // model, "layers")
    yield from _ends(need, ("data",), sizes.vocabulary * sizes.width // model, activations)


def moe_needs(sizes: MoeSizes) -> _Needs:
    """Yields needs as `llama_needs`; keys and values are gathered along the sequence, tokens go to experts and back."""
    mesh = moe.MESH
    need = partial(_need, mesh)
    attention = (2 + 2 * sizes.heads_per_group) * sizes.width * sizes.groups * sizes.head
    experts = 3 * sizes.experts * sizes.width * sizes.hidden
    devices = prod(mesh[name] for name in ("data", "fsdp", "seq", "expert"))
    tokens = sizes.batch * sizes.length // devices
    activations = _BYTES * tokens * sizes.width
    routed = _BYTES * sizes.experts * sizes.capacity * sizes.width
    keys = 2 * _BYTES * tokens * mesh["seq"] * sizes.groups * sizes.head // mesh["model"]
    # Forward, again, and for the gradient: the sums after attention or before it, and those of experts.
    yield need("all_reduce", ("model",), 3 * sizes.layers * (activations + routed), "activations of layers")
    yield need("all_gather", ("seq",), 2 * sizes.layers * keys, "keys and values")
    yield need("reduce_scatter", ("seq",), sizes.layers * keys, "their gradients")
    yield need("all_to_all", ("expert",), 6 * sizes.layers * routed, "tokens to experts and back")
    others = ("data", "seq", "expert")
    yield from _weights(need, others, 2, sizes.layers * attention // mesh["model"], "attention")
    of_device = sizes.layers * experts // (mesh["model"] * mesh["expert"])
    yield from _weights(need, ("data", "seq"), 2, of_device, "experts")
    yield from _ends(need, others, sizes.vocabulary * sizes.width // mesh["model"], activations)


def _ends(need: Callable[..., Need], others: tuple[str, ...], table: int, activations: int) -> _Needs:
    """Yields the needs of the embedding, in which each device looks up its part of the vocabulary, and of the head."""
    yield need("all_reduce", ("model",), 2 * activations, "looked up, and the gradient before the head")
    yield from _weights(need, others, 1, 2 * table, "embedding and head")


def _weights(need: Callable[..., Need], others: tuple[str, ...], gathers: int, elements: int, purpose: str) -> _Needs:
    """Yields the needs of weights with `elements` on a device, sharded along fsdp and replicated along `others`."""
    yield need("all_gather", ("fsdp",), gathers * _BYTES * elements, f"weights of {purpose}")
    yield need("reduce_scatter", ("fsdp",), _BYTES * elements, f"gradients of {purpose}")
    yield need("all_reduce", others, _BYTES * elements, f"gradients of {purpose}", sharded=True)


def _need(
    mesh: dict[str, int], kind: str, axes: tuple[str, ...], size: float, purpose: str, *, sharded: bool = False
) -> Need:
    """Returns the need for a collective; `size` is the bytes of the larger of operand and result on a device, before a
    division by the size of fsdp if `sharded`."""
    count = prod(mesh[name] for name in axes)
    times = 2 if kind == "all_reduce" else 1
    of_device = size / mesh["fsdp"] if sharded else size
    return Need(CollectiveKind(kind), axes, times * of_device * (count - 1) / count, purpose)
