# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Starting ranks, and the program of a rank.

`mpi` finds an MPI installation and starts ranks with `processes`, which run `rank`, share a `run_folder`, and remove
the `shared_memory` of killed ranks; `launched` is for ranks that a site's launcher has started. `jit` compiles and
calls a program, with the functions in `libraries`, and `mpi_library` has MPI's binary interfaces.
"""
