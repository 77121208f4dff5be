// RUN: shard-opt %s --sdy-basic-propagate --verify-diagnostics

// Each member keeps its own sharding, and a warning names these shardings.

sdy.mesh @mesh = <["a"=2, "b"=2]>

// expected-warning @+3 {{the members of a sharding group have different shardings, so each keeps its own}}
// expected-note @+2 {{this one has <@mesh, [{"a"}, {}]>}}
func.func @main(
    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
    // expected-note @+1 {{this one has <@mesh, [{"b"}, {?}]>}}
    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {?}]>}) -> tensor<8x8xf32> {
  sdy.sharding_group %arg0 group_id = 0 : tensor<8x8xf32>
  sdy.sharding_group %arg1 group_id = 0 : tensor<8x8xf32>
  return %arg0 : tensor<8x8xf32>
}
