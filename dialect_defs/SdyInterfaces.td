// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SDY_INTERFACES_TD
#define SDY_INTERFACES_TD

include "mlir/IR/OpBase.td"
include "SdyAttrs.td"

def Sdy_ShardableDataFlowOpInterface : OpInterface<"ShardableDataFlowOpInterface"> {
  let description = [{
    Ops with regions through which values flow, and with them shardings.

    A data-flow edge joins values that have to be sharded alike: its sources, operands of the op or of a terminator
    in one of its regions, and its targets, results of the op or block arguments of its regions. A loop has an edge
    for each value it carries; the sources are the initial value and what the body returns, the targets the body's
    argument and the loop's result. One target of each edge, always the same, is its owner; the edge's sharding is
    kept for the owner.
  }];
  let cppNamespace = Sdy_Dialect.cppNamespace;

  let methods = [
    InterfaceMethod<"The shardings of the owners that are block arguments.",
        "::llvm::SmallVector<::mlir::sdy::TensorShardingAttr>", "getBlockArgumentEdgeOwnerShardings", (ins),
        "", "return {};">,
    InterfaceMethod<"Sets the shardings of the owners that are block arguments.",
        "void", "setBlockArgumentEdgeOwnerShardings",
        (ins "::llvm::ArrayRef<::mlir::sdy::TensorShardingAttr>":$shardings), "", "return;">,
    InterfaceMethod<"The shardings of the owners that are results.",
        "::llvm::SmallVector<::mlir::sdy::TensorShardingAttr>", "getOpResultEdgeOwnerShardings", (ins),
        "", "return ::mlir::sdy::getResultShardings($_op);">,
    InterfaceMethod<"Sets the shardings of the owners that are results.",
        "void", "setOpResultEdgeOwnerShardings",
        (ins "::llvm::ArrayRef<::mlir::sdy::TensorShardingAttr>":$shardings),
        "", "::mlir::sdy::setResultShardings($_op, shardings);">,
    InterfaceMethod<"The sharding of a target as seen from inside or outside the region.",
        "::mlir::sdy::TensorShardingAttr", "transformTargetSharding",
        (ins "::mlir::Value":$target, "::mlir::sdy::TensorShardingAttr":$sharding,
             "::mlir::sdy::DataFlowShardingTransformType":$transformType),
        "", "return sharding;">,
    InterfaceMethod<"The owners that are block arguments.",
        "::llvm::ArrayRef<::mlir::BlockArgument>", "getBlockArgumentEdgeOwners", (ins), "", "return {};">,
    InterfaceMethod<"The owners that are results.", "::mlir::ResultRange", "getOpResultEdgeOwners">,
    InterfaceMethod<"The sources of the edge with that owner.",
        "::llvm::SmallVector<::mlir::OpOperand *>", "getEdgeSources", (ins "::mlir::Value":$owner)>,
    InterfaceMethod<"The owner of the edge with that target.",
        "::mlir::Value", "getEdgeOwnerFromTarget", (ins "::mlir::Value":$target)>,
    InterfaceMethod<"The owner of the edge with that source.",
        "::mlir::Value", "getEdgeOwnerFromSource", (ins "::mlir::OpOperand &":$source)>,
    InterfaceMethod<"The targets, other than the owner, of the edge with that owner.",
        "::llvm::SmallVector<::mlir::Value>", "getNonEdgeOwnerTargets", (ins "::mlir::Value":$owner),
        "", "return {};">,
    InterfaceMethod<"Whether owners may only be sharded into blocks of equal size.",
        "bool", "shouldKeepEdgeOwnerShardingsDivisible", (ins), "", "return false;">
  ];
}

def Sdy_ShardingRuleOpInterface : OpInterface<"ShardingRuleOpInterface"> {
  let description = [{
    Ops that know the rule by which they may be sharded.
  }];
  let cppNamespace = Sdy_Dialect.cppNamespace;

  let methods = [
    InterfaceMethod<"The rule of this op.", "::mlir::sdy::OpShardingRuleAttr", "getShardingRule">,
    InterfaceMethod<"Whether results may only be sharded into blocks of equal size.",
        "bool", "shouldKeepOutputShardingsDivisible", (ins), "", "return false;">
  ];
}

def Sdy_CollectiveOpInterface : OpInterface<"CollectiveOpInterface"> {
  let description = [{
    Ops that bring one tensor from the sharding it has into `out_sharding` and leave its value as it is.

    **Constraints:**
    - The operand has a sharding, unless the op allows it to have none, which then counts as fully replicated.
    - `out_sharding` suits the type of the result.
    - Both shardings have the same rank, and the same mesh unless the op allows two.
    - `out_sharding` is what the op makes of the operand's sharding; it is written down, not chosen.
  }];
  let cppNamespace = Sdy_Dialect.cppNamespace;

  let methods = [
    InterfaceMethod<"The sharding of the result.", "::mlir::sdy::TensorShardingAttr", "getOutSharding">,
    InterfaceMethod<"Sets the sharding of the result.",
        "void", "setOutShardingAttr", (ins "::mlir::sdy::TensorShardingAttr":$sharding)>,
    InterfaceMethod<"The tensor whose sharding changes.",
        "::mlir::TypedValue<::mlir::ShapedType>", "getTensor">,
    InterfaceMethod<"The type of the result.", "::mlir::Type", "getType">,
    InterfaceMethod<"Whether operand and result may be on different meshes.",
        "bool", "allowDifferentMeshes", (ins), "", "return false;">,
    InterfaceMethod<"Whether the operand may have no sharding.",
        "bool", "allowMissingInputSharding", (ins), "", "return false;">
  ];
  let verify = "return ::mlir::sdy::verifyCollectiveOp($_op);";
}

#endif // SDY_INTERFACES_TD
