// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SDY_OPS_TD
#define SDY_OPS_TD

include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "SdyAttrs.td"
include "SdyInterfaces.td"

class Sdy_Op<string mnemonic, list<Trait> traits = []> : Op<Sdy_Dialect, mnemonic, traits>;

// An op that names a mesh in one of its attributes.
defvar Sdy_MeshUser = DeclareOpInterfaceMethods<SymbolUserOpInterface>;

//===----------------------------------------------------------------------===//
// Annotations
//===----------------------------------------------------------------------===//

def Sdy_MeshOp : Sdy_Op<"mesh", [Symbol, HasParent<"ModuleOp">]> {
  let summary = "Gives a mesh a name";
  let description = [{
    Shardings anywhere in the module refer to the mesh by this symbol. The meshes of a module all have the same
    number of devices, maximal meshes apart.

    ```mlir
    sdy.mesh @mesh = <["x"=2, "y"=4]>
    ```
  }];
  let arguments = (ins
    Arg<SymbolNameAttr, "the name">:$sym_name,
    Arg<Sdy_Mesh, "the mesh">:$mesh
  );
  let assemblyFormat = "$sym_name `=` $mesh attr-dict";
  let hasVerifier = 1;
}

def Sdy_ShardingConstraintOp : Sdy_Op<"sharding_constraint",
    [SameOperandsAndResultType, InferTypeOpInterface, Sdy_MeshUser]> {
  let summary = "Asks for a sharding of a tensor";
  let description = [{
    The user's wish for a tensor in the middle of a program. If the result is used, those uses see the tensor
    sharded as said, while other uses of the operand may see another sharding. If it is not, or the operand has no
    other uses, the operand itself is to be sharded so. Propagation may add axes in open dimensions, and replaces
    the op by `sdy.reshard` where the sharding changes.

    ```mlir
    %1 = sdy.sharding_constraint %0 <@mesh, [{"x"}, {?}\]> : tensor<8x16xf32>
    ```
  }];
  let arguments = (ins
    Arg<AnyType, "the tensor">:$input,
    Arg<Sdy_TensorSharding, "the sharding wished for">:$sharding
  );
  let results = (outs Res<AnyType, "the tensor, sharded as said">:$result);
  let assemblyFormat = "$input $sharding attr-dict `:` type($result)";
}

def Sdy_ReshardOp : Sdy_Op<"reshard",
    [Pure, SameOperandsAndResultType, InferTypeOpInterface, Sdy_MeshUser]> {
  let summary = "Changes the sharding of a tensor";
  let description = [{
    Where values meet that are sharded differently, propagation leaves one of these; it says what sharding comes
    next, not how to get there. Resharding replaces it by collectives.

    ```mlir
    %1 = sdy.reshard %0 <@mesh, [{}, {"x"}\]> : tensor<8x16xf32>
    ```
  }];
  let arguments = (ins
    Arg<AnyType, "the tensor">:$input,
    Arg<Sdy_TensorSharding, "the new sharding">:$sharding
  );
  let results = (outs Res<AnyType, "the same tensor, sharded anew">:$result);
  let assemblyFormat = "$input $sharding attr-dict `:` type($result)";
  let hasCanonicalizer = 1;
}

def Sdy_ShardingGroupOp : Sdy_Op<"sharding_group", [DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "Puts a tensor into a group that is sharded alike";
  let description = [{
    All tensors in groups of the same number end up with the same sharding: what propagation finds for one holds for
    all. The op has no result and is not pure, since its only effect is membership.

    ```mlir
    sdy.sharding_group %0 group_id=3 : tensor<8x16xf32>
    ```
  }];
  let arguments = (ins
    Arg<AnyRankedTensor, "the tensor that joins">:$input,
    Arg<I64Attr, "the number of the group">:$group_id
  );
  let assemblyFormat = "$input `group_id` `` `=` `` $group_id attr-dict `:` type($input)";
}

def Sdy_PropagationBarrierOp : Sdy_Op<"propagation_barrier",
    [Pure, SameOperandsAndResultType, DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "Lets shardings pass in one direction only";
  let description = [{
    The result is the operand. Shardings propagate `FORWARD` from operand to result only, `BACKWARD` from result to
    operand only, or with `NONE` not at all. `BOTH` is not allowed, as it would be no barrier.

    ```mlir
    %1 = sdy.propagation_barrier %0 allowed_direction=FORWARD : tensor<8x16xf32>
    ```
  }];
  let arguments = (ins
    Arg<AnyRankedTensor, "the tensor">:$input,
    Arg<Sdy_PropagationDirection, "the way that is open">:$allowed_direction
  );
  let results = (outs Res<AnyRankedTensor, "the same tensor">:$result);
  let assemblyFormat = "$input `allowed_direction` `` `=` `` $allowed_direction attr-dict `:` type($input)";
  let hasVerifier = 1;
}

def Sdy_ConstantOp : Sdy_Op<"constant", [Pure, AllTypesMatch<["value", "output"]>]> {
  let summary = "A constant that stays where it is";
  let description = [{
    Unlike other constants it does not fold and is not merged with its equals, so each use can have a constant of
    its own, sharded to suit that use.

    ```mlir
    %0 = sdy.constant dense<[1.0, 2.0]> : tensor<2xf32>
    ```
  }];
  let arguments = (ins Arg<ElementsAttr, "the elements">:$value);
  let results = (outs Res<AnyStaticShapeTensor, "a tensor of the type of the elements">:$output);
  let assemblyFormat = "attr-dict $value";
}

//===----------------------------------------------------------------------===//
// Regions and data flow
//===----------------------------------------------------------------------===//

def Sdy_ReturnOp : Sdy_Op<"return", [Pure, ReturnLike, Terminator]> {
  let summary = "Ends a region and gives its values";
  let description = [{
    The terminator of the regions of this dialect's ops.
  }];
  let arguments = (ins Arg<Variadic<AnyType>, "what the region gives">:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}

def Sdy_ManualComputationOp : Sdy_Op<"manual_computation",
    [RecursiveMemoryEffects, SingleBlockImplicitTerminator<"ReturnOp">, IsolatedFromAbove, Sdy_MeshUser,
     DeclareOpInterfaceMethods<Sdy_ShardableDataFlowOpInterface,
       ["getOpResultEdgeOwnerShardings", "setOpResultEdgeOwnerShardings", "transformTargetSharding",
        "getBlockArgumentEdgeOwners", "setBlockArgumentEdgeOwnerShardings", "getBlockArgumentEdgeOwnerShardings",
        "shouldKeepEdgeOwnerShardingsDivisible"]>]> {
  let summary = "A computation written for each device by hand";
  let description = [{
    Outside, tensors are global. In the body they are what one device holds along the manual axes, and it is up to
    the body to communicate along those. Along the other axes the body is still global, and shardings propagate
    into and out of it.

    ```mlir
    %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}, {?}\]>] out_shardings=[<@mesh, [{"x"}, {?}\]>]
        manual_axes={"x"} (%arg0: tensor<4x16xf32>) {
      sdy.return %arg0 : tensor<4x16xf32>
    } : (tensor<8x16xf32>) -> tensor<8x16xf32>
    ```

    **Constraints:**
    - There is a sharding for each operand and each result, and it suits the type.
    - The body has an argument for each operand and returns a value for each result, each of the global type cut
      along the manual axes.
    - The manual axes cut every dimension evenly.
    - In each dimension the manual axes are major to the others.
  }];
  let arguments = (ins
    Arg<Variadic<AnyType>, "the global operands">:$tensors,
    Arg<Sdy_TensorShardingPerValue, "how each operand is cut for the body">:$in_shardings,
    Arg<Sdy_TensorShardingPerValue, "how each result is put together from what the body returns">:$out_shardings,
    Arg<Sdy_ManualAxes, "the axes the body is written along">:$manual_axes
  );
  let results = (outs Res<Variadic<AnyType>, "the global results">:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `(` operands `)`
    `in_shardings` `` `=` `` custom<StrippedTensorShardingPerValueAttr>($in_shardings)
    `out_shardings` `` `=` `` custom<StrippedTensorShardingPerValueAttr>($out_shardings)
    `manual_axes` `` `=` `` $manual_axes
    custom<SingleBlockRegionNoBlockId>($body)
    attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

def Sdy_NamedComputationOp : Sdy_Op<"named_computation",
    [RecursiveMemoryEffects, RecursivelySpeculatable, SingleBlockImplicitTerminator<"ReturnOp">, IsolatedFromAbove,
     DeclareOpInterfaceMethods<InferTypeOpInterface>, Sdy_MeshUser,
     DeclareOpInterfaceMethods<Sdy_ShardableDataFlowOpInterface,
       ["getOpResultEdgeOwnerShardings", "setOpResultEdgeOwnerShardings", "getBlockArgumentEdgeOwners",
        "setBlockArgumentEdgeOwnerShardings", "getBlockArgumentEdgeOwnerShardings"]>]> {
  let summary = "A computation with a name";
  let description = [{
    What a call becomes while shardings propagate: the body of the function in place, with the function's name kept.
    Shardings propagate into and out of the body as if it were inlined.

    ```mlir
    %1 = sdy.named_computation<"f">(%0) (%arg0: tensor<8x16xf32>) {
      sdy.return %arg0 : tensor<8x16xf32>
    } : (tensor<8x16xf32>) -> tensor<8x16xf32>
    ```

    **Constraints:**
    - The body's arguments have the types of the operands, and what it returns those of the results.
    - There are as many shardings as values, where there are any.
  }];
  let arguments = (ins
    Arg<StrAttr, "the name">:$name,
    Arg<Variadic<AnyType>, "the operands">:$inputs,
    Arg<OptionalAttr<Sdy_TensorShardingPerValue>, "the shardings of the body's arguments">:$in_shardings,
    Arg<OptionalAttr<Sdy_TensorShardingPerValue>, "the shardings of the results">:$out_shardings
  );
  let results = (outs Res<Variadic<AnyType>, "the results">:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `<` $name `>` `` `(` $inputs `)`
    (`in_shardings` `` `=` `` custom<StrippedTensorShardingPerValueAttr>($in_shardings)^)?
    (`out_shardings` `` `=` `` custom<StrippedTensorShardingPerValueAttr>($out_shardings)^)?
    custom<SingleBlockRegionNoBlockId>($body)
    attr-dict `:` functional-type($inputs, results)
  }];
}

def Sdy_DataFlowEdgeOp : Sdy_Op<"data_flow_edge", [SameOperandsAndResultType, Sdy_MeshUser]> {
  let summary = "Makes a data-flow edge of an op visible";
  let description = [{
    Stands behind the owner of a data-flow edge (see `ShardableDataFlowOpInterface`) while shardings propagate, and
    holds the sharding of the whole edge. Propagation treats it as an op whose operands are the edge's sources and
    whose results are its targets, all with the same factors. Which values those are the op that owns the edge
    knows. The op is not pure: it may be the only use of its operand.

    ```mlir
    %1 = sdy.data_flow_edge %0 sharding=<@mesh, [{"x"}, {?}\]> : tensor<8x16xf32>
    ```

    **Constraints:**
    - The operand has no other use.
    - The operand is not defined by an op of this dialect.
  }];
  let arguments = (ins
    Arg<AnyShaped, "the owner of the edge">:$input,
    Arg<OptionalAttr<Sdy_TensorSharding>, "the sharding of the values the edge joins">:$sharding
  );
  let results = (outs Res<AnyShaped, "the owner, for its uses">:$result);
  let assemblyFormat = "$input (`sharding` `` `=` `` $sharding^)? attr-dict `:` type($result)";
}

def Sdy_FuncDataFlowEdgeOp : Sdy_Op<"func_data_flow_edge", [SameOperandsAndResultType, Sdy_MeshUser]> {
  let summary = "Makes the data-flow edge of a function argument or a call result visible";
  let description = [{
    Behind an argument of a function it joins the operands of all calls of the function with the uses of the
    argument; behind a result of a call it joins what the function returns with the uses of the result.

    ```mlir
    %0 = sdy.func_data_flow_edge %arg0 : tensor<8x16xf32>
    ```
  }];
  let arguments = (ins Arg<AnyShaped, "the argument of the function, or the result of the call">:$operand);
  let results = (outs Res<AnyShaped, "the same value, for its uses">:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

class Sdy_CollectiveOp<string mnemonic, list<string> allowances = []>
    : Sdy_Op<mnemonic, [SameOperandsAndResultType, InferTypeOpInterface, Sdy_MeshUser,
        DeclareOpInterfaceMethods<Sdy_CollectiveOpInterface, allowances>]> {
  let results = (outs Res<AnyShaped, "the same tensor in the new sharding">:$result);
}

def Sdy_Tensor : Arg<AnyShaped, "the tensor">;
def Sdy_OutSharding : Arg<Sdy_TensorSharding, "the new sharding">;
def Sdy_Reduction
    : Arg<DefaultValuedAttr<Sdy_ReductionOp, "::mlir::sdy::ReductionOp::SUM">, "how the partial values combine">;

def Sdy_AllGatherOp : Sdy_CollectiveOp<"all_gather"> {
  let summary = "Puts a tensor together along axes";
  let description = [{
    Each device gets the blocks of all devices along the axes, which then no longer cut the tensor. The axes of a
    dimension are taken off its minor end. The inverse of `sdy.all_slice`.

    ```mlir
    // From [{"x", "y"}, {"z"}\].
    %1 = sdy.all_gather [{"y"}, {"z"}\] %0 out_sharding=<@mesh, [{"x"}, {}\]> : tensor<8x16xf32>
    ```

    **Constraints:**
    - Each list of axes is the minor end of the axes that cut its dimension before.
  }];
  let arguments = (ins
    Sdy_Tensor:$tensor,
    Arg<Sdy_ListOfAxisRefLists, "for each dimension the axes that stop cutting it">:$gathering_axes,
    Sdy_OutSharding:$out_sharding
  );
  let assemblyFormat = [{
    $gathering_axes $tensor `out_sharding` `` `=` `` $out_sharding attr-dict `:` type($result)
  }];
  let hasCanonicalizer = 1;
}

def Sdy_AllSliceOp : Sdy_CollectiveOp<"all_slice", ["allowMissingInputSharding"]> {
  let summary = "Cuts a tensor along axes";
  let description = [{
    Each device keeps its part of what it has; nothing is communicated. The axes of a dimension are added at its
    minor end. The inverse of `sdy.all_gather`.

    ```mlir
    // From [{"x"}, {}\].
    %1 = sdy.all_slice [{"y"}, {"z"}\] %0 out_sharding=<@mesh, [{"x", "y"}, {"z"}\]> : tensor<8x16xf32>
    ```

    **Constraints:**
    - Each list of axes is the minor end of the axes that cut its dimension afterwards.
    - None of the axes cut the tensor before.
  }];
  let arguments = (ins
    Sdy_Tensor:$tensor,
    Arg<Sdy_ListOfAxisRefLists, "for each dimension the axes that start cutting it">:$slicing_axes,
    Sdy_OutSharding:$out_sharding
  );
  let assemblyFormat = [{
    $slicing_axes $tensor `out_sharding` `` `=` `` $out_sharding attr-dict `:` type($result)
  }];
  let hasCanonicalizer = 1;
}

def Sdy_AllToAllOp : Sdy_CollectiveOp<"all_to_all"> {
  let summary = "Moves axes from some dimensions to others";
  let description = [{
    Along the axes of each parameter the devices cut their blocks in the target dimension, send each other the
    pieces, and join them in the source dimension. The axes come off the minor end of the source dimension and are
    added at the minor end of the target dimension.

    ```mlir
    // From [{"x", "y"}, {}\].
    %1 = sdy.all_to_all [{"y"}: 0->1] %0 out_sharding=<@mesh, [{"x"}, {"y"}\]> : tensor<8x16xf32>
    ```

    **Constraints:**
    - There is a parameter, and source dimensions ascend.
    - The dimensions exist, and each occurs once in all parameters, as source or as target.
  }];
  let arguments = (ins
    Sdy_Tensor:$tensor,
    Arg<Sdy_AllToAllParamList, "which axes move, from where to where">:$params,
    Sdy_OutSharding:$out_sharding
  );
  let assemblyFormat = "$params $tensor `out_sharding` `` `=` `` $out_sharding attr-dict `:` type($result)";
  let hasCanonicalizer = 1;
}

def Sdy_CollectivePermuteOp : Sdy_CollectiveOp<"collective_permute", ["allowDifferentMeshes"]> {
  let summary = "Exchanges whole blocks between devices";
  let description = [{
    Each device sends its block to one device and gets one, so dimensions may be cut along other axes than before,
    in another order, or by devices numbered differently, as long as each is cut into as many blocks as it was.

    ```mlir
    // From [{"x"}, {"y"}\], both axes of the same size.
    %1 = sdy.collective_permute %0 out_sharding=<@mesh, [{"y"}, {"x"}\]> : tensor<8x16xf32>
    ```

    **Constraints:**
    - Each dimension is cut into as many blocks as before.
    - Two meshes, where there are two, have the same axes and the same devices in different orders.
  }];
  let arguments = (ins
    Sdy_Tensor:$tensor,
    Sdy_OutSharding:$out_sharding
  );
  let assemblyFormat = "$tensor `out_sharding` `` `=` `` $out_sharding attr-dict `:` type($result)";
  let hasCanonicalizer = 1;
}

def Sdy_AllReduceOp : Sdy_CollectiveOp<"all_reduce", ["allowMissingInputSharding"]> {
  let summary = "Combines partial values along axes";
  let description = [{
    Each device gets the combination of the values that the devices along the axes hold. Their order does not
    matter to the result.

    ```mlir
    // From [{"x"}, {}\], unreduced={"y"}.
    %1 = sdy.all_reduce {"y"} %0 out_sharding=<@mesh, [{"x"}, {}\]> : tensor<8x16xf32>
    %2 = sdy.all_reduce max {"y"} %0 out_sharding=<@mesh, [{"x"}, {}\]> : tensor<8x16xf32>
    ```

    **Constraints:**
    - The axes stand in the order of the mesh.
    - They neither cut the tensor before nor are listed as replicated.
    - They are not unreduced afterwards, and the dimensions are cut as before.
  }];
  let arguments = (ins
    Sdy_Tensor:$tensor,
    Arg<Sdy_AxisRefList, "the axes along which values combine">:$reduction_axes,
    Sdy_Reduction:$reduction_op,
    Sdy_OutSharding:$out_sharding
  );
  let assemblyFormat = [{
    ($reduction_op^)? $reduction_axes $tensor `out_sharding` `` `=` `` $out_sharding attr-dict `:` type($result)
  }];
  let hasCanonicalizer = 1;
}

def Sdy_ReduceScatterOp : Sdy_CollectiveOp<"reduce_scatter", ["allowMissingInputSharding"]> {
  let summary = "Combines partial values along axes and cuts the result along them";
  let description = [{
    An `sdy.all_reduce` followed by an `sdy.all_slice` along the same axes, without the detour over whole results.

    ```mlir
    // From [{"x"}, {}\], unreduced={"y"}.
    %1 = sdy.reduce_scatter [{}, {"y"}\] %0 out_sharding=<@mesh, [{"x"}, {"y"}\]> : tensor<8x16xf32>
    ```

    **Constraints:**
    - Each list of axes is the minor end of the axes that cut its dimension afterwards.
    - None of the axes cut the tensor before.
  }];
  let arguments = (ins
    Sdy_Tensor:$tensor,
    Arg<Sdy_ListOfAxisRefLists, "for each dimension the axes that start cutting it">:$reduce_scatter_axes,
    Sdy_Reduction:$reduction_op,
    Sdy_OutSharding:$out_sharding
  );
  let assemblyFormat = [{
    ($reduction_op^)? $reduce_scatter_axes $tensor `out_sharding` `` `=` `` $out_sharding
    attr-dict `:` type($result)
  }];
  let hasCanonicalizer = 1;
}

def Sdy_ShardedToUnreducedOp : Sdy_CollectiveOp<"sharded_to_unreduced"> {
  let summary = "Turns axes that cut a tensor into unreduced ones";
  let description = [{
    Each device takes its block for a whole tensor that is zero elsewhere; nothing is communicated. An
    `sdy.all_reduce` of the result along the axes gives what an `sdy.all_gather` of the operand along them gives.

    ```mlir
    // From [{"x", "y"}, {}\].
    %1 = sdy.sharded_to_unreduced [{"y"}, {}\] %0 out_sharding=<@mesh, [{"x"}, {}\], unreduced={"y"}>
        : tensor<8x16xf32>
    ```

    **Constraints:**
    - Each list of axes is the minor end of the axes that cut its dimension before.
    - All of them, and those unreduced before, are unreduced afterwards.
  }];
  let arguments = (ins
    Sdy_Tensor:$tensor,
    Arg<Sdy_ListOfAxisRefLists, "for each dimension the axes that stop cutting it">:$axes,
    Sdy_OutSharding:$out_sharding
  );
  let assemblyFormat = "$axes $tensor `out_sharding` `` `=` `` $out_sharding attr-dict `:` type($result)";
}

def Sdy_ReplicatedToUnreducedOp : Sdy_CollectiveOp<"replicated_to_unreduced"> {
  let summary = "Turns axes along which a tensor is replicated into unreduced ones";
  let description = [{
    One device along the axes keeps the values, the others take zeros; nothing is communicated. An `sdy.all_reduce`
    of the result along the axes gives the operand back.

    ```mlir
    // From [{"x"}, {}\].
    %1 = sdy.replicated_to_unreduced {"y"} %0 out_sharding=<@mesh, [{"x"}, {}\], unreduced={"y"}>
        : tensor<8x16xf32>
    ```

    **Constraints:**
    - There is an axis, and the axes stand in the order of the mesh.
    - The tensor is replicated along them before, whether they are listed as replicated or not mentioned.
    - They are unreduced afterwards, with those unreduced before, and the dimensions are cut as before.
  }];
  let arguments = (ins
    Sdy_Tensor:$tensor,
    Arg<Sdy_AxisRefList, "the axes that become unreduced">:$axes,
    Sdy_OutSharding:$out_sharding
  );
  let assemblyFormat = "$axes $tensor `out_sharding` `` `=` `` $out_sharding attr-dict `:` type($result)";
}

#endif // SDY_OPS_TD
