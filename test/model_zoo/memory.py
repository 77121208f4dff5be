# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the memory that is predicted for models of the zoo with the memory of their compiled programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import mlir_shard
from mlir_shard.explain.memory import Engine, peak_memory
from mlir_shard.runtime.compile import Pipelines, compile_module
from mlir_shard.runtime.pjrt import xla_module
from mlir_shard.runtime.pjrt.executable import PjrtExecutable
from mlir_shard.runtime.program import Lowered, Program
from model_zoo.program import Model, TorchModel

CLOSE: dict[Engine, float] = {"pjrt": 0.05, "mpi": 0.1}
"""The maximum relative difference of a close prediction."""
_NESTED = "pads and concatenations in one another are fused in other ways"
_LOOPS = "what loops carry is copied at other places"
_ORDER = "kernels run in another order"
OFF: dict[Engine, dict[str, str]] = {
    "pjrt": {
        "beam_search_step": "a sort of which the first elements are used is XLA's TopK",
        "game_of_life": _NESTED,
        "graph_network": _ORDER,
        "heat_equation": "temporaries are packed in another order, with smaller gaps",
        "lu_solve": _LOOPS,
        "mixture_of_experts": "an operand of a product is copied to another layout",
        "newton_schulz": _ORDER,
        "pipelined_layers": "a scatter in a loop is in the memory of what the loop carries",
        "scanned_remat_decoder": _LOOPS,
        "selective_state_space": _NESTED,
        "torch_language_model_step_stablehlo": "one more elementwise result is in the memory of its operand",
        "torch_mixed_precision_step_stablehlo": "more temporaries are in the memory of results",
        "unet": _ORDER,
    },
    "mpi": {
        "game_of_life": "a select of which a part is sent is computed again where it is read, from padded tensors",
    },
}
"""Likely reasons of predictions that are not close, found in XLA's buffer assignment except those with `_LOOPS`."""
_COLLECTIVES: dict[Engine, str] = {"pjrt": "stablehlo", "mpi": "shard"}


@dataclass(frozen=True, slots=True)
class Compared:
    """The predicted memory and that of the compiled program, as XLA states it or as the MPI program allocates it."""

    model: str
    engine: Engine
    predicted: int
    needed: int

    @property
    def off(self) -> float:
        """The difference, relative to the needed memory."""
        return self.predicted / self.needed - 1

    @property
    def is_close(self) -> bool:
        """True if the difference is within `CLOSE`."""
        return abs(self.off) <= CLOSE[self.engine]

    @property
    def reason(self) -> str:
        """The known reason if the prediction is not close, otherwise empty."""
        return "" if self.is_close else OFF[self.engine].get(self.model, "")


def compare(name: str, model: Model | TorchModel, engine: Engine) -> Compared | None:
    """Compiles a model for an engine; None if the engine has no program for it, or if the needed memory is unknown."""
    from runtime import in_process

    collectives = _COLLECTIVES[engine]
    if collectives not in model.targets:
        return None
    lower: Callable[..., list[Lowered]] = xla_module.lower if engine == "pjrt" else in_process.lower_whole
    predicted: list[int] = []

    def watch(stage: str, module: Any) -> None:
        if stage == "local" and engine == "mpi":
            predicted.append(peak_memory(module, engine=engine).without_constants)

    module = mlir_shard.parse(model.measured().text, mlir_shard.create_context())
    pipelines = Pipelines("shard-propagate", f"shard-spmdize{{collectives={collectives}}}")
    program = compile_module(module, pipelines=pipelines, with_unsharded=False, watch=watch, lower=lower).sharded
    needed = _stated(program, predicted) if engine == "pjrt" else program.peak_bytes
    return Compared(name, engine, predicted[0], needed) if needed else None


def _stated(program: Program, predicted: list[int]) -> int:
    local = mlir_shard.parse(program.text, mlir_shard.create_context())
    predicted.append(peak_memory(local, engine="pjrt").without_constants)
    return PjrtExecutable(program, "cpu").memory()


def summary(found: Iterable[Compared], engine: Engine) -> str:
    """Returns the number of close predictions for an engine as text."""
    of_engine = [one for one in found if one.engine == engine]
    close = sum(one.is_close for one in of_engine)
    share = f"{close} of {len(of_engine)}"
    return f"{engine}: {share} within {CLOSE[engine]:.0%}"
