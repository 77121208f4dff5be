# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The process that imports the project once, and forks for each request."""

from __future__ import annotations

import array
import contextlib
import functools
import gc
import importlib
import importlib.util
import marshal
import os
import pkgutil
import selectors
import signal
import socket
import struct
import sys

from fork_server import command
from fork_server.fork import Request, Template, run

_NUMBER = 8
_MOST_DESCRIPTORS = 253
_FRESH, _ELSEWHERE = 0, 2 ** (8 * _NUMBER) - 1
_PROJECT = "mlir_shard"
_ENGINE_OF_JAX = "mlir_shard.runtime.pjrt.executable"
# These modules import torch, which no request needs.
_OF_MODEL_EXPLORER = "mlir_shard.tools.model_explorer.main"
_OF_TORCH = ("mlir_shard.frontend.from_torch", "mlir_shard.frontend.torch_import")
_CHECKER = "filecheck.main"


class Server:
    """Forks for requests on a listening socket until standard input ends.

    Requests that load jax are forwarded to a separate server, a fork of this one, because jax makes forks more
    expensive.
    """

    def __init__(self, listener: socket.socket, template: Template | None = None) -> None:
        self._listener, self._template = listener, template
        self._has_jax = template is not None
        self._server_with_jax = 0
        self._selector = selectors.DefaultSelector()
        self._woken, self._waker = socket.socketpair()
        self._clients: dict[int, socket.socket] = {}

    def serve(self) -> None:
        """Answers requests, and ends the remaining forks when standard input ends."""
        for end in (self._woken, self._waker):
            end.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        self._selector.register(sys.stdin.fileno(), selectors.EVENT_READ)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._listener:
                    self._answer(self._listener.accept()[0])
                elif key.fileobj is self._woken:
                    self._reap()
                elif isinstance(key.fileobj, socket.socket):
                    self._abandon(key.data)
                else:
                    self._end_forks()
                    return

    def _answer(self, client: socket.socket) -> None:
        received = _receive(client) if _is_own(client) else None
        if received is None:
            client.close()
            return
        request, descriptors = received
        if self._template is None:
            _import_all()
            _pass_on(self._listener)
            self._template = Template()
        if not self._template.fits(request):
            answer = _FRESH
        elif request.loads_jax and not self._has_jax:
            if not self._server_with_jax:
                self._start_with_jax(self._template)
            answer = _ELSEWHERE
        else:
            answer = os.fork()
            if answer == 0:
                self._leave(client)
                run(request, descriptors, self._template)
            self._clients[answer] = client
            self._selector.register(client, selectors.EVENT_READ, answer)
        for descriptor in descriptors:
            os.close(descriptor)
        # The client may have ended by now.
        with contextlib.suppress(OSError):
            client.sendall(answer.to_bytes(_NUMBER, "little"))
        if answer in (_FRESH, _ELSEWHERE):
            client.close()

    def _start_with_jax(self, template: Template) -> None:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(self._listener.getsockname() + b"+jax")
        listener.listen(socket.SOMAXCONN)
        self._server_with_jax = os.fork()
        if self._server_with_jax:
            listener.close()
            return
        self._leave()
        for name in (_ENGINE_OF_JAX, "jaxlib.lapack"):
            importlib.import_module(name)
        _share_memory()
        Server(listener, template).serve()
        os._exit(0)

    def _leave(self, *others: socket.socket) -> None:
        """Closes the files of the server in a fork."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._selector.close()
        for one in (self._listener, self._woken, self._waker, *self._clients.values(), *others):
            one.close()

    def _end_forks(self) -> None:
        for process in self._clients:
            os.kill(process, signal.SIGKILL)
        if self._server_with_jax:
            os.waitpid(self._server_with_jax, 0)

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._woken.recv(4096):
                pass
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                process, status = ended
                client = self._forget(process)
                if client is not None:
                    with contextlib.suppress(OSError):
                        client.sendall(status.to_bytes(_NUMBER, "little"))
                    client.close()

    def _abandon(self, process: int) -> None:
        """Ends a fork whose client has been killed: a client sends nothing after its request."""
        client = self._forget(process)
        if client is not None:
            client.close()
            os.kill(process, signal.SIGKILL)

    def _forget(self, process: int) -> socket.socket | None:
        client = self._clients.pop(process, None)
        if client is not None:
            self._selector.unregister(client)
        return client


def _is_own(client: socket.socket) -> bool:
    """Returns True if the client belongs to the same user: a name in the abstract namespace has no permissions."""
    credentials = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    user: int = struct.unpack("3i", credentials)[1]
    return user == os.getuid()


def _receive(client: socket.socket) -> tuple[Request, list[int]] | None:
    """Returns a request and the file descriptors received with it, or None if the client has ended in the middle."""
    descriptors = array.array("i")
    head, ancillary, _, _ = client.recvmsg(_NUMBER, socket.CMSG_SPACE(_MOST_DESCRIPTORS * descriptors.itemsize))
    for _, _, data in ancillary:
        descriptors.frombytes(data)
    size, pieces, received = int.from_bytes(head, "little"), [], 0
    while received < size:
        piece = client.recv(min(size - received, 1 << 16))
        if not piece:
            break
        pieces.append(piece)
        received += len(piece)
    if len(head) < _NUMBER or received < size:
        for descriptor in descriptors:
            os.close(descriptor)
        return None
    return Request(*marshal.loads(b"".join(pieces))), list(descriptors)


def _import_all() -> None:
    """Imports the modules that requests may need, except jax, torch and Model Explorer, and sets up global state."""
    if importlib.util.find_spec(_CHECKER.partition(".")[0]) is not None:
        importlib.import_module(_CHECKER)
    package = importlib.import_module(_PROJECT)
    for module in pkgutil.walk_packages(package.__path__, f"{_PROJECT}."):
        if module.name not in (_ENGINE_OF_JAX, _OF_MODEL_EXPLORER, *_OF_TORCH):
            importlib.import_module(module.name)
    # Later contexts, including those of forks, reuse the data that the second one keeps.
    for _ in range(2):
        package.create_context()
    _share_memory()


def _share_memory() -> None:
    """Exempts existing objects from the garbage collection of forks, which keeps their memory shared."""
    gc.collect()
    gc.freeze()


def _pass_on(listener: socket.socket) -> None:
    """Makes the processes that a fork starts, such as ranks, forks as well."""
    address = listener.getsockname()[1:].decode()
    python_process = importlib.import_module(f"{_PROJECT}.runtime.launch.python_process")
    python_process.python_command = functools.partial(command, address)


def main(listener: int) -> None:
    """Serves on a listening socket, given by its file descriptor."""
    Server(socket.socket(fileno=listener)).serve()
