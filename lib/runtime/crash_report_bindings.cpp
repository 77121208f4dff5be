// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "bindings.h"
#include "runtime/bus_error.h"
#include "runtime/crash_report.h"

#include <pybind11/pybind11.h>

namespace mlir_shard {

void defineCrashReport(pybind11::module_ &module) {
  module.def("report_crashes", &reportCrashes, pybind11::arg("tool"), pybind11::arg("status"));
  module.def("reports_crashes", &reportsCrashes);
  module.def("set_at_work", &setAtWork, pybind11::arg("place"), pybind11::arg("work"));
  module.def("remove_at_crash", &removeAtCrash, pybind11::arg("folder"));
  module.def("remove_mapped_at_bus_error", &removeMappedAtBusError, pybind11::arg("folder"), pybind11::arg("prefix"));
  module.def("keep_at_crash", &keepAtCrash, pybind11::arg("folder"));
}

} // namespace mlir_shard
