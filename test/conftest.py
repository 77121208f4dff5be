# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Settings of hypothesis: the same examples in each run, without a deadline.

`--hypothesis-profile=fresh` generates new examples in each run; a failure prints how to reproduce it.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "repeatable", derandomize=True, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("fresh", settings.get_profile("repeatable"), derandomize=False)
settings.load_profile("repeatable")
