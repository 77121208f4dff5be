# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An explanation as data for JSON: sizes in bytes, times in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from mlir_shard.explain.places import Place
from mlir_shard.explain.values import Annotation, Cause, Chain, ExplainedCollective, Lost, Tensor
from mlir_shard.sharding import TensorSharding

if TYPE_CHECKING:
    from mlir_shard.explain.explanation import Explanation
    from mlir_shard.explain.suggestions import Suggestion
    from mlir_shard.explain.what_if import Comparison


def explanation_data(explanation: Explanation, tensors: Sequence[Tensor] = ()) -> dict[str, Any]:
    """Returns tensors with chains and losses, all tensors if none is given, and the collectives with causes."""
    return {
        "tensors": [tensor_data(explanation, one) for one in tensors or explanation.tensors],
        "collectives": [collective_data(one) for one in explanation.collectives],
        "totals": explanation.report.as_data()["totals"],
    }


def tensor_data(explanation: Explanation, tensor: Tensor) -> dict[str, Any]:
    """Returns a tensor with its chains and the axes that it lost."""
    return {
        **_tensor(tensor),
        "chains": [_chain(explanation, one) for one in explanation.chains(tensor)],
        "lost": [_lost(explanation, one) for one in explanation.lost(tensor)],
    }


def collective_data(one: ExplainedCollective) -> dict[str, Any]:
    """Returns a collective with its causes."""
    communication = one.collective.communication
    return {
        "kind": communication.kind.value,
        "axes": [asdict(axis) for axis in communication.axes],
        "bytes_received": communication.bytes_received,
        "time": one.collective.time,
        "place": one.collective.place,
        "causes": [_cause(cause) for cause in one.causes],
    }


def comparison_data(comparison: Comparison) -> dict[str, Any]:
    """Returns the totals before and after, and the tensors whose shardings differ."""
    return {
        "before": comparison.before.report.as_data()["totals"],
        "after": comparison.after.report.as_data()["totals"],
        "changed": [
            {**_tensor(one), "before": _sharding(one.sharding), "after": _sharding(other.sharding)}
            for one, other in comparison.changed_shardings()
        ],
    }


def suggestion_data(one: Suggestion) -> dict[str, Any]:
    """Returns an annotation with the bytes and times without and with it."""
    return {
        "tensor": _tensor(one.tensor),
        "sharding": one.change.sharding,
        "bytes_before": one.bytes_before,
        "bytes": one.bytes,
        "time_before": one.time_before,
        "time": one.time,
    }


def _tensor(tensor: Tensor) -> dict[str, Any]:
    return {
        "name": tensor.name,
        "op": tensor.op,
        "index": tensor.index,
        "function": tensor.function,
        "type": tensor.type,
        "bytes": tensor.bytes,
        "place": _place(tensor.place),
        "sharding": _sharding(tensor.sharding),
    }


def _sharding(sharding: TensorSharding | None) -> str | None:
    return None if sharding is None else str(sharding)


def _place(place: Place) -> dict[str, Any]:
    found: dict[str, Any] = {"file": place.file, "line": place.line, "column": place.column}
    if place.name:
        found["name"] = place.name
    if place.called_from is not None:
        found["called_from"] = _place(place.called_from)
    return found


def _annotation(annotation: Annotation) -> dict[str, Any]:
    return {
        "kind": annotation.kind.value,
        "text": annotation.text,
        "place": _place(annotation.place),
        "sharding": _sharding(annotation.sharding),
        "priority": annotation.priority,
    }


def _chain(explanation: Explanation, chain: Chain) -> dict[str, Any]:
    return {
        "axis": str(chain.axis),
        "dim": chain.dim,
        "annotation": _annotation(chain.annotation),
        "steps": [
            {
                "op": link.op,
                "place": _place(link.place),
                "factor": link.factor,
                "source": {"name": explanation.tensor(link.source).name, "role": link.source_role},
                "target": {"name": explanation.tensor(link.target).name, "role": link.target_role},
                "step": link.step,
            }
            for link in chain.links
        ],
    }


def _lost(explanation: Explanation, lost: Lost) -> dict[str, Any]:
    return {
        "axis": str(lost.axis),
        "dim": lost.dim,
        "reason": lost.reason.value,
        "text": lost.text,
        "remedy": lost.remedy,
        "op": lost.op,
        "place": _place(lost.place),
        "factor": lost.factor,
        "source": explanation.tensor(lost.source).name,
    }


def _cause(cause: Cause) -> dict[str, Any]:
    return {
        "kind": cause.kind.value,
        "text": cause.text,
        "op": cause.op,
        "place": _place(cause.place),
        "axes": [str(axis) for axis in cause.axes],
        "alternative": cause.alternative,
    }
