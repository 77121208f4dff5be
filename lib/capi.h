// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The part of MLIR's C API that the native core uses, declared once.
//
// The functions are looked up at run time in the library that the Python bindings have already loaded, so building
// needs no MLIR headers. The C API passes every object as a struct of one pointer (strings as pointer and length),
// which upstream keeps stable; the prototypes below follow mlir-c/IR.h and mlir-c/BuiltinAttributes.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mlir_shard {

template <typename Tag> struct Handle {
  const void *pointer = nullptr;
  explicit operator bool() const { return pointer != nullptr; }
  bool operator==(const Handle &other) const { return pointer == other.pointer; }
};

using MlirAttribute = Handle<struct AttributeTag>;
using MlirBlock = Handle<struct BlockTag>;
using MlirContext = Handle<struct ContextTag>;
using MlirIdentifier = Handle<struct IdentifierTag>;
using MlirLocation = Handle<struct LocationTag>;
using MlirOperation = Handle<struct OperationTag>;
using MlirRegion = Handle<struct RegionTag>;
using MlirType = Handle<struct TypeTag>;
using MlirValue = Handle<struct ValueTag>;

struct MlirStringRef {
  const char *data;
  std::size_t length;
};

struct MlirNamedAttribute {
  MlirIdentifier name;
  MlirAttribute attribute;
};

inline MlirStringRef toStringRef(std::string_view text) { return {text.data(), text.size()}; }
inline std::string_view toView(MlirStringRef text) { return {text.data, text.length}; }

#define MLIR_SHARD_CAPI(FUNCTION)                                                                                      \
  FUNCTION(MlirAttribute, mlirArrayAttrGetElement, (MlirAttribute, std::intptr_t))                                     \
  FUNCTION(std::intptr_t, mlirArrayAttrGetNumElements, (MlirAttribute))                                                \
  FUNCTION(void, mlirBlockArgumentSetLocation, (MlirValue, MlirLocation))                                              \
  FUNCTION(MlirValue, mlirBlockGetArgument, (MlirBlock, std::intptr_t))                                                \
  FUNCTION(MlirOperation, mlirBlockGetFirstOperation, (MlirBlock))                                                     \
  FUNCTION(MlirBlock, mlirBlockGetNextInRegion, (MlirBlock))                                                           \
  FUNCTION(std::intptr_t, mlirBlockGetNumArguments, (MlirBlock))                                                       \
  FUNCTION(MlirAttribute, mlirDictionaryAttrGetElementByName, (MlirAttribute, MlirStringRef))                          \
  FUNCTION(MlirType, mlirFunctionTypeGetInput, (MlirType, std::intptr_t))                                              \
  FUNCTION(MlirType, mlirFunctionTypeGetResult, (MlirType, std::intptr_t))                                             \
  FUNCTION(MlirIdentifier, mlirIdentifierGet, (MlirContext, MlirStringRef))                                            \
  FUNCTION(MlirStringRef, mlirIdentifierStr, (MlirIdentifier))                                                         \
  FUNCTION(MlirLocation, mlirLocationFileLineColGet, (MlirContext, MlirStringRef, unsigned, unsigned))                 \
  FUNCTION(MlirIdentifier, mlirLocationFileLineColRangeGetFilename, (MlirLocation))                                    \
  FUNCTION(int, mlirLocationFileLineColRangeGetStartColumn, (MlirLocation))                                            \
  FUNCTION(int, mlirLocationFileLineColRangeGetStartLine, (MlirLocation))                                              \
  FUNCTION(bool, mlirLocationIsAFileLineColRange, (MlirLocation))                                                      \
  FUNCTION(MlirNamedAttribute, mlirOperationGetAttribute, (MlirOperation, std::intptr_t))                              \
  FUNCTION(MlirAttribute, mlirOperationGetAttributeByName, (MlirOperation, MlirStringRef))                             \
  FUNCTION(MlirContext, mlirOperationGetContext, (MlirOperation))                                                      \
  FUNCTION(MlirAttribute, mlirOperationGetDiscardableAttributeByName, (MlirOperation, MlirStringRef))                  \
  FUNCTION(MlirRegion, mlirOperationGetFirstRegion, (MlirOperation))                                                   \
  FUNCTION(MlirLocation, mlirOperationGetLocation, (MlirOperation))                                                    \
  FUNCTION(MlirIdentifier, mlirOperationGetName, (MlirOperation))                                                      \
  FUNCTION(MlirOperation, mlirOperationGetNextInBlock, (MlirOperation))                                                \
  FUNCTION(std::intptr_t, mlirOperationGetNumAttributes, (MlirOperation))                                              \
  FUNCTION(std::intptr_t, mlirOperationGetNumDiscardableAttributes, (MlirOperation))                                   \
  FUNCTION(std::intptr_t, mlirOperationGetNumOperands, (MlirOperation))                                                \
  FUNCTION(std::intptr_t, mlirOperationGetNumResults, (MlirOperation))                                                 \
  FUNCTION(MlirValue, mlirOperationGetOperand, (MlirOperation, std::intptr_t))                                         \
  FUNCTION(MlirValue, mlirOperationGetResult, (MlirOperation, std::intptr_t))                                          \
  FUNCTION(void, mlirOperationSetDiscardableAttributeByName, (MlirOperation, MlirStringRef, MlirAttribute))            \
  FUNCTION(void, mlirOperationSetLocation, (MlirOperation, MlirLocation))                                              \
  FUNCTION(MlirBlock, mlirRegionGetFirstBlock, (MlirRegion))                                                           \
  FUNCTION(MlirRegion, mlirRegionGetNextInOperation, (MlirRegion))                                                     \
  FUNCTION(MlirType, mlirTypeAttrGetValue, (MlirAttribute))                                                            \
  FUNCTION(MlirLocation, mlirValueGetLocation, (MlirValue))                                                            \
  FUNCTION(MlirType, mlirValueGetType, (MlirValue))

// The functions above, found in one library.
struct Capi {
  // Finds every function in the shared library at `path`; throws std::runtime_error naming the first that is absent.
  explicit Capi(const std::string &path);

#define MLIR_SHARD_MEMBER(RESULT, NAME, PARAMETERS) RESULT(*NAME) PARAMETERS = nullptr;
  MLIR_SHARD_CAPI(MLIR_SHARD_MEMBER)
#undef MLIR_SHARD_MEMBER
};

} // namespace mlir_shard
