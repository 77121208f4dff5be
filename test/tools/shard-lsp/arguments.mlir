// RUN: shard-lsp --help | FileCheck %s --check-prefix=HELP
// RUN: shard-lsp --version | FileCheck %s --check-prefix=VERSION
// RUN: not shard-lsp --studio 2>&1 | FileCheck %s --check-prefix=FLAG
// RUN: not shard-lsp %s 2>&1 | FileCheck %s --check-prefix=FILE
// The client disconnects before it sends a message.
// RUN: shard-lsp --stdio < /dev/null

// HELP: Language Server Protocol
// HELP: --load FILE
// VERSION: mlir-shard {{[0-9]}}
// FLAG: shard-lsp: error: unknown option '--studio'; did you mean '--stdio'?
// FILE: shard-lsp: error: unrecognized arguments: {{.*}}arguments.mlir
