# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowers models in PyTorch to programs, and computes their results by PyTorch and XLA's programs."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
import torch
from torch.utils import _pytree as pytree

import mlir_shard as ms
from model_zoo.program import Measured, TorchModel


def measured(model: TorchModel) -> Measured:
    """Returns the program of a model, with the parameters of a module as its first arguments."""
    state = dict(model.function.state_dict()) if isinstance(model.function, torch.nn.Module) else {}
    program = imported(model, model.dialect)
    arguments = pytree.tree_leaves(model.arguments)
    first = [state[name] for name in program.argument_names[: len(program.argument_names) - len(arguments)]]
    return Measured(
        str(program),
        list(map(_array, [*first, *arguments])),
        lambda: compiled(str(imported(model, "stablehlo"))),
        lambda: expected(model, len(program.result_names)),
    )


def imported(model: TorchModel, dialect: str) -> ms.Program:
    """Returns the model as a program in a dialect."""
    return ms.from_torch(
        model.function,
        *model.arguments,
        mesh=ms.Mesh(model.mesh),
        in_shardings=model.in_specs,
        out_shardings=model.out_specs,
        shard=model.shard,
        dialect=dialect,
    )


def expected(model: TorchModel, count: int) -> list[npt.NDArray[Any]]:
    """Returns the results of the model after the new values of its buffers, `count` in total."""
    results = list(map(_array, pytree.tree_leaves(model.function(*model.arguments))))
    buffers = dict(model.function.named_buffers()) if isinstance(model.function, torch.nn.Module) else {}
    return [*map(_array, list(buffers.values())[: count - len(results)]), *results]


def compiled(text: str) -> str:
    """Returns XLA's compiled program for a program with shardings, for virtual devices of the CPU."""
    from xla_passes import compiled as compiled_by_xla

    return compiled_by_xla(text).hlo_modules()[0].to_string()


def _array(tensor: torch.Tensor) -> npt.NDArray[Any]:
    # A call of a module may write to its buffers.
    tensor = tensor.detach().clone()
    return tensor.float().numpy().astype("bfloat16") if tensor.dtype == torch.bfloat16 else tensor.numpy()
