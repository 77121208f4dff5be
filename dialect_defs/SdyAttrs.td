// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SDY_ATTRS_TD
#define SDY_ATTRS_TD

include "mlir/IR/AttrTypeBase.td"
include "SdyDialect.td"
include "SdyEnums.td"

class Sdy_Attr<string name, string attrMnemonic> : AttrDef<Sdy_Dialect, name> {
  let mnemonic = attrMnemonic;
}

class Sdy_ListAttr<string name, string attrMnemonic, string element>
    : ArrayOfAttr<Sdy_Dialect, name, attrMnemonic, element> {
  let parameters = (ins OptionalArrayRefParameter<element, "the elements, in order">:$value);
}

//===----------------------------------------------------------------------===//
// Meshes
//===----------------------------------------------------------------------===//

def Sdy_MeshAxis : Sdy_Attr<"MeshAxis", "mesh_axis"> {
  let summary = "One named axis of a mesh";
  let description = [{
    Written `"x"=4`: the axis `x`, four devices long.
  }];
  let parameters = (ins
    StringRefParameter<"the name, unique in its mesh">:$name,
    AttrOrTypeParameter<"int64_t", "how many devices long the axis is, at least 1">:$size
  );
  let assemblyFormat = "`` $name `` `=` `` $size";
  let genVerifyDecl = 1;
}

def Sdy_Mesh : Sdy_Attr<"Mesh", "mesh"> {
  let summary = "The named, shaped set of devices that shardings refer to";
  let description = [{
    The axes, major to minor, span a grid, and each point of the grid is a device. Without `device_ids` the devices
    are numbered 0, 1, 2, ... in row-major order of the axes; `device_ids` gives another numbering.

    Two kinds of mesh have no axes. The empty mesh stands for any mesh. A mesh with one device id is *maximal*:
    what is sharded on it lives on that device alone.

    ```mlir
    <["x"=2, "y"=3]>                                   // six devices, numbered in order
    <["x"=2, "y"=2], device_ids=[0, 2, 1, 3]>          // four devices, numbered column by column
    <[], device_ids=[5]>                               // device 5 alone
    <[]>                                               // any mesh
    ```

    **Constraints:**
    - No two axes have the same name.
    - No device id is negative.
    - With axes, `device_ids` is absent or a permutation of 0, ..., n - 1 other than the identity, n being the
      product of the axis sizes.
    - Without axes, there is at most one device id.
  }];
  let parameters = (ins
    OptionalArrayRefParameter<"MeshAxisAttr", "the axes, major to minor">:$axes,
    OptionalArrayRefParameter<"int64_t",
        "the device at each point of the grid in row-major order, or the one device of a maximal mesh">:$device_ids
  );
  let assemblyFormat = [{
    `<` `[` (`]`) : ($axes^ `]`)? (`,` `device_ids` `` `=` `` `[` $device_ids^ `]`)? `>`
  }];
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Axes
//===----------------------------------------------------------------------===//

def Sdy_SubAxisInfo : Sdy_Attr<"SubAxisInfo", "sub_axis_info"> {
  let summary = "Which factor of an axis a sub-axis is";
  let description = [{
    An axis of size n can be seen as several axes, major to minor, whose sizes have the product n. One of those is
    written `(m)k`: its size is `k`, and `m` is the product of the sizes before it. An axis of size 8 seen as 2x4
    consists of `(1)2` and `(2)4`.

    **Constraints:**
    - The pre-size is at least 1 and the size at least 2.
    - The product of pre-size and size divides the size of the axis.
    - The size is smaller than that of the axis; the whole axis is referred to by its name.
  }];
  let parameters = (ins
    AttrOrTypeParameter<"int64_t", "the product of the sizes of the sub-axes major to this one">:$pre_size,
    AttrOrTypeParameter<"int64_t", "how many devices long the sub-axis is">:$size
  );
  let assemblyFormat = "`(` $pre_size `)` `` $size";
}

def Sdy_AxisRef : Sdy_Attr<"AxisRef", "axis_ref"> {
  let summary = "A reference to an axis or a sub-axis of a mesh";
  let description = [{
    Written `"x"` for the whole axis and `"x":(2)4` for a sub-axis of it.

    **Constraints:**
    - The mesh has an axis of that name.
    - A sub-axis is one of that axis.
  }];
  let parameters = (ins
    StringRefParameter<"the name of the axis">:$name,
    OptionalParameter<"SubAxisInfoAttr", "which sub-axis is meant, if not the whole axis">:$sub_axis_info
  );
  let assemblyFormat = "`` $name (`` `:` `` $sub_axis_info^)?";
}

def Sdy_AxisRefList : Sdy_ListAttr<"AxisRefList", "axis_ref_list", "AxisRefAttr"> {
  let summary = "Axes, major to minor";
  let description = [{
    **Constraints:**
    - No axis overlaps another.
    - No axis continues the one before it: `"x":(1)2, "x":(2)4` has to be written as the one sub-axis it is.
  }];
  let assemblyFormat = "`{` (`}`) : ($value^ `` `}`)?";
}

def Sdy_ListOfAxisRefLists : Sdy_ListAttr<"ListOfAxisRefLists", "list_of_axis_ref_lists", "AxisRefListAttr"> {
  let summary = "A list of axes for each dimension of a tensor";
}

// Whole axes only, hence names rather than references.
def Sdy_ManualAxes : Sdy_ListAttr<"ManualAxes", "manual_axes", "StringAttr"> {
  let summary = "The axes that a manual computation is written for the devices of";
  let assemblyFormat = "`{` (`}`) : ($value^ `` `}`)?";
}

class Sdy_AxesParameter<string description> : OptionalArrayRefParameter<"AxisRefAttr", description>;

//===----------------------------------------------------------------------===//
// Shardings
//===----------------------------------------------------------------------===//

def Sdy_DimensionSharding : Sdy_Attr<"DimensionSharding", "dimension_sharding"> {
  let summary = "How one dimension of a tensor is sharded";
  let description = [{
    The axes that cut the dimension, major to minor. An open dimension, marked by `?`, may be given further axes
    by propagation; a closed one may not. A priority `p<n>` says in which round of propagation the sharding takes
    part: 0, the default, is the first.

    ```mlir
    {"x", "y"}      // cut along x, then along y, and nothing else
    {"x", ?}p1      // cut along x, maybe further, from the second round on
    {}              // not cut
    {?}             // undecided
    ```

    **Constraints:**
    - The axes are as in an `axis_ref_list`.
    - The priority is not negative.
    - A closed dimension without axes has no priority.
  }];
  let parameters = (ins
    Sdy_AxesParameter<"the axes that cut the dimension, major to minor">:$axes,
    AttrOrTypeParameter<"bool", "whether propagation may not add axes">:$is_closed,
    OptionalParameter<"std::optional<int64_t>", "the round of propagation the sharding waits for">:$priority
  );
  let assemblyFormat = "`{` custom<AxesAndOpenness>($axes, $is_closed) `` `}` `` custom<Priority>($priority)";
}

def Sdy_MeshOrRef : AnyAttrOf<[Sdy_Mesh, FlatSymbolRefAttr], "mesh or name of a mesh"> {
  string cppType = "::mlir::Attribute";
}

def Sdy_TensorSharding : Sdy_Attr<"TensorSharding", "sharding"> {
  let summary = "How a tensor is sharded over a mesh";
  let description = [{
    One dimension sharding for each dimension of the tensor, on a mesh that is given by the symbol of an `sdy.mesh`
    or in place. A device holds the block of the tensor that its coordinates along the axes select. Along an axis
    that cuts no dimension the devices hold the same: the tensor is replicated there. `replicated` lists axes that
    must stay so; axes not mentioned may still be used by propagation in open dimensions.

    Along axes listed as `unreduced` the devices hold partial values, and the tensor is their combination, a sum
    unless `max` or `min` is said. A contraction over a sharded dimension leaves such a result; an all-reduce over
    the axes makes it whole.

    A tensor without a sharding is as one whose dimensions are all `{?}`.

    ```mlir
    #sdy.sharding<@mesh, [{"x"}, {?}\]>
    #sdy.sharding<@mesh, [{"x", "y":(1)2}, {}\], replicated={"z"}>
    #sdy.sharding<mesh<["x"=4]>, [{}\], unreduced=max{"x"}>
    ```

    **Constraints:**
    - There are as many dimension shardings as the tensor has dimensions; a value that is no ranked tensor has none.
    - No axis overlaps another anywhere in the sharding.
    - Replicated axes and unreduced axes stand in the order of the mesh.
    - A dimension of size 0 is not cut.
    - On a maximal mesh there are no axes.
  }];
  let parameters = (ins
    Sdy_MeshOrRef:$mesh_or_ref,
    OptionalArrayRefParameter<"DimensionShardingAttr", "the sharding of each dimension">:$dim_shardings,
    Sdy_AxesParameter<"axes along which the tensor must stay replicated">:$replicated_axes,
    Sdy_AxesParameter<"axes along which the devices hold partial values">:$unreduced_axes,
    EnumParameter<Sdy_ReductionOp>:$reduction_op
  );
  let assemblyFormat = [{
    `<` custom<MeshOrRef>($mesh_or_ref) `,` `[` (`]`) : ($dim_shardings^ `]`)? ``
    custom<ReplicatedAndUnreducedAxes>($replicated_axes, $unreduced_axes, $reduction_op) `>`
  }];
}

def Sdy_TensorShardingPerValue : Sdy_Attr<"TensorShardingPerValue", "sharding_per_value"> {
  let summary = "A sharding for each operand or result of an op";
  let description = [{
    The discardable attribute `sdy.sharding` of an op with results holds one of these.
  }];
  let parameters = (ins
    OptionalArrayRefParameter<"TensorShardingAttr", "the shardings, in the order of the values">:$shardings
  );
  let assemblyFormat = "`<` `[` (`]`) : ($shardings^ `]`)? `>`";
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

def Sdy_DimMapping : Sdy_Attr<"DimMapping", "dim_mapping"> {
  let summary = "The factors that one dimension is the product of";
  let description = [{
    Factors are written as letters, `i` for 0 to `z` for 17, then `z_1`, `z_2`, ..., and run together: `ij` is a
    dimension made of the factors 0 and 1, of which 0 is the major one.

    **Constraints:**
    - There is a factor.
    - The factors are those of the rule, and no factor occurs twice.
    - Of several factors none has size 1.
  }];
  let parameters = (ins
    OptionalArrayRefParameter<"int64_t", "the factors, major to minor">:$factor_indices
  );
  let assemblyFormat = "`` custom<FactorIndices>($factor_indices)";
}

def Sdy_TensorMapping : Sdy_Attr<"TensorMapping", "tensor_mapping"> {
  let summary = "The factors of each dimension of a tensor";
  let description = [{
    **Constraints:**
    - No factor belongs to two dimensions.
  }];
  let parameters = (ins
    OptionalArrayRefParameter<"DimMappingAttr", "the factors of each dimension">:$dim_mappings
  );
  let assemblyFormat = "`` `[` (`]`) : ($dim_mappings^ `]`)? ``";
}

def Sdy_OpShardingRule : Sdy_Attr<"OpShardingRule", "op_sharding_rule"> {
  let summary = "Which dimensions of an op's tensors belong together, and what sharding them takes";
  let description = [{
    A rule sees an op as a loop nest. Each loop is a factor, each dimension of each operand and result is run over
    by one factor or by the product of several, and dimensions with a factor in common are sharded alike.

    ```mlir
    // Matrix product: j is contracted.
    #sdy.op_sharding_rule<([i, j], [j, k])->([i, k]) {i=8, j=16, k=4} reduction={j}>
    // Reshape of 2x4 to 8: the result's dimension is the product of the two.
    #sdy.op_sharding_rule<([i, j])->([ij]) {i=2, j=4}>
    ```

    Sharding a factor in the same way in every tensor that has it costs no communication, unless the factor is
    - a reduction factor: the results are partial and have to be combined;
    - a need-replication factor: the tensors have to be whole along it;
    - a permutation factor: devices have to pass blocks, or parts of blocks, to their neighbours.

    Separately from that, shardings do not propagate along a blocked-propagation factor. Factors of size 1 are
    allowed, though they cannot be sharded. A custom rule is the user's, and no pass replaces or drops it.

    **Constraints:**
    - There are as many mappings as operands and as results, at least one in all, and each has the rank of its
      tensor.
    - No factor is listed twice as reduction, need-replication or permutation factor.
  }];
  let parameters = (ins
    OptionalArrayRefParameter<"int64_t", "the size of each factor">:$factor_sizes,
    OptionalArrayRefParameter<"TensorMappingAttr", "the factors of each operand">:$operand_mappings,
    OptionalArrayRefParameter<"TensorMappingAttr", "the factors of each result">:$result_mappings,
    OptionalArrayRefParameter<"int64_t", "factors along which results are combined">:$reduction_factors,
    OptionalArrayRefParameter<"int64_t", "factors along which tensors have to be whole">:$need_replication_factors,
    OptionalArrayRefParameter<"int64_t",
        "factors along which devices exchange blocks">:$permutation_factors,
    OptionalArrayRefParameter<"int64_t",
        "factors along which shardings do not propagate">:$blocked_propagation_factors,
    DefaultValuedParameter<"bool", "false", "whether the rule was given by the user">:$is_custom_rule
  );
  let assemblyFormat = [{
    `<` `(` $operand_mappings `)` `` `->` `` `(` $result_mappings `)` ``
    custom<FactorSizes>($factor_sizes) ``
    custom<FactorsWithType>($reduction_factors, "\"reduction\"") ``
    custom<FactorsWithType>($need_replication_factors, "\"need_replication\"") ``
    custom<FactorsWithType>($permutation_factors, "\"permutation\"") ``
    custom<FactorsWithType>($blocked_propagation_factors, "\"blocked_propagation\"") ``
    custom<IsCustomRule>($is_custom_rule) `>`
  }];
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

def Sdy_AllToAllParamAttr : Sdy_Attr<"AllToAllParam", "all_to_all_param"> {
  let summary = "Axes that move from one dimension to another";
  let description = [{
    Written `{"x", "y"}: 0->2`: the axes leave the end of dimension 0 and are appended to dimension 2.
  }];
  let parameters = (ins
    ArrayRefParameter<"AxisRefAttr", "the axes that move, major to minor">:$axes,
    AttrOrTypeParameter<"int64_t", "the dimension the axes cut before">:$src_dim,
    AttrOrTypeParameter<"int64_t", "the dimension the axes cut afterwards">:$tgt_dim
  );
  let assemblyFormat = "`` `{` $axes `}` `` `:` $src_dim `` `->` `` $tgt_dim";
}

def Sdy_AllToAllParamList : Sdy_ListAttr<"AllToAllParamList", "all_to_all_param_list", "AllToAllParamAttr"> {
  let summary = "Moves of axes that are carried out at once";
}

//===----------------------------------------------------------------------===//
// Records of propagation
//===----------------------------------------------------------------------===//

def Sdy_EdgeValueRef : Sdy_Attr<"EdgeValueRef", "edge_value_ref"> {
  let summary = "An operand or a result of an op";
  let description = [{
    Written `operand-0` or `result-1`.
  }];
  let parameters = (ins
    EnumParameter<Sdy_EdgeNodeType>:$type,
    AttrOrTypeParameter<"int64_t", "which operand or result, counted from 0">:$index
  );
  let assemblyFormat = "`` $type `` custom<Minus>(\"\\\"\\\"\") `` $index";
}

def Sdy_AxisToPropagationDetails : Sdy_Attr<"AxisToPropagationDetails", "axis_to_propagation_details"> {
  let summary = "From which value of an op an axis went to which others";
  let parameters = (ins
    AttrParameter<"AxisRefAttr", "the axis">:$axis_name,
    AttrParameter<"EdgeValueRefAttr", "the value that had the axis">:$source,
    ArrayRefParameter<"EdgeValueRefAttr", "the values that got it">:$targets
  );
  let assemblyFormat = "`{` $axis_name `=` $source `->` `[` `` $targets `]` `}`";
}

def Sdy_PropagationOneStep : Sdy_Attr<"PropagationOneStep", "propagation_one_step"> {
  let summary = "The axes that moved in one step of propagation";
  let parameters = (ins
    AttrOrTypeParameter<"int64_t", "the number of the step">:$step_index,
    ArrayRefParameter<"AxisToPropagationDetailsAttr", "the axes that moved, and whereto">:$axis_entries
  );
  let assemblyFormat = [{
    `{` `step` `` custom<Minus>("\"\"") `` $step_index `=` `[` $axis_entries `]` `}`
  }];
}

def Sdy_PropagationEdges : Sdy_ListAttr<"PropagationEdges", "propagation_edges", "PropagationOneStepAttr"> {
  let summary = "How the shardings of an op's values came about, step by step";
  let assemblyFormat = "`<` `[` $value `]` `>`";
  let genVerifyDecl = 1;
}

#endif // SDY_ATTRS_TD
