# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Several threads compile programs at the same time, each in its own context."""

from __future__ import annotations

import subprocess
import sys

COMPILE = """
import sys, threading
import mlir_shard

# Threads take turns as often as they can.
sys.setswitchinterval(1e-6)
calls = "\\n".join(
    f"%s{i} = stablehlo.dot_general %{'b' if i == 0 else f't{i - 1}'}, %w, contracting_dims = [1] x [0] "
    f": (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>\\n"
    f"%t{i} = stablehlo.{'tanh' if i % 2 else 'exponential'} %s{i} : tensor<8x8xf32>"
    for i in range(60)
)
text = f'''
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(
    %a: tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}},
    %w: tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"y"}}]>}}) -> tensor<8x8xf32> {{
  %c = stablehlo.constant dense<1.0> : tensor<8x8xf32>
  %b = stablehlo.add %a, %c : tensor<8x8xf32>
  {calls}
  return %t59 : tensor<8x8xf32>
}}
'''
pipelines = [
    f"builtin.module(shard-propagate,shard-spmdize{{collectives={target} planner=optimal}})"
    for target in ("shard", "stablehlo")
]

def compile_all(found):
    context = mlir_shard.create_context()
    for pipeline in pipelines * 2:
        module = mlir_shard.parse(text, context)
        mlir_shard.run(module, pipeline)
        found.append(mlir_shard.print_module(module))

in_threads = [[] for _ in range(4)]
threads = [threading.Thread(target=compile_all, args=(found,)) for found in in_threads]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
alone = []
compile_all(alone)
assert all(found == alone for found in in_threads), [len(found) for found in in_threads]
"""


def test_threads_compile_what_one_does() -> None:
    # A separate process isolates a crash, and has not used the package before the threads do.
    done = subprocess.run([sys.executable, "-c", COMPILE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
