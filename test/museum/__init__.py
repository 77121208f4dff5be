# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small programs for public reports of wrongly partitioned programs. Read the modules in this order:

exhibit     a report and its program
exhibits/   all of them, one file per family of operations
visit       partitions and runs an exhibit on each target and engine, and with jaxlib's own partitioner
__main__    the table
"""
