// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SDY_DIALECT_TD
#define SDY_DIALECT_TD

include "mlir/IR/OpBase.td"

def Sdy_Dialect : Dialect {
  let name = "sdy";
  let cppNamespace = "::mlir::sdy";
  let summary = "Shardings of tensors over named device meshes";
  let description = [{
    The dialect in which JAX and Shardy say how tensors are spread over devices. Devices form a mesh whose axes have
    names; a sharding lists, for each dimension of a tensor, the axes that cut it. The operations annotate values
    with shardings, shape how shardings propagate, and carry out changes of sharding as collectives on axes.

    The textual syntax is that of Shardy, so that programs move between the two unchanged.
  }];

  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
}

#endif // SDY_DIALECT_TD
