# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes: `registry` declares and finds them, `resolution` reads pipelines, `runner` runs them, `diagnostic` reports.

Passes of the host are in `host_passes` and listed by `host_listing`; `analyses` has analyses that passes share;
`plugins` loads passes of users.
"""
