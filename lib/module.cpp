// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The Python module mlir_shard._native: functions that process every character or every operation of a module.

#include "arrays/array_bindings.h"
#include "arrays/module_arrays.h"
#include "bindings.h"
#include "ir/host_library.h"
#include "ir/walk.h"
#include "rewriting/merge.h"

#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace py = pybind11;
using namespace mlir_shard;

namespace {

// Wraps MLIR's C API in the library that the bindings use, for objects that the bindings pass as capsules.
class Host {
public:
  explicit Host(SharedLibrary library) : library(std::move(library)) {}

  std::vector<py::tuple> attributeUses(const py::capsule &op, const std::vector<std::pair<std::string, int>> &names,
                                       const std::vector<std::string> &scopes) const {
    std::vector<AttributeQuery> queries;
    for (const auto &[name, likeness] : names)
      queries.push_back({name, static_cast<Likeness>(likeness)});
    std::vector<py::tuple> uses;
    SeenUses seen;
    for (const AttributeUse &use : distinctAttributeUses(capi, {{host.operation(op), true}}, queries, scopes, seen))
      uses.push_back(
          py::make_tuple(host.capsule(use.op), queries[use.query].name, static_cast<int>(use.place), use.index));
    return uses;
  }

  std::vector<py::capsule> firstOperationsBelow(const py::capsule &op) const {
    return host.capsules(firstOperations(capi, host.operation(op)));
  }
  std::vector<py::capsule> childrenOf(const py::capsule &op, const std::string &name) const {
    return host.capsules(childrenNamed(capi, host.operation(op), name));
  }
  std::vector<py::capsule> operationsNamedBelow(const py::capsule &op, const std::vector<std::string> &names,
                                                bool postOrder) const {
    return host.capsules(operationsNamed(capi, host.operation(op), names, postOrder));
  }

  std::shared_ptr<ModuleArrays> read(const py::capsule &op, const std::vector<std::string> &ignored,
                                     const std::function<bool(const std::string &)> &anySizes) {
    AnySizes asked;
    if (anySizes)
      asked = [&](std::string_view name) { return anySizes(std::string(name)); };
    return std::make_shared<ModuleArrays>(capi, host.operation(op), ignored, std::move(asked));
  }

  void setAttribute(const ModuleArrays &arrays, const std::vector<std::size_t> &ops, const std::string &name,
                    const py::capsule &attribute) const {
    const MlirAttribute value = host.attribute(attribute);
    for (std::size_t op : ops)
      capi.mlirOperationSetDiscardableAttributeByName(arrays.ops.at(op), toStringRef(name), value);
  }

  void replaceOperations(ModuleArrays &arrays, const std::unordered_map<std::int32_t, py::capsule> &prototypes) const {
    arrays.replaceAll([&](std::int32_t signature) {
      const auto found = prototypes.find(signature);
      return found == prototypes.end() ? MlirOperation{} : host.operation(found->second);
    });
  }

  std::vector<py::capsule> mergeEqualBelow(const py::capsule &op, const std::vector<std::string> &names,
                       const std::function<MergedOperands(py::capsule)> &merges) {
    return host.capsules(
        mergeEqual(capi, host.operation(op), names, [&](MlirOperation found) { return merges(host.capsule(found)); }));
  }

  void resultNumbers(const ModuleArrays &arrays, const std::string &name,
                     const std::function<std::vector<std::int32_t>(py::capsule)> &numbersOf,
                     const py::buffer &numbers) const {
    const auto [values, count] = integers(numbers, true);
    if (count != arrays.values.size())
      throw std::invalid_argument("there has to be a number for each value");
    arrays.setResultNumbers(
        name, [&](MlirAttribute attribute) { return numbersOf(host.capsule(attribute)); }, values);
  }

  py::tuple writeStates(const ModuleArrays &arrays, const py::buffer &now, const py::buffer &before,
                        const std::vector<bool> &writable, const std::string &name,
                        const std::function<py::capsule(std::int32_t)> &attributeOf) const {
    const auto [states, count] = integers(now, false);
    const auto [old, oldCount] = integers(before, false);
    if (count != oldCount)
      throw std::invalid_argument("there have to be as many states before as after");
    std::unordered_map<std::int32_t, MlirAttribute> attributes;
    std::vector<std::int32_t> others, written;
    for (std::size_t place = 0; place < count; ++place) {
      if (states[place] == old[place])
        continue;
      const std::int32_t definer = place > 0 && place <= arrays.definers.size() ? arrays.definers[place - 1] : -1;
      if (definer < 0 || !writable.at(arrays.signatures[definer])) {
        others.push_back(static_cast<std::int32_t>(place));
        continue;
      }
      prefetchAfter(arrays.ops, static_cast<std::size_t>(definer));
      MlirAttribute &attribute = attributes[states[place]];
      if (!attribute)
        attribute = host.attribute(attributeOf(states[place]));
      capi.mlirOperationSetDiscardableAttributeByName(arrays.ops[definer], toStringRef(name), attribute);
      written.push_back(definer);
    }
    return py::make_tuple(Integers(std::move(others)), Integers(std::move(written)));
  }

  SharedLibrary library;
  const Capi &capi = library->capi;
  const Capsules &host = library->capsules;
};

std::vector<std::int32_t> withSignatures(const ModuleArrays &arrays, const std::vector<bool> &wanted) {
  std::vector<std::int32_t> found;
  for (std::size_t op = 0; op < arrays.signatures.size(); ++op)
    if (wanted.at(arrays.signatures[op]))
      found.push_back(static_cast<std::int32_t>(op));
  return found;
}

Operations outermost(const std::shared_ptr<ModuleArrays> &arrays,
                     const std::function<std::optional<bool>(std::int32_t)> &closes,
                     const std::function<bool(std::int32_t)> &isClosed) {
  using Closes = ModuleArrays::Closes;
  return {arrays, arrays->outermost(
                      [&](std::int32_t signature) {
                        const std::optional<bool> answer = closes(signature);
                        return !answer ? Closes::Depends : *answer ? Closes::Yes : Closes::No;
                      },
                      isClosed)};
}

auto column(std::vector<std::int32_t> ModuleArrays::*column) {
  return [column](const std::shared_ptr<ModuleArrays> &arrays) { return Integers(arrays, column); };
}

} // namespace

PYBIND11_MODULE(_native, module) {
  module.doc() = "The native core: passes over the characters and the operations of whole modules.";

  py::class_<Integers>(module, "Integers", py::buffer_protocol(), "Integers of 32 bits, read through `memoryview`.")
      .def_buffer(&Integers::buffer);

  py::class_<Operations>(module, "Operations", "Some of the operations of a module, by number.")
      .def_readonly("numbers", &Operations::numbers)
      .def("where", &Operations::where, py::arg("wanted"), "Those whose signature is wanted, in their order.");

  py::class_<ModuleArrays, std::shared_ptr<ModuleArrays>>(
      module, "ModuleArrays",
      "The operations of a module in pre-order, as flat arrays.")
      .def("__len__", [](const ModuleArrays &arrays) { return arrays.ops.size(); })
      .def_property_readonly("value_count", [](const ModuleArrays &arrays) { return arrays.values.size(); })
      .def_property_readonly("parents", column(&ModuleArrays::parents))
      .def_property_readonly("signatures", column(&ModuleArrays::signatures))
      .def("operands", [](const ModuleArrays &arrays, std::size_t op) { return arrays.operands.group(op); },
           py::arg("op"), "The numbers of an operation's operands.")
      .def("results", [](const ModuleArrays &arrays, std::size_t op) { return arrays.results.group(op); },
           py::arg("op"), "The numbers of an operation's results.")
      .def("boundary", [](const ModuleArrays &arrays, std::int32_t op) {
             const ModuleArrays::Boundary found = arrays.boundaryOf(op);
             return py::make_tuple(found.operands, found.results, found.arguments, found.returned);
           }, py::arg("op"),
           "The numbers of an operation's operands and results, of the arguments of the first block of each region, and of\n"
           "the operands of the last operation of each region that is not empty.")
      .def("arguments", py::overload_cast<std::int32_t>(&ModuleArrays::argumentsOf, py::const_), py::arg("op"),
           "The numbers of the arguments of the first block in an operation's first region; empty without such a block.")
      .def_property_readonly("definers", column(&ModuleArrays::definers))
      .def("alike", [](const ModuleArrays &arrays, const std::vector<std::int32_t> &operations,
                       const py::buffer &numbers) {
             const auto [values, count] = integers(numbers, false);
             if (count != arrays.values.size())
               throw std::invalid_argument("there has to be a number for each value");
             return arrays.alike(operations, values);
           }, py::arg("operations"), py::arg("numbers"),
           "For each operation the first of them that has its signature and whose operands and results have the same\n"
           "numbers, in a buffer that has one for each value.")
      .def("forms_of_any_sizes", &ModuleArrays::formsOfAnySizes, py::arg("wanted"), py::arg("ignored"),
           "Returns the number of the form of each signature that is wanted, -1 for the others. Signatures of a form\n"
           "differ only in sizes, as far as `Host.read` ignores them for `any_sizes`, and in the ignored attributes.")
      .def("with_signatures", &withSignatures, py::arg("wanted"), "The operations whose signature is wanted.")
      .def("used_once", [](const ModuleArrays &arrays) { return py::bytes(arrays.usedOnce()); },
           "Whether each value is an operand once, and no more.")
      .def("users", &ModuleArrays::usersOf, py::arg("value"), "The operations that use a value, each once, in order.")
      .def("uses",
           [](ModuleArrays &arrays, std::int32_t value) {
             std::vector<std::pair<std::int32_t, std::int32_t>> uses;
             arrays.eachUse(value, [&](std::int32_t op, std::int32_t operand) { uses.emplace_back(op, operand); });
             return uses;
           },
           py::arg("value"), "The operations that use a value, in order, each with the number of the operand.")
      .def("last_following", &ModuleArrays::lastFollowing, py::arg("operations"), py::arg("follows"),
           "The last of the operations that follow each one: those of the signatures in `follows`, in the same block, that\n"
           "alone use the result of the one before, and once.")
      .def("use_states",
           [](const ModuleArrays &arrays, const std::vector<bool> &movers) { return Integers(arrays.useStates(movers)); },
           py::arg("movers"),
           "How each value is used: -1 for no use, -3 - s for one, by an operation of a signature s that is a mover, else -2.")
      .def("free_lookup", [](ModuleArrays &arrays) { arrays.values.freeTable(); },
           "Frees the table by which values are looked up; the next lookup makes it again.")
      .def("outermost", &outermost, py::arg("closes"), py::arg("is_closed"),
           "The operations that are in no closed operation, in pre-order. `closes(signature)` says whether all of a\n"
           "signature are closed, or by None that `is_closed(operation)` says it of each.");

  py::class_<HostLibrary, std::shared_ptr<HostLibrary>>(module, "HostLibrary", "The library of MLIR that the bindings use.")
      .def(py::init<const std::string &, const std::string &, InherentNames::Declared>(), py::arg("path"),
           py::arg("capsule_prefix"), py::arg("inherent_names"),
           "`inherent_names(name, many)` gives names with all that attributes have that operations of a name can keep as\n"
           "properties, None where they are not known; if there are many of these, it may take its time.");

  defineCrashReport(module);
  defineEditor(module);
  defineExpressions(module);
  defineNarrowGemm(module);
  defineOpKinds(module);
  definePropagation(module);
  defineRepetitions(module);
  defineResharding(module);
  defineSignatures(module);
  defineText(module);
  defineVerification(module);

  py::class_<Host>(module, "Host", "The host's C API.")
      .def(py::init<SharedLibrary>(), py::arg("library"))
      .def("attribute_uses", &Host::attributeUses, py::arg("op"), py::arg("names"), py::arg("scopes"),
           "The uses of discardable attributes as (operation, name, place, index), the place being 0 for the operation,\n"
           "1 for an argument and 2 for a result; `names` says with each whether of uses that\n"
           "are alike one will do: 0 for no, 1 where types agree, 2 where the ranks of results do.")
      .def("read", &Host::read, py::arg("op"), py::arg("ignored"), py::arg("any_sizes") = py::none(),
           py::keep_alive<0, 1>(),
           "Reads what is under an operation; attributes named in `ignored` do not count in signatures. Operations of a\n"
           "name for which `any_sizes(name)` is true have the same signature where they differ in the sizes of\n"
           "dimensions, but for which sizes are 1, which are equal, and the order of the tensors by their elements.")
      .def("first_operations", &Host::firstOperationsBelow, py::arg("op"),
           "The first operation of each name under an operation, in pre-order.")
      .def("operations_named", &Host::operationsNamedBelow, py::arg("op"), py::arg("names"), py::arg("post_order"),
           "The operations under one that have one of the names: in pre-order, or each after those inside it.")
      .def("children", &Host::childrenOf, py::arg("op"), py::arg("name"), "The operations of a name right in one.")
      .def("merge_equal", &Host::mergeEqualBelow, py::arg("op"), py::arg("names"), py::arg("merges"),
           "Merges the operations of a block that have one of the names, and one result, and agree in all but their\n"
           "location. `merges(operation)`, asked once for each signature, gives the operands that have to be results of\n"
           "such operations too, and None for what is never merged. Gives those that others were merged into.")
      .def("replace_operations", &Host::replaceOperations, py::arg("arrays"), py::arg("prototypes"),
           "Puts copies of prototypes, given by signature, in the place of all operations that have it.")
      .def("made", [](const Host &self, const ModuleArrays &arrays) { return self.host.capsules(arrays.made.all()); },
           py::arg("arrays"), "The operations that rewrites by the arrays have put in and not erased.")
      .def("take_made", [](const Host &, ModuleArrays &arrays, ModuleArrays &before) {
             arrays.made = std::exchange(before.made, {});
           },
           py::arg("arrays"), py::arg("before"),
           "Adds the operations that rewrites by `before`, earlier arrays of the same module, have put in to those of\n"
           "`arrays`, which has none yet.")
      .def("representatives",
           [](const Host &self, const ModuleArrays &arrays) { return self.host.capsules(arrays.representatives); },
           py::arg("arrays"), "The first operation of each signature.")
      .def("operation", [](const Host &self, const ModuleArrays &arrays,
                           std::size_t op) { return self.host.capsule(arrays.ops.at(op)); }, py::arg("arrays"), py::arg("op"))
      .def("value", [](const Host &self, const ModuleArrays &arrays,
                       std::int32_t value) { return self.host.capsule(arrays.value(value)); },
           py::arg("arrays"), py::arg("value"))
      .def("number_of", [](const Host &self, const ModuleArrays &arrays,
                           const py::capsule &value) { return arrays.numberOf(self.host.value(value)); },
           py::arg("arrays"), py::arg("value"), "The number of a value, -1 for one that is not in the module.")
      .def("attributed", [](const Host &self, const ModuleArrays &arrays, const std::string &name) {
             std::vector<MlirAttribute> distinct;
             auto uses = arrays.attributed(name, distinct);
             return py::make_tuple(std::move(uses), self.host.capsules(distinct));
           }, py::arg("arrays"), py::arg("name"),
           "The operations that have a discardable attribute, each with the number of its own among the distinct ones;\n"
           "and these.")
      .def("result_numbers", &Host::resultNumbers, py::arg("arrays"), py::arg("name"), py::arg("numbers_of"),
           py::arg("numbers"),
           "Sets, in a buffer that has a number for each value, those of the results of operations with a discardable\n"
           "attribute to what `numbers_of(attribute)` gives, asked once for each distinct one.")
      .def("write_states", &Host::writeStates, py::arg("arrays"), py::arg("now"), py::arg("before"),
           py::arg("writable"), py::arg("name"), py::arg("attribute_of"),
           "Gives each operation whose signature is in `writable` and whose first result, by its place, has another\n"
           "state than before the discardable attribute that `attribute_of(state)` gives, asked once for each; the\n"
           "other places whose state is another one, and the operations that got the attribute, as columns.")
      .def("set_attribute", &Host::setAttribute, py::arg("arrays"), py::arg("ops"), py::arg("name"),
           py::arg("attribute"), "Sets a discardable attribute on operations.");
}
