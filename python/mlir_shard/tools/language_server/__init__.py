# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The language server for editors, shard-lsp: diagnostics, hovers, definitions and outlines of .mlir files.

MLIR ends the process on some invalid programs, so each open text is read in a separate process. The modules, in reading
order:

    words       the words of a text that are names: of values, symbols, aliases, blocks and ops
    outline     the values, symbols and scopes of a parsed text
    document    one text: its diagnostics, and the answers to requests about places in it
    analysis    the process that holds a document, and the requests to it
    processes   the management of these processes in the server
    server      the Language Server Protocol

`words` to `analysis` count lines from 0 and columns in bytes from 0; only `server` uses the positions of the protocol.
"""
