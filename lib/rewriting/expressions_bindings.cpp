// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "bindings.h"
#include "rewriting/expressions.h"

#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <utility>

namespace py = pybind11;

namespace mlir_shard {

void defineExpressions(py::module_ &module) {
  py::enum_<ExpressionKind>(module, "ExpressionKind", "What the operations of a signature are to constant expressions.")
      .value("CONSTANT", ExpressionKind::Constant)
      .value("OF_CONSTANTS", ExpressionKind::OfConstants)
      .value("ASKED_EACH", ExpressionKind::AskedEach)
      .value("EXPANSION", ExpressionKind::Expansion)
      .value("COMPUTATION", ExpressionKind::Computation)
      .value("CALL", ExpressionKind::Call)
      .value("GROUP", ExpressionKind::Group)
      .value("TERMINATOR", ExpressionKind::Terminator)
      .value("OTHER", ExpressionKind::Other);

  py::class_<ExpressionSplitter>(module, "ExpressionSplitter",
                                 "Gives each use of a constant expression a copy of its own of all that makes it.")
      .def(py::init<ModuleArrays &, std::vector<ExpressionKind>>(), py::arg("arrays"), py::arg("kinds"),
           py::keep_alive<1, 2>())
      .def("scopes", &ExpressionSplitter::scopes,
           "For each operation right under the root the computations in it, inner ones first, and itself last.")
      .def("split",
           [](ExpressionSplitter &splitter, std::int32_t scope, std::function<bool(std::int32_t)> isScalar,
              std::function<bool(std::int32_t)> preserves, std::function<std::string(std::int32_t)> calleeOfOwn) {
             return splitter.split(scope, {std::move(isScalar), std::move(preserves), std::move(calleeOfOwn)});
           },
           py::arg("scope"), py::arg("is_scalar"), py::arg("preserves"), py::arg("callee_of_own"),
           "Splits what is in an operation but not in a computation inside it; whether some of that is of the kind\n"
           "OTHER. `is_scalar(value)` is asked once for each type, `preserves(operation)` of each computation and\n"
           "call, and of those of the kind ASKED_EACH whose operands are constant, whether its results are constant\n"
           "where its operands are, and `callee_of_own(operation)` what a call\n"
           "calls that is there for one use alone. Operations that nothing uses any more are erased.")
      .def("split_chains",
           [](ExpressionSplitter &splitter, std::int32_t scope, std::function<bool(std::int32_t)> isScalar,
              std::function<bool(std::int32_t)> preserves) {
             return splitter.splitChains(scope, {std::move(isScalar), std::move(preserves), {}});
           },
           py::arg("scope"), py::arg("is_scalar"), py::arg("preserves"),
           "Gives each use of a constant that is made of at most one other, inside expressions too, a copy of its own.\n"
           "Returns whether there were copies to make: then the arrays no longer are those of the module.");
}

} // namespace mlir_shard
