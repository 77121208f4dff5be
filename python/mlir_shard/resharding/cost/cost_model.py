# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The objectives of plans, and the links from which the time of moves is computed, see `link_times`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from reprlib import repr
from typing import Any

from mlir_shard.resharding.cost.links import DEFAULT_LINK, Link, link_times
from mlir_shard.resharding.cost.step_cost import StepCost, step_cost
from mlir_shard.resharding.grid_tensor import GridTensor
from mlir_shard.resharding.steps import Move, Placement


class Objective(Enum):
    """The quantity that a plan minimizes; time breaks ties, or bytes for TIME."""

    BYTES = "bytes"
    """The bytes that all devices receive."""
    TIME = "time"
    """The seconds that the moves take, one after the other."""
    MEMORY = "memory"
    """The most bytes that a device holds at once."""


KEYS = ("latency", "bandwidth", "objective", "memory_limit", "links")
"""The keys of a mapping that describes a cost model."""


@dataclass(frozen=True, slots=True)
class CostModel:
    """The latencies and bandwidths by which plans are chosen, and the objective that they minimize.

    Sub-axes have the link of their axis.

    Attributes:
        default: the link along axes that are not in `links`.
        links: links of mesh axes by name.
        objective: the quantity that a plan minimizes.
        memory_limit: the bytes that a device may hold, None without a limit.

    Raises:
        ValueError: an axis has two links, or the limit is not positive.
    """

    default: Link = DEFAULT_LINK
    links: tuple[tuple[str, Link], ...] = ()
    objective: Objective = Objective.TIME
    memory_limit: int | None = None

    def __post_init__(self) -> None:
        names = [name for name, _ in self.links]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f'axis "{twice[0]}" has two links')
        if self.memory_limit is not None and self.memory_limit <= 0:
            raise ValueError(f"a memory limit must be a positive number of bytes, got {self.memory_limit}")

    def link(self, axis: str) -> Link:
        """Returns the link along the mesh axis of this name."""
        return dict(self.links).get(axis, self.default)

    def cost(self, move: Move, before: Placement, tensor: GridTensor) -> StepCost:
        """Returns the cost of a move.

        Raises:
            ValueError: the move is not possible, see `GridTensor.after`.
        """
        return step_cost(move, before, tensor.after(move, before), tensor, link_times(tensor.grid, self.link))

    def check_axes(self, axes: Iterable[str]) -> None:
        """Checks that each link is of one of these mesh axes.

        Raises:
            ValueError: a link is of another axis.
        """
        known = list(dict.fromkeys(axes))
        for name, _ in self.links:
            if name not in known:
                listed = ", ".join(f'"{axis}"' for axis in known)
                raise ValueError(f"links.{_key(name)}: not an axis of the mesh, which has {listed or 'none'}")

    @staticmethod
    def of_file(path: str | Path, axes: Iterable[str] | None = None) -> CostModel:
        """Returns the model that a file describes.

        Args:
            path: of a file of TOML, or of JSON if its name ends so, with the keys of `from_mapping`.
            axes: the mesh axes that links may be of; by default any.

        Raises:
            ValueError: the file cannot be read or is not valid, in one line that names it.
        """
        path = Path(path)
        try:
            model = CostModel.from_mapping(_read(path))
            if axes is not None:
                model.check_axes(axes)
            return model
        except UnicodeDecodeError as error:
            raise ValueError(f"cost model {path}: not UTF-8: {error.reason} at byte {error.start}") from error
        except OSError as error:
            raise ValueError(f"cost model {path}: {error.strerror}") from error
        except RecursionError as error:
            raise ValueError(f"cost model {path}: nested too deeply") from error
        except ValueError as error:
            raise ValueError(f"cost model {path}: {error}") from error

    @staticmethod
    def from_mapping(values: Mapping[str, Any]) -> CostModel:
        """Returns the model with the given `latency`, `bandwidth`, `objective`, `memory_limit` and, by axis, `links`.

        All may be left out. A link that has only a latency, or only a bandwidth, has the other one from the default.

        Raises:
            ValueError: a key is unknown or its value is wrong; the message names the key.
        """
        if not isinstance(values, Mapping):
            raise ValueError(f"expected a table with {', '.join(KEYS)}, got {repr(values)}")
        _check_keys(values, KEYS, "")
        default = _link(values, DEFAULT_LINK, "")
        links = values.get("links", {})
        if not isinstance(links, Mapping):
            raise ValueError(f"links: expected a table with an entry for each axis, got {repr(links)}")
        by_axis = []
        for name, link in links.items():
            where = f"links.{_key(name)}"
            if not isinstance(link, Mapping):
                raise ValueError(f"{where}: expected a table with latency and bandwidth, got {repr(link)}")
            _check_keys(link, ("latency", "bandwidth"), f"{where}.")
            by_axis.append((str(name), _link(link, default, f"{where}.")))
        objective = values.get("objective", Objective.TIME.value)
        known = [one.value for one in Objective]
        if objective not in known:
            raise ValueError(f"objective: expected one of {', '.join(known)}, got {repr(objective)}")
        limit = values.get("memory_limit")
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit <= 0):
            raise ValueError(f"memory_limit: expected a positive number of bytes, got {repr(limit)}")
        return CostModel(default, tuple(by_axis), Objective(objective), limit)


def _read(path: Path) -> Any:
    text = path.read_text(encoding="utf-8")
    return json.loads(text) if path.suffix == ".json" else _toml().loads(text)


def _toml() -> Any:
    try:
        return import_module("tomllib")
    except ModuleNotFoundError as error:
        raise ValueError("TOML requires Python 3.11 or later; use a .json file") from error


def _key(name: Any) -> str:
    """Returns a key as it is shown in one line of text."""
    return name if isinstance(name, str) and name.isprintable() else repr(name)


def _check_keys(values: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in values:
        if key not in known:
            raise ValueError(f"{where}{_key(key)}: unknown key, expected one of {', '.join(known)}")


def _link(values: Mapping[str, Any], default: Link, where: str) -> Link:
    numbers = {"latency": default.latency, "bandwidth": default.bandwidth}
    for key in numbers:
        value = values.get(key, numbers[key])
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueError(f"{where}{key}: expected a number, got {repr(value)}")
        try:
            number = float(value)
            Link(**{**numbers, key: number})
        except OverflowError as error:
            raise ValueError(f"{where}{key}: the number {repr(value)} is too large") from error
        except ValueError as error:
            raise ValueError(f"{where}{key}: {error}") from error
        numbers[key] = number
    return Link(**numbers)
