# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Execution of a program on PJRT devices from one process: XLA compiles it with one replica per device.

The devices are real ones, or virtual ones of the CPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np
from jax.errors import JaxRuntimeError
from jaxlib import lapack, xla_client
from jaxlib.mlir.dialects import stablehlo

from mlir_shard import host
from mlir_shard.runtime import arrays
from mlir_shard.runtime.arrays import Array
from mlir_shard.runtime.error import RunError
from mlir_shard.runtime.program import Program

_LAPACK = "@lapack_"


class PjrtExecutable:
    """A program on the first `program.ranks` devices of a platform.

    Raises RunError if the platform has fewer devices, or XLA cannot compile or run the program.
    """

    def __init__(self, program: Program, platform: str) -> None:
        self._program = program
        self._devices = _devices(platform, program.ranks)
        options = xla_client.CompileOptions()
        for one in (options, options.executable_build_options):
            one.num_replicas, one.num_partitions = program.ranks, 1
        numbers = np.array([[device.id] for device in self._devices])
        options.device_assignment = xla_client.DeviceAssignment.create(numbers)
        if _LAPACK in program.text:
            # jax initializes its LAPACK functions when it first lowers a call of one; before, XLA calls a null pointer.
            lapack.prepare_lapack_call("potrf", np.dtype(np.float32))
        with _errors("compile"):
            self._executable = self._devices[0].client.compile_and_load(
                _portable(program.text), xla_client.DeviceList(tuple(self._devices)), options
            )

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        """Returns the results, each an array on every device, for inputs as `put` returns them."""
        with _errors("run"):
            returned = self._executable.execute_sharded(list(inputs)).disassemble_into_single_device_arrays()
            results = [self._joined(blocks) for blocks in returned]
            # Errors on a device are raised once its results are complete.
            jax.block_until_ready(results)
        return results

    def memory(self) -> int:
        """Returns the bytes that a device needs according to XLA: arguments, results that do not alias arguments, and
        temporaries."""
        stated = self._executable.get_compiled_memory_stats()
        needed = stated.argument_size_in_bytes + stated.output_size_in_bytes + stated.temp_size_in_bytes
        return int(needed - stated.alias_size_in_bytes)

    def put(self, blocks: Sequence[Array]) -> Any:
        """Puts a shard on each device and returns the array of them."""
        return self._joined(
            [jax.device_put(block, device) for block, device in zip(blocks, self._devices, strict=True)]
        )

    def take(self, array: Any) -> list[Array]:
        """Returns the shard on each device, in storage form."""
        by_device = {shard.device: shard.data for shard in array.addressable_shards}
        return [arrays.stored(np.asarray(by_device[device])) for device in self._devices]

    def _joined(self, blocks: Sequence[Any]) -> Any:
        """Returns an array whose shard on each device is one of `blocks`; its global shape has no meaning."""
        mesh = jax.sharding.Mesh(np.array(self._devices), ("device",))
        sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
        return jax.make_array_from_single_device_arrays(blocks[0].shape, sharding, blocks)


@contextmanager
def _errors(what: str) -> Iterator[None]:
    try:
        yield
    except JaxRuntimeError as error:
        raise RunError(f"XLA cannot {what} the program: {str(error).splitlines()[0]}") from error


def _devices(platform: str, count: int) -> list[Any]:
    try:
        devices = jax.devices(platform)
    except RuntimeError as error:
        raise RunError(f"PJRT has no platform '{platform}': {str(error).splitlines()[0]}") from error
    if len(devices) < count:
        raise RunError(f"the program is for {count} devices, but PJRT has {len(devices)} of platform '{platform}'")
    return list(devices[:count])


def _portable(text: str) -> bytes:
    """Serializes a module for the version of StableHLO in jaxlib, which may be older than the host's."""
    versions = host.module("_mlir_libs._stablehlo")
    version = versions.get_smaller_version(versions.get_current_version(), stablehlo.get_current_version())
    portable: bytes = versions.serialize_portable_artifact_str(text, version)
    return portable
