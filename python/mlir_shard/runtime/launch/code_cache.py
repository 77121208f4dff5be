# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A cache of compiled programs on disk, keyed by the content of their sources."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from mlir_shard import __version__


@dataclass(frozen=True, slots=True)
class CodeCache:
    """A folder of this user, which is created if it is missing; its content is executed.

    A file that cannot be read counts as missing; a failure to write a file is ignored.
    """

    directory: Path

    def get(self, *key: str | bytes) -> bytes | None:
        """Returns the content that the same versions of the compilers stored for this key; None if none exists."""
        with contextlib.suppress(OSError):
            return self._path(key).read_bytes()
        return None

    def put(self, content: bytes, *key: str | bytes) -> None:
        """Stores content atomically: readers see all of it or nothing."""
        with contextlib.suppress(OSError):
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            file, name = tempfile.mkstemp(dir=self.directory)
            with os.fdopen(file, "wb") as stream:
                stream.write(content)
            Path(name).replace(self._path(key))

    def _path(self, key: tuple[str | bytes, ...]) -> Path:
        digest = hashlib.sha256()
        for part in (*_versions(), *key):
            written = part.encode() if isinstance(part, str) else part
            digest.update(len(written).to_bytes(8, "little") + written)
        return self.directory / digest.hexdigest()


@functools.cache
def _versions() -> tuple[str, ...]:
    """Returns the versions and file times that content depends on: an editable install changes under one version."""
    # Imported here, not with this module: a rank that loads machine code does not need MLIR.
    from mlir_shard import host

    changed = [path.stat().st_mtime_ns for path in Path(__file__).parent.parent.rglob("*.py")]
    bindings = Path(str(host.ir.__file__)).stat().st_mtime_ns
    return __version__, str(max(changed)), host.PREFIX, str(bindings)
