# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decides whether a local program computes the results of a global one, with arguments and results in given layouts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from mlir_shard.check.kernel.kinds import NotCertified
from mlir_shard.check.kernel.mesh import Mesh
from mlir_shard.check.kernel.symbols import FEW, Symbols
from mlir_shard.check.lemmas.affine import Affine
from mlir_shard.check.lemmas.values import Node, Value
from mlir_shard.check.ops.tensors import Tensors
from mlir_shard.check.programs import Axes, Program, Refused, axes_of
from mlir_shard.deferred import numpy as np


class CertificateError(ValueError):
    """A certificate that cannot be read, or is for other programs."""


@dataclass(frozen=True)
class Signature:
    """The mesh axes that divide each dimension of the arguments and results of a function.

    Attributes:
        orders: for arguments and results, by number, the devices in the order of positions, if that is another order.
    """

    arguments: tuple[Axes, ...]
    results: tuple[Axes, ...]
    orders: Mapping[str, Mapping[int, tuple[int, ...]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Certificate:
    """The information that cannot be inferred from the two programs.

    Attributes:
        mesh: the sizes of the mesh axes, major to minor, in the order in which they number devices.
        devices: the number of the device at each position, if that differs from the position.
        functions: the layouts of the functions that are called from outside.
        loops: hints for loops in the order of the program: the layouts of loop-carried values.
    """

    mesh: Mapping[str, int]
    functions: Mapping[str, Signature]
    loops: tuple[tuple[Axes, ...], ...] = ()
    devices: tuple[int, ...] = ()

    @staticmethod
    def read(text: str) -> Certificate:
        """Reads a certificate from JSON. Raises CertificateError if the text is not a certificate."""
        try:
            data = json.loads(text)
            mesh = {str(name): int(size) for name, size in data["mesh"]}

            def layouts(given: Any) -> tuple[Axes, ...]:
                return tuple(axes_of(one, mesh) for one in given)

            functions = {
                name: Signature(
                    layouts(one["arguments"]),
                    layouts(one["results"]),
                    {
                        side: {int(at): tuple(map(int, order)) for at, order in of.items()}
                        for side, of in one.get("orders", {}).items()
                    },
                )
                for name, one in data["functions"].items()
            }
            loops = tuple(layouts(one) for one in data.get("loops", ()))
            return Certificate(mesh, functions, loops, tuple(map(int, data.get("devices", ()))))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CertificateError(f"it is not a certificate: {error!r}") from None


@dataclass
class Verdict:
    """The result of a check.

    Attributes:
        refusals: the parts that are not proved, each with the op where the proof fails and the lemma.
        pairs: the expected and the actual value of each result that is not proved.
        lost: how often an op had no lemma, by the program, the op and the reason.
        trusted: the assumptions of the proof besides the meaning of tensors.
        ops: the number of operations read in both programs.
        by: the method: "symbols", by the definitions of the ops on symbols, or "lemmas".
    """

    refusals: list[Refused] = field(default_factory=list)
    pairs: list[tuple[Any, Any]] = field(default_factory=list)
    lost: dict[str, int] = field(default_factory=dict)
    trusted: set[str] = field(default_factory=set)
    ops: int = 0
    by: str = "symbols"

    @property
    def is_proved(self) -> bool:
        """Whether all functions are proved."""
        return not self.refusals


class ExactTensors(Symbols, Tensors):
    """The definition of the ops of all dialects, on symbols."""


def check(whole: Any, local: Any, certificate: Certificate, *, by: str = "") -> Verdict:
    """Checks each function of the certificate.

    Args:
        whole, local: modules of one context.
        by: "symbols" or "lemmas" for one method alone; by default symbols if there are few elements, then lemmas, then
            symbols with a higher limit on the number of elements.
    """
    if not certificate.functions:
        raise CertificateError("it does not name a function")
    axes = tuple(certificate.mesh.values())
    symbols = ExactTensors(Mesh(axes), FEW)
    if by != "lemmas":
        verdict = _verdict(symbols, whole, local, certificate)
        if verdict.is_proved:
            return verdict
    if by != "symbols":
        verdict = _verdict(Affine(Mesh(axes)), whole, local, certificate)
    if not verdict.is_proved and by != "lemmas" and symbols.is_spent:
        found = _verdict(ExactTensors(Mesh(axes)), whole, local, certificate)
        return found if found.is_proved else verdict
    return verdict


def _verdict(tensors: Tensors, whole: Any, local: Any, certificate: Certificate) -> Verdict:
    """Returns the verdict by one meaning of tensors."""
    positions = devices_of(certificate)
    programs = [
        Program(tensors, name, module, positions, certificate.loops, tuple(certificate.mesh))
        for name, module in (("global", whole), ("local", local))
    ]
    verdict = Verdict(by="symbols" if tensors.is_exact else "lemmas")
    for name, signature in certificate.functions.items():
        _check(name, signature, tensors, programs[0], programs[1], verdict)
    for program in programs:
        verdict.trusted |= program.trusted
        verdict.ops += program.ops
        for what, count in program.lost.items():
            verdict.lost[f"{program.name}: {what}"] = count
    return verdict


def _check(name: str, signature: Signature, tensors: Tensors, whole: Program, local: Program, verdict: Verdict) -> None:
    if name not in whole.functions or name not in local.functions:
        raise CertificateError(f"a program has no function @{name}")
    functions = [program.functions[name] for program in (whole, local)]
    types = [function.attributes["function_type"].value for function in functions]
    counts = [(len(type_.inputs), len(type_.results)) for type_ in types]
    if counts != [(len(signature.arguments), len(signature.results))] * 2:
        raise CertificateError(f"function @{name} has other arguments or results")
    try:
        given = [
            tensors.leaf(("argument", name, at), whole.type_of(type_)[0]) for at, type_ in enumerate(types[0].inputs)
        ]
        for at, (value, axes) in enumerate(zip(given, signature.arguments, strict=True)):
            if len(axes) != value.rank:
                raise NotCertified(f"argument {at} has {value.rank} dimensions, and its layout {len(axes)}", "layout")
        shards = [tensors.given(value, axes) for value, axes in zip(given, signature.arguments, strict=True)]
        devices = len(local.position_of)
        for at, value in enumerate(shards):
            if own := signature.orders.get("arguments", {}).get(at):
                # Device own[i] has the shard of position i.
                shards[at] = tensors.permuted(value, np.argsort(_permutation(own, devices)), "")
        for value, type_ in zip(shards, types[1].inputs, strict=True):
            if local.type_of(type_)[0] != value.shape:
                raise NotCertified(f"an argument of shape {value.shape}", "layout")
        expected = whole.read(name, given)
        local.known_loops = whole.loops
        found = local.read(name, shards)
        if local.sent:
            raise NotCertified("a value is sent but not received", "send and recv")
        if local.communicates is not None:
            # Refused even if its results are unused, because communication synchronizes devices.
            verdict.refusals.append(local.communicates)
        for at, (value, axes, result) in enumerate(zip(expected, signature.results, found, strict=True)):
            if own := signature.orders.get("results", {}).get(at):
                result = tensors.permuted(result, _permutation(own, devices), "")
            if not tensors.is_shard(result, value, axes):
                verdict.pairs.append((value, result) if local.different is None else local.different)
                verdict.refusals.append(_difference(at, value, result, functions[1], local, whole))
    except NotCertified as failure:
        verdict.refusals.append(Refused(functions[1], failure))
    except Refused as failure:
        verdict.refusals.append(failure)
    except RecursionError:
        verdict.refusals.append(Refused(functions[1], NotCertified("its values are nested too deeply", "depth")))


def _difference(at: int, wanted: Any, found: Any, function: Any, local: Program, whole: Program) -> Refused:
    """Returns the refusal at the first op whose result differs from that of the global program."""
    for program in (whole, local):
        if program.failure is not None and (program is whole or local.different is None):
            return program.failure
    op, lemma = function, "result"
    if local.different is not None:
        wanted, found = local.different
    if not isinstance(wanted, Value) or not isinstance(found, Value):
        return Refused(op, NotCertified(f"result {at} is not the shard of the result of the global program", lemma))
    pair: tuple[Node, Node] | None = (wanted.node, found.node)
    message = f"result {at} is not the shard of the result of the global program"
    seen = 0
    while pair is not None and pair[0] is not pair[1] and seen < 10_000:
        seen += 1
        first, second = pair
        if second.place is not None:
            op, lemma = second.place, str(second.op[0])
        pair = None
        if first.op == second.op and len(first.reads) == len(second.reads):
            pair = next(((a, b) for (a, _), (b, _) in zip(first.reads, second.reads, strict=True) if a is not b), None)
    return Refused(op, NotCertified(message, lemma))


def devices_of(certificate: Certificate) -> Any:
    """Returns the position on the mesh of each device, by the number of the device."""
    positions = np.arange(prod(certificate.mesh.values()))
    if certificate.devices:
        positions[_permutation(certificate.devices, len(positions))] = np.arange(len(positions))
    return positions


def _permutation(order: Sequence[int], count: int) -> Any:
    if sorted(order) != list(range(count)):
        raise CertificateError("devices are not a permutation")
    return np.array(order)


__all__: Sequence[str] = ("Certificate", "CertificateError", "Verdict", "check")
