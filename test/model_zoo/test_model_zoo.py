# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of the zoo on both targets: bytes beside XLA's of all, results of some."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

RUN = (
    "llama_block",
    "kv_cache_decoding",
    "resnet",
    "lstm",
    "manual_data_parallel",
    "graph_network",
    "heat_equation",
    "unet",
    "max_pool_gradient",
    "torch_encoder_layer_tosa",
    "torch_language_model_step_linalg",
    "torch_resnet_training_stablehlo",
)

PREDICTED = (
    "ring_attention",
    "sequence_parallel_block",
    "power_iteration",
    "decoder_adamw",
    "llama_block",
    "kv_cache_decoding",
    "vision_transformer",
    "resnet",
    "torch_llama_block_stablehlo",
    "torch_language_model_loss_stablehlo",
)


def zoo(*arguments: str) -> None:
    """Runs the table in a process of its own, as virtual devices have to be there before JAX is imported."""
    command = [sys.executable, "-m", "model_zoo", *arguments]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_memory_beside_compiled_programs() -> None:
    """Predicted memory is close to what XLA states, and to what the program of MPI allocates."""
    zoo("--memory", *PREDICTED)


def test_bytes_beside_xla() -> None:
    """No target receives more than XLA's program, but where the model says why."""
    zoo("--only-bytes")


def test_results() -> None:
    """Both targets give the results without sharding."""
    zoo(*RUN)
