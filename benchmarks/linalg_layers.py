# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A long module of linalg ops, named and generic: layers of a perceptron with normalization."""

from __future__ import annotations

_HEAD = """\
sdy.mesh @mesh = <["data"=2, "model"=4]>
func.func @main(%x: tensor<64x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>},
                %up: tensor<256x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>},
                %down: tensor<1024x256xf32>, %bias: tensor<1024xf32>) -> tensor<64x256xf32> {
"""

_LAYER = """\
  %e0_L = tensor.empty() : tensor<64x1024xf32>
  %zero_L = arith.constant 0.0 : f32
  %f0_L = linalg.fill ins(%zero_L : f32) outs(%e0_L : tensor<64x1024xf32>) -> tensor<64x1024xf32>
  %m0_L = linalg.matmul ins(IN, %up : tensor<64x256xf32>, tensor<256x1024xf32>)
                        outs(%f0_L : tensor<64x1024xf32>) -> tensor<64x1024xf32>
  %b_L = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
                                          affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%m0_L, %bias : tensor<64x1024xf32>, tensor<1024xf32>) outs(%e0_L : tensor<64x1024xf32>) {
    ^bb0(%a: f32, %c: f32, %o: f32):
      %s = arith.addf %a, %c : f32
      linalg.yield %s : f32
    } -> tensor<64x1024xf32>
  %t_L = linalg.tanh ins(%b_L : tensor<64x1024xf32>) outs(%e0_L : tensor<64x1024xf32>) -> tensor<64x1024xf32>
  %e1_L = tensor.empty() : tensor<64x256xf32>
  %f1_L = linalg.fill ins(%zero_L : f32) outs(%e1_L : tensor<64x256xf32>) -> tensor<64x256xf32>
  %m1_L = linalg.matmul ins(%t_L, %down : tensor<64x1024xf32>, tensor<1024x256xf32>)
                        outs(%f1_L : tensor<64x256xf32>) -> tensor<64x256xf32>
  %r_L = linalg.add ins(%m1_L, IN : tensor<64x256xf32>, tensor<64x256xf32>)
                    outs(%e1_L : tensor<64x256xf32>) -> tensor<64x256xf32>
"""

OPS_PER_LAYER = 12


def linalg_layers(ops: int) -> str:
    """Returns the text of a module of about `ops` operations, including those in the regions of generic ops."""
    layers = ops // OPS_PER_LAYER
    text = [_HEAD]
    for layer in range(layers):
        value = f"%r_{layer - 1}" if layer else "%x"
        text.append(_LAYER.replace("IN", value).replace("_L", f"_{layer}"))
    return "".join(text) + f"  return %r_{layers - 1} : tensor<64x256xf32>\n}}\n"
