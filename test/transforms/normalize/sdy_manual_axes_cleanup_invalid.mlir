// RUN: shard-opt %s --sdy-manual-axes-cleanup --verify-diagnostics

func.func @no_mesh() {
  // expected-error @+1 {{the computation is manual on "p", "q" but has no operand or result whose sharding names a mesh: add one, or remove the manual axes}}
  sdy.manual_computation() in_shardings=[] out_shardings=[] manual_axes={"p", "q"} () {
    %0 = tensor.empty() : tensor<8xf32>
    sdy.return
  } : () -> ()
  return
}
