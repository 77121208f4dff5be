// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SDY_ENUMS_TD
#define SDY_ENUMS_TD

include "mlir/IR/EnumAttr.td"
include "SdyDialect.td"

class Sdy_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = Sdy_Dialect.cppNamespace;
}

// The integers order directions by how much they let through.
def Sdy_PropagationDirection : Sdy_Enum<"PropagationDirection", "the ways in which shardings may pass", [
    I32EnumAttrCase<"NONE", 0>,
    I32EnumAttrCase<"FORWARD", 1>,
    I32EnumAttrCase<"BACKWARD", 2>,
    I32EnumAttrCase<"BOTH", 3>
  ]> {
  let description = [{
    `FORWARD` is from operands to results, `BACKWARD` from results to operands.
  }];
}

def Sdy_EdgeNodeType : Sdy_Enum<"EdgeNodeType", "which kind of value of an op an edge ends at", [
    I32EnumAttrCase<"OPERAND", 0, "operand">,
    I32EnumAttrCase<"RESULT", 1, "result">
  ]> {
  let description = [{
    Together with an index it names one value of an op.
  }];
}

def Sdy_ReductionOp : Sdy_Enum<"ReductionOp", "how partial values are combined", [
    I32EnumAttrCase<"SUM", 0, "sum">,
    I32EnumAttrCase<"MAX", 1, "max">,
    I32EnumAttrCase<"MIN", 2, "min">
  ]> {
  let description = [{
    The combination is associative and commutative, so devices may be combined in any order.
  }];
}

#endif // SDY_ENUMS_TD
