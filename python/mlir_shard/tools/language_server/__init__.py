# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The language server for editors, shard-lsp: diagnostics, hovers, definitions and outlines of .mlir files.

MLIR ends the process on some wrong programs, so texts are read in processes of their own, one for each text that is
open. To read, in order:

    words       the words of a text that stand for something: names of values, symbols, aliases, blocks and ops
    outline     the values, symbols and scopes of a parsed text
    document    one text: its diagnostics, and what is asked about places in it
    analysis    the process that holds a document, and the requests to it
    processes   these processes as the server sees them
    server      the Language Server Protocol

`words` to `analysis` count lines from 0 and columns in bytes from 0; only `server` knows those of the protocol.
"""
