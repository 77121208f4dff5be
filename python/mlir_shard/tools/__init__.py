# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The commands, each in the file of its name, `shard_opt` and so on, and what they share.

`session` is what shard-opt does with a module, `run/` what shard-run does; `reshard/` shows plans, and editors talk to
`language_server/`. `command_line`, `argument_parser`, `help_text`, `completion` and `source` read command lines and
programs; `output`, `standard_streams` and `crashes` are for what is printed, and `interrupts` handles SIGINT.
"""

from mlir_shard.tools import interrupts

interrupts.terminate_during_imports()
