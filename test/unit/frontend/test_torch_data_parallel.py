# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of data parallelism of PyTorch models in each dialect, with weights as arguments and as constants.

pytest test/unit/frontend/test_torch_data_parallel.py --verbose
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional

import mlir_shard as ms
from mlir_shard import P

MESH = ms.Mesh({"data": 4})
DIALECTS = ("stablehlo", "linalg", "tosa")
BATCH = 8


class Residual(torch.nn.Module):
    """Convolutions with a shortcut, norms, a pool and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = (torch.nn.Conv2d(*channels, 3, padding=1) for channels in ((3, 8), (8, 8)))
        self.norm, self.head = torch.nn.BatchNorm2d(8), torch.nn.Linear(8, 10)

    def forward(self, x: Any) -> Any:
        x = functional.max_pool2d(functional.relu(self.first(x)), 2)
        return self.head(functional.relu(x + self.norm(self.second(x))).mean((2, 3)))


class Recurrent(torch.nn.Module):
    """An LSTM and a head for its last step."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = torch.nn.LSTM(8, 12, batch_first=True), torch.nn.Linear(12, 4)

    def forward(self, x: Any) -> Any:
        return self.head(self.lstm(x)[0][:, -1])


class LanguageModel(torch.nn.Module):
    """An embedding and one layer of causal attention."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.norm = torch.nn.Embedding(32, 16), torch.nn.LayerNorm(16)
        self.qkv, self.out, self.head = torch.nn.Linear(16, 48), torch.nn.Linear(16, 16), torch.nn.Linear(16, 32)

    def forward(self, tokens: Any) -> Any:
        x = self.embed(tokens)
        heads = [one.unflatten(-1, (4, 4)).transpose(1, 2) for one in self.qkv(self.norm(x)).chunk(3, -1)]
        mixed = functional.scaled_dot_product_attention(*heads, is_causal=True)
        return self.head(x + self.out(mixed.transpose(1, 2).flatten(2)))


def mlp() -> tuple[Any, Any]:
    layers = torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Dropout(0.1), torch.nn.Linear(32, 4)
    return torch.nn.Sequential(*layers), torch.randn(BATCH, 16)


def residual() -> tuple[Any, Any]:
    return Residual(), torch.randn(BATCH, 3, 8, 8)


def recurrent() -> tuple[Any, Any]:
    return Recurrent(), torch.randn(BATCH, 5, 8)


def encoder() -> tuple[Any, Any]:
    layer = torch.nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, norm_first=True)
    return layer, torch.randn(BATCH, 6, 16)


def language_model() -> tuple[Any, Any]:
    return LanguageModel(), torch.randint(0, 32, (BATCH, 6))


MODELS = (mlp, residual, recurrent, encoder, language_model)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_inference_moves_nothing(make: Callable[[], tuple[Any, Any]], dialect: str) -> None:
    torch.manual_seed(0)
    model, x = make()
    program = ms.from_torch(model.eval(), x, mesh=MESH, in_shardings=(P("data"),), dialect=dialect)
    assert len(program.argument_names) > 1
    assert_moves_nothing(program)


@pytest.fixture(scope="module")
def exported() -> dict[str, str]:
    """Returns the models by name and dialect, exported by torch-mlir in a new process because it adds passes."""
    return json.loads(subprocess.run([sys.executable, __file__], stdout=subprocess.PIPE, check=True).stdout)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_inference_with_constant_weights_moves_nothing(
    make: Callable[[], tuple[Any, Any]], dialect: str, exported: dict[str, str]
) -> None:
    """Inference is local for modules of torch-mlir's exporter, which have constant weights and unnamed arguments."""
    module = ms.parse(exported[f"{make.__name__} {dialect}"])
    ms.annotate(module, MESH, args={0: P("data")})
    assert_moves_nothing(ms.Program(module))


def assert_moves_nothing(program: Any) -> None:
    local = program.partition()
    assert not local.communication.collectives, str(local.communication)
    assert "tensor<2x" in repr(local)


def print_exported() -> None:
    """Prints the models that torch-mlir exports, as JSON."""
    from torch_mlir import fx

    texts = {}
    for make in MODELS:
        for dialect in DIALECTS:
            torch.manual_seed(0)
            model, x = make()
            output = "linalg-on-tensors" if dialect == "linalg" else dialect
            module = fx.export_and_import(model.eval(), x, output_type=output, func_name="main")
            texts[f"{make.__name__} {dialect}"] = str(module)
    print(json.dumps(texts))


if __name__ == "__main__":
    print_exported()
