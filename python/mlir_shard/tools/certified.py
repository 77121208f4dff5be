# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Partitioning with a certificate that is checked at once, and the verdict of a checker as diagnostics and text."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlir_shard.check.checker import Verdict
    from mlir_shard.passes.diagnostic import Diagnostic


def diagnostics(verdict: Verdict) -> list[Diagnostic]:
    """Returns an error for each result that is not proved, at the op where the proof fails."""
    from mlir_shard.passes import diagnostic

    found = []
    for refusal in verdict.refusals:
        name, lemma = refusal.op.name, refusal.failure.lemma
        because = "" if lemma in ("", name) else f" (lemma: {lemma})"
        message = f"'{name}' is not proved: {refusal.failure.message}{because}"
        one = diagnostic.at("error", message, refusal.op.location)
        if one not in found:
            found.append(one)
    return found


def summary(verdict: Verdict) -> str:
    """Returns the verdict as text: its result, the ops without a lemma, and the assumptions besides the lemmas."""
    by = f", by {verdict.by}" if verdict.is_proved else ""
    lines = [f"{'proved' if verdict.is_proved else 'not proved'}: {verdict.ops} operations read{by}"]
    lines += [f"not certified yet: {what}, {count} times" for what, count in sorted(verdict.lost.items())]
    lines += [f"trusted: {one}" for one in sorted(verdict.trusted)]
    return "\n".join(lines)


@contextmanager
def certificate_file() -> Iterator[str]:
    """Yields the path for a certificate file, and removes the file at the end."""
    with tempfile.TemporaryDirectory(prefix="mlir-shard-") as directory:
        yield os.path.join(directory, "certificate.json")


def certify(whole: Any, partition: Callable[[str], Any]) -> Verdict:
    """Partitions a program and returns the verdict on its local program.

    Args:
        whole: the global module, which stays as it is.
        partition: called with the path for the certificate file; returns the local module.
    """
    with certificate_file() as path:
        local = partition(path)
        return check_file(whole, local, path)


def check_file(whole: Any, local: Any, path: str) -> Verdict:
    """Returns the verdict on a local module by the certificate in a file."""
    from mlir_shard.check.checker import Certificate, check

    with open(path, encoding="utf-8") as file:
        return check(whole, local, Certificate.read(file.read()))
