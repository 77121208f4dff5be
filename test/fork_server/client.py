# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a module as `python -m MODULE ARGUMENT...` does, in a fork of a server: `client.py ADDRESS MODULE ARGUMENT...`.

It is started with `-I -S`, once for each command of a test, so it imports as little as possible: `_socket` and
`_signal` are `socket` and `signal` without the enumerations, and `marshal` is built in.
"""

import _signal
import _socket
import array
import marshal
import os
import sys

# Signals by which a launcher or a terminal ends a process; they are forwarded to the fork.
_FORWARDED = (_signal.SIGHUP, _signal.SIGINT, _signal.SIGQUIT, _signal.SIGTERM, _signal.SIGUSR1, _signal.SIGUSR2)
_NUMBER = 8
_FRESH, _ELSEWHERE = 0, 2 ** (8 * _NUMBER) - 1


def main() -> None:
    """Ends in the same way as the fork: with its exit status, or by the signal that ended it."""
    address, module, arguments = sys.argv[1], sys.argv[2], sys.argv[3:]
    ignored = [number for number in _FORWARDED if _signal.getsignal(number) == _signal.SIG_IGN]
    descriptors = _inherited()
    request = marshal.dumps((module, arguments, os.getcwdb(), dict(os.environb), descriptors, ignored))
    connection, process = _request(address, descriptors, request)
    if process == _ELSEWHERE:
        connection, process = _request(f"{address}+jax", descriptors, request)
    if process == _FRESH:
        os.execv(sys.executable, [sys.executable, "-m", module, *arguments])
    for number in _FORWARDED:
        if number not in ignored:
            _signal.signal(number, lambda received, _: os.kill(process, received))
    status = _receive(connection)
    if os.WIFEXITED(status):
        os._exit(os.WEXITSTATUS(status))
    _end_by(os.WTERMSIG(status))


def _request(address: str, descriptors: list[int], request: bytes) -> tuple[_socket.socket, int]:
    """Returns the connection to a server, and the process that it has forked."""
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    connection.connect(f"\0{address}")
    rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array.array("i", descriptors))]
    connection.sendmsg([len(request).to_bytes(_NUMBER, "little")], rights)
    connection.sendall(request)
    return connection, _receive(connection)


def _inherited() -> list[int]:
    """Returns the file descriptors that a process started from here would inherit."""
    numbers = []
    for name in os.listdir("/proc/self/fd"):
        try:
            if os.get_inheritable(int(name)):
                numbers.append(int(name))
        except OSError:
            # This is the descriptor of the folder, which is closed by now.
            continue
    return numbers


def _receive(connection: _socket.socket) -> int:
    received = b""
    while len(received) < _NUMBER:
        part = connection.recv(_NUMBER - len(received))
        if not part:
            os.write(2, b"error: the fork server has ended\n")
            os._exit(1)
        received += part
    return int.from_bytes(received, "little")


def _end_by(number: int) -> None:
    import resource

    # The fork has left a core file if one is wanted.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if number != _signal.SIGKILL:
        _signal.signal(number, _signal.SIG_DFL)
    os.kill(os.getpid(), number)


main()
