"""A small network for images."""

import torch
from torch import nn

import mlir_shard as ms
from mlir_shard import P

model = nn.Sequential(
    nn.Conv2d(3, 8, kernel_size=3, stride=2, padding=1),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(8 * 8 * 8, 64),
    nn.ReLU(),
    nn.Linear(64, 100),
).eval()
program = ms.from_torch(
    model,
    torch.zeros(32, 3, 16, 16),
    mesh=ms.Mesh({"data": 2, "model": 2}),
    shard={"3.weight": P("model"), "5.weight": P(None, "model")},
    in_shardings=(P("data"),),
)
