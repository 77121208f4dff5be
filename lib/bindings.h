// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The functions that define the parts of the Python module in other files.
#pragma once

#include <pybind11/pybind11.h>

namespace mlir_shard {

void defineCrashReport(pybind11::module_ &module);
void defineEditor(pybind11::module_ &module);
void defineExpressions(pybind11::module_ &module);
void defineNarrowGemm(pybind11::module_ &module);
void defineOpKinds(pybind11::module_ &module);
void definePropagation(pybind11::module_ &module);
void defineRepetitions(pybind11::module_ &module);
void defineResharding(pybind11::module_ &module);
void defineSignatures(pybind11::module_ &module);
void defineText(pybind11::module_ &module);
void defineVerification(pybind11::module_ &module);

} // namespace mlir_shard
