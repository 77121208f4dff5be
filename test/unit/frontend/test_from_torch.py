# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of programs from torch, which are partitioned and called with pytrees; module state stays on the devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import functional_call, grad_and_value
from torch.nn import functional

import mlir_shard as ms
from mlir_shard import P
from mlir_shard.runtime import RunError
from mlir_shard.runtime.launch import processes

MESH = ms.Mesh({"data": 2, "model": 2})
ENGINES = ("mpi", "pjrt")
DIALECTS = ("stablehlo", "linalg", "tosa")
MEGATRON = {
    "x": P("data"),
    "up.weight": P("model", None),
    "up.bias": P("model"),
    "down.weight": P(None, "model"),
}


class Perceptron(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x: torch.Tensor, scale: float = 1.0, *, offset: Any = None) -> dict[str, Any]:
        hidden = torch.relu(self.up(x)) * scale
        y = self.down(hidden)
        return {"y": y if offset is None else y + offset["by"], "parts": (hidden, None)}


@pytest.fixture
def model() -> Perceptron:
    torch.manual_seed(0)
    return Perceptron()


X = torch.arange(32.0).reshape(4, 8) / 10


def assert_close(got: Any, wanted: torch.Tensor, tolerance: float = 1e-5) -> None:
    np.testing.assert_allclose(np.asarray(got), wanted.detach().numpy(), rtol=tolerance, atol=tolerance)


def test_names_and_shardings(model: Perceptron) -> None:
    program = ms.from_torch(model, X, mesh=MESH, shard=MEGATRON, offset={"by": X})
    assert program.argument_names == ("up.weight", "up.bias", "down.weight", "down.bias", "x", "offset['by']")
    assert program.result_names == ("result['y']", "result['parts'][0]")
    shardings = program.shardings()
    assert str(shardings["result['parts'][0]"]) == '<@mesh, [{"data"}, {"model"}]>'
    assert str(shardings["offset.by"]) == '<@mesh, [{"data"}, {}]>'


@pytest.mark.parametrize("dialect", DIALECTS)
def test_collectives_are_those_of_megatron(model: Perceptron, dialect: str) -> None:
    program = ms.from_torch(model, X, mesh=MESH, shard=MEGATRON, dialect=dialect)
    (row,) = program.partition("stablehlo" if dialect == "stablehlo" else "shard").communication.collectives
    assert (row.communication.kind.value, row.communication.bytes_received) == ("all_reduce", 64)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(64, 64, bias=False) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (w(x).unflatten(-1, (8, 8)).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        return self.wo(nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


@pytest.mark.parametrize("dialect", ["stablehlo", "linalg"])
def test_attention_keeps_batch_and_heads_sharded(dialect: str) -> None:
    """The batch and the heads stay sharded although batch matmuls of torch merge both into one dimension."""
    shard = {"x": P("data"), "wo.weight": P(None, "model"), "w*.weight": P("model", None)}
    program = ms.from_torch(Attention(), torch.zeros(4, 16, 64), mesh=MESH, shard=shard, dialect=dialect)
    (row,) = program.partition().communication.collectives
    assert (row.communication.kind.value, row.communication.bytes_received) == ("all_reduce", 2 * 16 * 64 * 4)


@pytest.mark.parametrize(("dialect", "engine"), [("stablehlo", "pjrt"), *((one, "mpi") for one in DIALECTS)])
def test_it_computes_what_torch_does(model: Perceptron, dialect: str, engine: str) -> None:
    program = ms.from_torch(model, X, 2.0, mesh=MESH, shard=MEGATRON, offset={"by": X}, dialect=dialect)
    wanted = model(X, 2.0, offset={"by": X})
    with program.compile(engine) as run:
        for given in (X, X.numpy()):
            got = run(given, 2.0, offset={"by": X})
            assert got.keys() == wanted.keys()
            assert got["parts"][1] is None
            assert_close(got["y"], wanted["y"])
            assert_close(got["parts"][0], wanted["parts"][0])


def sampled(x: torch.Tensor) -> torch.Tensor:
    """Resizes, mirrors, flips and rolls images, selects their rows, and samples them at computed places."""
    large = functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
    small = functional.interpolate(large, scale_factor=0.5, mode="nearest")
    edges = functional.pad(small, (1, 1, 1, 1), mode="reflect")[:, :, 1:-1, 1:-1]
    turned = torch.index_select(torch.roll(edges.flip(3), 1, 2), 2, torch.tensor([1, 0, 3, 2, 5, 4]))
    chosen = torch.gather(turned, 3, (turned * 100).long() % 6)
    return functional.grid_sample(chosen, x[:, :2].permute(0, 2, 3, 1).tanh(), align_corners=False)


def test_elements_at_computed_places_are_local() -> None:
    """Reads of computed elements, which torch-mlir lowers to `tensor.extract` in the bodies of loops, are local."""
    torch.manual_seed(0)
    x = torch.randn(8, 3, 6, 6)
    program = ms.from_torch(sampled, x, mesh=MESH, in_shardings=(P("data"),), dialect="linalg")
    local = program.partition()
    assert local.communication.bytes_received == 0
    assert "stablehlo" not in str(local)
    assert_close(program.compile()(x), sampled(x))


def test_calls_must_have_the_structure_of_the_program(model: Perceptron) -> None:
    run = ms.from_torch(model, X, 2.0, offset={"by": X}).compile()
    with pytest.raises(TypeError, match=r"'offset\['by'\]' is not given"):
        run(X, 2.0, offset={})
    with pytest.raises(TypeError, match=r"'other' is given, but the program has no such argument"):
        run(X, 2.0, offset={"by": X}, other=X)
    with pytest.raises(TypeError, match=r"'scale' is 3.0, but the program was specialized for 2.0"):
        run(X, 3.0, offset={"by": X})
    with pytest.raises(
        RunError, match=r"argument 'x' of the program is tensor<4x8xf32>, but the given array has shape 2x8"
    ):
        run(X[:2], 2.0, offset={"by": X})


@pytest.mark.parametrize("engine", ENGINES)
def test_parameters_stay_on_the_devices(model: Perceptron, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    moved: list[int] = []
    put = processes.RankProcesses.put
    monkeypatch.setattr(
        processes.RankProcesses, "put", lambda self, index, array: moved.append(index) or put(self, index, array)
    )
    with ms.from_torch(model, X, mesh=MESH, shard=MEGATRON).compile(engine) as run:
        assert not run.state
        for _ in range(3):
            assert_close(run(X)["y"], model(X)["y"])
        assert moved == [0, 1, 2, 3]
        assert run.state["up.weight"].sharding == '<@mesh, [{"model"}, {}]>'
        assert_close(run.state["down.bias"], model.down.bias)
        with torch.no_grad():
            model.down.bias += 1
        assert_close(run(X)["y"], model(X)["y"])
        assert moved == [0, 1, 2, 3, 3]
        run.close()
        assert_close(run(X)["y"], model(X)["y"])
        assert moved[5:] == [0, 1, 2, 3]


@pytest.mark.parametrize("engine", ENGINES)
def test_buffers_change_on_the_devices(engine: str) -> None:
    model = nn.BatchNorm1d(8)
    program = ms.from_torch(model, X, mesh=MESH, shard={"input": P("data")})
    assert program.result_names[:1] == ("running_mean",)
    with program.compile(engine) as run:
        for _ in range(3):
            assert_close(run(X), model(X), 1e-4)
        assert_close(run.state["running_mean"], model.running_mean, 1e-4)
        assert_close(run.state["running_var"], model.running_var, 1e-4)
        assert int(run.state["num_batches_tracked"]) == 3


def step(params: dict[str, torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> tuple[dict[str, Any], torch.Tensor]:
    def loss(params: dict[str, torch.Tensor]) -> torch.Tensor:
        return nn.functional.mse_loss(functional_call(MODEL, params, (x,))["y"], y)

    gradients, value = grad_and_value(loss)(params)
    return {name: param - 0.1 * gradients[name] for name, param in params.items()}, value


MODEL = Perceptron()


# The batch is so large that gathering it is not cheaper than reducing gradients.
BATCH = torch.arange(1024.0).reshape(128, 8).sin()


@pytest.mark.parametrize("engine", ENGINES)
def test_training_steps(model: Perceptron, engine: str) -> None:
    params = {name: param.detach() for name, param in model.named_parameters()}
    specs = {name: MEGATRON.get(name) for name in params}
    program = ms.from_torch(
        step,
        params,
        BATCH,
        BATCH,
        mesh=MESH,
        in_shardings=(specs, P("data"), P("data")),
        out_shardings=(specs, P()),
        donate_argnums=0,
    )
    assert program.argument_names[:2] == ("params['up.weight']", "params['up.bias']")
    wanted, got = params, params
    with program.compile(engine) as train:
        for _ in range(3):
            before = got
            wanted, wanted_loss = step(wanted, BATCH, BATCH)
            got, loss = train(got, BATCH, BATCH)
            assert_close(loss, wanted_loss, 1e-4)
        assert before["up.weight"].is_deleted
        assert_close(got["up.weight"], wanted["up.weight"], 1e-4)
    collectives = {row.communication.kind.value for row in program.partition("stablehlo").communication.collectives}
    assert collectives == {"all_reduce"}


def test_bfloat16(model: Perceptron) -> None:
    model.to(torch.bfloat16)
    x = X.to(torch.bfloat16)
    with ms.from_torch(model, x, mesh=MESH, shard=MEGATRON).compile() as run:
        assert_close(np.asarray(run(x)["y"]).astype(np.float32), model(x)["y"].float(), 3e-2)


def test_exported_programs_and_tensors_without_elements(model: Perceptron) -> None:
    exported = torch.export.export(model, (X,))
    with ms.from_torch(exported, mesh=MESH, shard={"up.weight": P("model")}).compile() as run:
        assert_close(run(X)["y"], model(X)["y"])
    with torch.device("meta"):
        large = nn.Linear(1 << 14, 1 << 14, bias=False)
        program = ms.from_torch(large, torch.empty(64, 1 << 14), mesh=MESH, shard={"weight": P(None, "model")})
    assert program.partition().communication.bytes_received == 64 * (1 << 14) * 4
    with pytest.raises(ValueError, match=r"'weight' of shape \(16384, 16384\) is on the device 'meta'"):
        program.compile()(torch.zeros(64, 1 << 14))


def test_dynamic_shapes_are_those_of_the_arguments(model: Perceptron) -> None:
    exported = torch.export.export(model, (X,), dynamic_shapes={"x": {0: torch.export.Dim("batch", min=2)}})
    x = torch.randn(6, 8)
    program = ms.from_torch(exported, x, mesh=MESH, shard=MEGATRON)
    assert program.argument_names[-1] == "x"
    with program.compile() as run:
        assert_close(run(x)["y"], model(x)["y"])


class Writes(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x += 1
        return x * 2


def test_errors(model: Perceptron) -> None:
    with pytest.raises(TypeError, match="3 is not a module, a function or an ExportedProgram of torch"):
        ms.from_torch(3)
    with pytest.raises(ValueError, match="writes to its argument 'x': return the new value instead"):
        ms.from_torch(Writes(), X)
    with pytest.raises(
        ValueError, match=r"argument 'x' has the dynamic shape \(.*, 8\): specify arguments of static shape"
    ):
        ms.from_torch(torch.export.export(model, (X,), dynamic_shapes={"x": {0: torch.export.Dim.DYNAMIC}}))
    with pytest.raises(ValueError, match="the dialect 'onnx' is not one of linalg, stablehlo, tosa"):
        ms.from_torch(model, X, dialect="onnx")
    with pytest.raises(
        ValueError, match=r"in_shardings has no spec for \[0\]\[1\]: None leaves a sharding to propagation"
    ):
        ms.from_torch(step, dict(model.named_parameters()), X, X, mesh=MESH, in_shardings=(None,))
    with pytest.raises(ValueError, match=r"out_shardings has a spec for \['z'\], where the program has no tensor"):
        ms.from_torch(model, X, mesh=MESH, out_shardings={"y": None, "parts": None, "z": P("data")})
    with pytest.raises(ValueError, match=r"no argument matches 'left.weight': the arguments are up.weight"):
        ms.from_torch(model, X, mesh=MESH, shard={"left.weight": P("data")})
