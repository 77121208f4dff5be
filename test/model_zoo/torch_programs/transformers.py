# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention and language models."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.func import functional_call, grad_and_value
from torch.nn.functional import cross_entropy, scaled_dot_product_attention, silu

from mlir_shard import P
from model_zoo.program import TorchModel, torch_model

GRID = {"data": 2, "model": 4}


class RmsNorm(nn.Module):
    """The norm of Llama, without `nn.RMSNorm`, whose lowering depends on the version of torch."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Any) -> Any:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


def rotated(x: Any) -> Any:
    """Applies rotary position embedding to (batch, heads, positions, features)."""
    half = x.shape[-1] // 2
    frequencies = 1e4 ** (-torch.arange(half, dtype=torch.float32) / half)
    angles = torch.outer(torch.arange(x.shape[-2], dtype=torch.float32), frequencies)
    first, second = x[..., :half], x[..., half:]
    cos, sin = torch.cos(angles), torch.sin(angles)
    return torch.cat([first * cos - second * sin, first * sin + second * cos], -1)


class LlamaBlock(nn.Module):
    """Rotary attention and a gated perceptron."""

    def __init__(self, width: int = 32, heads: int = 4, hidden: int = 64) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = RmsNorm(width), RmsNorm(width)
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.w1, self.w3 = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.w2 = nn.Linear(hidden, width, bias=False)

    def forward(self, x: Any) -> Any:
        batch, positions, width = x.shape
        y = self.norm1(x)
        shape = batch, positions, self.heads, width // self.heads
        q, k, v = (weight(y).view(shape).transpose(1, 2) for weight in (self.wq, self.wk, self.wv))
        y = scaled_dot_product_attention(rotated(q), rotated(k), v, is_causal=True)
        x = x + self.wo(y.transpose(1, 2).reshape(batch, positions, width))
        y = self.norm2(x)
        return x + self.w2(silu(self.w1(y)) * self.w3(y))


MEGATRON = {
    **{f"w{name}.weight": P("model", None) for name in "qkv13"},
    **{f"w{name}.weight": P(None, "model") for name in "o2"},
}


@torch_model
def torch_llama_block() -> TorchModel:
    """The program has exactly Megatron's two all-reduces."""
    torch.manual_seed(0)
    return TorchModel("", LlamaBlock(), (torch.randn(4, 8, 32),), GRID, (P("data"),), None, MEGATRON)


@torch_model
def torch_encoder_layer() -> TorchModel:
    """PyTorch's encoder layer, with the perceptron sharded as by Megatron and attention by data."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
    shard = {"linear1.weight": P("model", None), "linear1.bias": P("model"), "linear2.weight": P(None, "model")}
    return TorchModel("", layer, (torch.randn(8, 12, 32),), GRID, (P("data"),), None, shard)


class LanguageModel(nn.Module):
    """An embedding, a perceptron and logits."""

    def __init__(self, vocabulary: int = 64, width: int = 32) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens: Any) -> Any:
        x = self.embed(tokens)
        return self.head(x + self.down(torch.relu(self.up(x))))


@torch_model
def torch_language_model_loss() -> TorchModel:
    """The cross-entropy of a language model, data parallel: only sums of losses and of valid targets are reduced."""
    torch.manual_seed(0)
    model = LanguageModel()
    parameters = {name: one.detach() for name, one in model.named_parameters()}
    tokens = torch.randint(0, 64, (16, 8))

    def loss(parameters: Any, tokens: Any, targets: Any) -> Any:
        logits = functional_call(model, parameters, (tokens,))
        return cross_entropy(logits.flatten(0, 1), targets.flatten())

    return TorchModel("", loss, (parameters, tokens, tokens.roll(-1, 1)), {"data": 8}, (P(), P("data"), P("data")), P())


@torch_model
def torch_sharded_vocabulary() -> TorchModel:
    """The loss of logits with a sharded vocabulary."""
    torch.manual_seed(0)
    head, width, vocabulary = torch.randn(64, 32), 32, 64

    def loss(head: Any, x: Any, targets: Any) -> Any:
        return cross_entropy(x @ head.T, targets)

    arguments = head, torch.randn(16, width), torch.randint(0, vocabulary, (16,))
    return TorchModel("", loss, arguments, GRID, (P("model", None), P("data"), P("data")), P())


@torch_model
def torch_language_model_step() -> TorchModel:
    """A training step of all weights except the embedding, whose gradient torch-mlir lowers only to StableHLO."""
    torch.manual_seed(0)
    model = LanguageModel()
    trained = {name: one.detach() for name, one in model.named_parameters() if not name.startswith("embed")}
    table = model.embed.weight.detach()
    tokens = torch.randint(0, 64, (64, 8))

    def step(trained: Any, table: Any, tokens: Any, targets: Any) -> Any:
        def loss(trained: Any) -> Any:
            logits = functional_call(model, {**trained, "embed.weight": table}, (tokens,))
            return cross_entropy(logits.flatten(0, 1), targets.flatten())

        gradients, value = grad_and_value(loss)(trained)
        return {name: one - 0.1 * gradients[name] for name, one in trained.items()}, value

    arguments = trained, table, tokens, tokens.roll(-1, 1)
    return TorchModel("", step, arguments, {"data": 8}, (P(), P(), P("data"), P("data")), P())
