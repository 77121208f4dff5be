sdy.mesh @mesh = <["x"=2, "y"=2, "z"=2]>

// A tensor that comes mostly by rows, and that the rest of the program wants mostly by columns.
func.func @main(%a: tensor<1024x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {"z"}]>})
    -> tensor<1024x1024xf32> {
  %by_columns = sdy.sharding_constraint %a <@mesh, [{"z"}, {"y", "x"}]> : tensor<1024x1024xf32>
  %b = stablehlo.exponential %by_columns : tensor<1024x1024xf32>
  return %b : tensor<1024x1024xf32>
}
