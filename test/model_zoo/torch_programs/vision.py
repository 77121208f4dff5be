# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions, recurrence and mixed precision."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.func import functional_call, grad_and_value

from mlir_shard import P
from model_zoo.program import TorchModel, torch_model

DATA = {"data": 8}


class Residual(nn.Module):
    """A residual block between a stem and a classifier."""

    def __init__(self, channels: int = 8) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, channels, 3, padding=1, bias=False)
        self.conv1, self.conv2 = (nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(2))
        self.norm0, self.norm1, self.norm2 = (nn.BatchNorm2d(channels) for _ in range(3))
        self.pool, self.classes = nn.MaxPool2d(2), nn.Linear(channels, 10)

    def forward(self, x: Any) -> Any:
        x = torch.relu(self.norm0(self.stem(x)))
        y = torch.relu(self.norm1(self.conv1(x)))
        x = self.pool(torch.relu(x + self.norm2(self.conv2(y))))
        return self.classes(x.mean((2, 3)))


@torch_model
def torch_resnet() -> TorchModel:
    """Inference, data parallel, without communication."""
    torch.manual_seed(0)
    return TorchModel("", Residual().eval(), (torch.randn(16, 3, 16, 16),), DATA, (P("data"),))


@torch_model
def torch_resnet_training() -> TorchModel:
    """The forward pass of training communicates only means and variances of the batch."""
    torch.manual_seed(0)
    return TorchModel("", Residual().train(), (torch.randn(16, 3, 16, 16),), DATA, (P("data"),))


class Lookups(nn.Module):
    """A table with many rows, which are looked up by token and then by position."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = nn.Embedding(512, 8)

    def forward(self, tokens: Any, order: Any) -> Any:
        return torch.gather(self.rows(tokens), 1, order[:, :, None].expand(-1, -1, 8))


@torch_model
def torch_sharded_table() -> TorchModel:
    """Table rows are sharded along one axis, tokens along the other; found rows are communicated, not the table."""
    torch.manual_seed(0)
    arguments = torch.randint(0, 512, (8, 6)), torch.randint(0, 6, (8, 6))
    mesh = {"data": 4, "model": 2}
    return TorchModel("", Lookups(), arguments, mesh, (P("data"), P("data")), shard={"rows.weight": P("model")})


class Recurrent(nn.Module):
    """An LSTM and a classifier of its last output."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.classes = nn.LSTM(16, 32, batch_first=True), nn.Linear(32, 4)

    def forward(self, x: Any) -> Any:
        return self.classes(self.lstm(x)[0][:, -1])


@torch_model
def torch_lstm() -> TorchModel:
    """Data parallel, without communication."""
    torch.manual_seed(0)
    return TorchModel("", Recurrent(), (torch.randn(16, 6, 16),), DATA, (P("data"),))


@torch_model
def torch_mixed_precision_step() -> TorchModel:
    """A step with bf16 products and f32 parameters and momenta."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 8))
    parameters = {name: one.detach() for name, one in model.named_parameters()}
    momenta = {name: torch.zeros_like(one) for name, one in parameters.items()}

    def step(parameters: Any, momenta: Any, x: Any, y: Any) -> Any:
        def loss(parameters: Any) -> Any:
            half = {name: one.bfloat16() for name, one in parameters.items()}
            return (functional_call(model, half, (x.bfloat16(),)).float() - y).pow(2).mean()

        gradients, value = grad_and_value(loss)(parameters)
        momenta = {name: 0.9 * one + gradients[name] for name, one in momenta.items()}
        return {name: one - 0.1 * momenta[name] for name, one in parameters.items()}, momenta, value

    arguments = parameters, momenta, torch.randn(64, 16), torch.randn(64, 8)
    return TorchModel("", step, arguments, DATA, (P(), P(), P("data"), P("data")), P(), tolerance=5e-2)
