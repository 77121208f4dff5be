// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "bindings.h"
#include "runtime/narrow_gemm.h"

#include <pybind11/stl.h>

namespace mlir_shard {

void defineNarrowGemm(pybind11::module_ &module) {
  module.def("narrow_gemms", &narrowGemms,
             "The symbol and the address of each function for products of matrices of narrow elements that this CPU can run.");
}

} // namespace mlir_shard
