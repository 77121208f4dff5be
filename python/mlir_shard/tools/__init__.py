# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The commands, each in a file of its name such as `shard_opt`, and the modules that they share.

`session` contains the steps of shard-opt and `run/` those of shard-run; `reshard/` shows plans, and `language_server/`
is the server for editors. `command_line`, `argument_parser`, `help_text`, `completion` and `source` read command lines
and programs; `output`, `standard_streams` and `crashes` are for output, and `interrupts` handles SIGINT.
"""

from mlir_shard.tools import interrupts

interrupts.terminate_during_imports()
