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
#include <memory>
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
using MlirModule = Handle<struct ModuleTag>;
using MlirOpOperand = Handle<struct OpOperandTag>;
using MlirOpPrintingFlags = Handle<struct OpPrintingFlagsTag>;
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

// The state that an operation is created from, filled by the functions below.
struct MlirOperationState {
  MlirStringRef name;
  MlirLocation location;
  std::intptr_t resultCount;
  MlirType *results;
  std::intptr_t operandCount;
  MlirValue *operands;
  std::intptr_t regionCount;
  MlirRegion *regions;
  std::intptr_t successorCount;
  MlirBlock *successors;
  std::intptr_t attributeCount;
  MlirNamedAttribute *attributes;
  bool infersResultTypes;
};

inline MlirStringRef toStringRef(std::string_view text) { return {text.data(), text.size()}; }
inline std::string_view toView(MlirStringRef text) { return {text.data, text.length}; }

#define MLIR_SHARD_CAPI(FUNCTION)                                                                                      \
  FUNCTION(MlirAttribute, mlirArrayAttrGet, (MlirContext, std::intptr_t, const MlirAttribute *))                       \
  FUNCTION(MlirAttribute, mlirArrayAttrGetElement, (MlirAttribute, std::intptr_t))                                     \
  FUNCTION(std::intptr_t, mlirArrayAttrGetNumElements, (MlirAttribute))                                                \
  FUNCTION(void, mlirBlockAppendOwnedOperation, (MlirBlock, MlirOperation))                                            \
  FUNCTION(std::intptr_t, mlirBlockArgumentGetArgNumber, (MlirValue))                                                  \
  FUNCTION(MlirBlock, mlirBlockArgumentGetOwner, (MlirValue))                                                          \
  FUNCTION(void, mlirBlockArgumentSetLocation, (MlirValue, MlirLocation))                                              \
  FUNCTION(MlirValue, mlirBlockGetArgument, (MlirBlock, std::intptr_t))                                                \
  FUNCTION(MlirOperation, mlirBlockGetFirstOperation, (MlirBlock))                                                     \
  FUNCTION(MlirBlock, mlirBlockGetNextInRegion, (MlirBlock))                                                           \
  FUNCTION(std::intptr_t, mlirBlockGetNumArguments, (MlirBlock))                                                       \
  FUNCTION(MlirOperation, mlirBlockGetParentOperation, (MlirBlock))                                                    \
  FUNCTION(MlirOperation, mlirBlockGetTerminator, (MlirBlock))                                                         \
  FUNCTION(void, mlirBlockInsertOwnedOperation, (MlirBlock, std::intptr_t, MlirOperation))                             \
  FUNCTION(void, mlirBlockInsertOwnedOperationAfter, (MlirBlock, MlirOperation, MlirOperation))                        \
  FUNCTION(void, mlirBlockInsertOwnedOperationBefore, (MlirBlock, MlirOperation, MlirOperation))                       \
  FUNCTION(MlirAttribute, mlirDictionaryAttrGet, (MlirContext, std::intptr_t, const MlirNamedAttribute *))             \
  FUNCTION(MlirNamedAttribute, mlirDictionaryAttrGetElement, (MlirAttribute, std::intptr_t))                           \
  FUNCTION(MlirAttribute, mlirDictionaryAttrGetElementByName, (MlirAttribute, MlirStringRef))                          \
  FUNCTION(std::intptr_t, mlirDictionaryAttrGetNumElements, (MlirAttribute))                                           \
  FUNCTION(MlirAttribute, mlirFlatSymbolRefAttrGet, (MlirContext, MlirStringRef))                                      \
  FUNCTION(MlirStringRef, mlirFlatSymbolRefAttrGetValue, (MlirAttribute))                                              \
  FUNCTION(MlirType, mlirFunctionTypeGet,                                                                              \
           (MlirContext, std::intptr_t, const MlirType *, std::intptr_t, const MlirType *))                            \
  FUNCTION(MlirType, mlirFunctionTypeGetInput, (MlirType, std::intptr_t))                                              \
  FUNCTION(std::intptr_t, mlirFunctionTypeGetNumInputs, (MlirType))                                                    \
  FUNCTION(std::intptr_t, mlirFunctionTypeGetNumResults, (MlirType))                                                   \
  FUNCTION(MlirType, mlirFunctionTypeGetResult, (MlirType, std::intptr_t))                                             \
  FUNCTION(MlirIdentifier, mlirIdentifierGet, (MlirContext, MlirStringRef))                                            \
  FUNCTION(MlirStringRef, mlirIdentifierStr, (MlirIdentifier))                                                         \
  FUNCTION(MlirLocation, mlirLocationCallSiteGet, (MlirLocation, MlirLocation))                                        \
  FUNCTION(MlirLocation, mlirLocationFileLineColGet, (MlirContext, MlirStringRef, unsigned, unsigned))                 \
  FUNCTION(MlirIdentifier, mlirLocationFileLineColRangeGetFilename, (MlirLocation))                                    \
  FUNCTION(int, mlirLocationFileLineColRangeGetStartColumn, (MlirLocation))                                            \
  FUNCTION(int, mlirLocationFileLineColRangeGetStartLine, (MlirLocation))                                              \
  FUNCTION(MlirLocation, mlirLocationFusedGet,                                                                         \
           (MlirContext, std::intptr_t, const MlirLocation *, MlirAttribute))                                          \
  FUNCTION(bool, mlirLocationIsAFileLineColRange, (MlirLocation))                                                      \
  FUNCTION(MlirLocation, mlirLocationUnknownGet, (MlirContext))                                                        \
  FUNCTION(MlirModule, mlirModuleCreateEmpty, (MlirLocation))                                                          \
  FUNCTION(void, mlirModuleDestroy, (MlirModule))                                                                      \
  FUNCTION(MlirModule, mlirModuleFromOperation, (MlirOperation))                                                       \
  FUNCTION(MlirBlock, mlirModuleGetBody, (MlirModule))                                                                 \
  FUNCTION(MlirOperation, mlirModuleGetOperation, (MlirModule))                                                        \
  FUNCTION(MlirOperation, mlirOpResultGetOwner, (MlirValue))                                                           \
  FUNCTION(std::intptr_t, mlirOpResultGetResultNumber, (MlirValue))                                                    \
  FUNCTION(MlirOpOperand, mlirOpOperandGetNextUse, (MlirOpOperand))                                                    \
  FUNCTION(unsigned, mlirOpOperandGetOperandNumber, (MlirOpOperand))                                                   \
  FUNCTION(MlirOperation, mlirOpOperandGetOwner, (MlirOpOperand))                                                      \
  FUNCTION(void, mlirOpPrintingFlagsAssumeVerified, (MlirOpPrintingFlags))                                             \
  FUNCTION(MlirOpPrintingFlags, mlirOpPrintingFlagsCreate, ())                                                         \
  FUNCTION(void, mlirOpPrintingFlagsDestroy, (MlirOpPrintingFlags))                                                    \
  FUNCTION(void, mlirOpPrintingFlagsElideLargeElementsAttrs, (MlirOpPrintingFlags, std::intptr_t))                     \
  FUNCTION(void, mlirOpPrintingFlagsEnableDebugInfo, (MlirOpPrintingFlags, bool, bool))                                \
  FUNCTION(void, mlirOpPrintingFlagsPrintGenericOpForm, (MlirOpPrintingFlags))                                         \
  FUNCTION(void, mlirOpPrintingFlagsSkipRegions, (MlirOpPrintingFlags))                                                \
  FUNCTION(void, mlirOpPrintingFlagsUseLocalScope, (MlirOpPrintingFlags))                                              \
  FUNCTION(MlirOperation, mlirOperationClone, (MlirOperation))                                                         \
  FUNCTION(MlirOperation, mlirOperationCreate, (MlirOperationState *))                                                 \
  FUNCTION(MlirOperation, mlirOperationCreateParse, (MlirContext, MlirStringRef, MlirStringRef))                       \
  FUNCTION(void, mlirOperationDestroy, (MlirOperation))                                                                \
  FUNCTION(MlirNamedAttribute, mlirOperationGetAttribute, (MlirOperation, std::intptr_t))                              \
  FUNCTION(MlirAttribute, mlirOperationGetAttributeByName, (MlirOperation, MlirStringRef))                             \
  FUNCTION(MlirBlock, mlirOperationGetBlock, (MlirOperation))                                                          \
  FUNCTION(MlirContext, mlirOperationGetContext, (MlirOperation))                                                      \
  FUNCTION(MlirNamedAttribute, mlirOperationGetDiscardableAttribute, (MlirOperation, std::intptr_t))                   \
  FUNCTION(MlirAttribute, mlirOperationGetDiscardableAttributeByName, (MlirOperation, MlirStringRef))                  \
  FUNCTION(MlirRegion, mlirOperationGetFirstRegion, (MlirOperation))                                                   \
  FUNCTION(MlirAttribute, mlirOperationGetInherentAttributeByName, (MlirOperation, MlirStringRef))                     \
  FUNCTION(MlirLocation, mlirOperationGetLocation, (MlirOperation))                                                    \
  FUNCTION(MlirIdentifier, mlirOperationGetName, (MlirOperation))                                                      \
  FUNCTION(MlirOperation, mlirOperationGetNextInBlock, (MlirOperation))                                                \
  FUNCTION(std::intptr_t, mlirOperationGetNumAttributes, (MlirOperation))                                              \
  FUNCTION(std::intptr_t, mlirOperationGetNumDiscardableAttributes, (MlirOperation))                                   \
  FUNCTION(std::intptr_t, mlirOperationGetNumOperands, (MlirOperation))                                                \
  FUNCTION(std::intptr_t, mlirOperationGetNumResults, (MlirOperation))                                                 \
  FUNCTION(MlirValue, mlirOperationGetOperand, (MlirOperation, std::intptr_t))                                         \
  FUNCTION(MlirOperation, mlirOperationGetParentOperation, (MlirOperation))                                            \
  FUNCTION(MlirValue, mlirOperationGetResult, (MlirOperation, std::intptr_t))                                          \
  FUNCTION(bool, mlirOperationIsBeforeInBlock, (MlirOperation, MlirOperation))                                         \
  FUNCTION(void, mlirOperationMoveAfter, (MlirOperation, MlirOperation))                                               \
  FUNCTION(void, mlirOperationMoveBefore, (MlirOperation, MlirOperation))                                              \
  FUNCTION(void, mlirOperationPrintWithFlags,                                                                          \
           (MlirOperation, MlirOpPrintingFlags, void (*)(MlirStringRef, void *), void *))                              \
  FUNCTION(bool, mlirOperationRemoveAttributeByName, (MlirOperation, MlirStringRef))                                   \
  FUNCTION(bool, mlirOperationRemoveDiscardableAttributeByName, (MlirOperation, MlirStringRef))                        \
  FUNCTION(void, mlirOperationSetAttributeByName, (MlirOperation, MlirStringRef, MlirAttribute))                       \
  FUNCTION(void, mlirOperationSetDiscardableAttributeByName, (MlirOperation, MlirStringRef, MlirAttribute))            \
  FUNCTION(void, mlirOperationSetLocation, (MlirOperation, MlirLocation))                                              \
  FUNCTION(void, mlirOperationSetOperand, (MlirOperation, std::intptr_t, MlirValue))                                   \
  FUNCTION(void, mlirOperationStateAddAttributes, (MlirOperationState *, std::intptr_t, const MlirNamedAttribute *))   \
  FUNCTION(void, mlirOperationStateAddOperands, (MlirOperationState *, std::intptr_t, const MlirValue *))              \
  FUNCTION(void, mlirOperationStateAddOwnedRegions, (MlirOperationState *, std::intptr_t, const MlirRegion *))         \
  FUNCTION(void, mlirOperationStateAddResults, (MlirOperationState *, std::intptr_t, const MlirType *))                \
  FUNCTION(MlirOperationState, mlirOperationStateGet, (MlirStringRef, MlirLocation))                                   \
  FUNCTION(bool, mlirOperationVerify, (MlirOperation))                                                                 \
  FUNCTION(MlirRegion, mlirRegionCreate, ())                                                                           \
  FUNCTION(MlirBlock, mlirRegionGetFirstBlock, (MlirRegion))                                                           \
  FUNCTION(MlirRegion, mlirRegionGetNextInOperation, (MlirRegion))                                                     \
  FUNCTION(void, mlirRegionTakeBody, (MlirRegion, MlirRegion))                                                         \
  FUNCTION(MlirStringRef, mlirStringAttrGetValue, (MlirAttribute))                                                     \
  FUNCTION(MlirAttribute, mlirTypeAttrGet, (MlirType))                                                                 \
  FUNCTION(MlirType, mlirTypeAttrGetValue, (MlirAttribute))                                                            \
  FUNCTION(MlirType, mlirRankedTensorTypeGet, (std::intptr_t, const std::int64_t *, MlirType, MlirAttribute))           \
  FUNCTION(MlirAttribute, mlirRankedTensorTypeGetEncoding, (MlirType))                                                 \
  FUNCTION(std::int64_t, mlirShapedTypeGetDimSize, (MlirType, std::intptr_t))                                          \
  FUNCTION(MlirType, mlirShapedTypeGetElementType, (MlirType))                                                         \
  FUNCTION(std::int64_t, mlirShapedTypeGetRank, (MlirType))                                                            \
  FUNCTION(bool, mlirShapedTypeHasRank, (MlirType))                                                                    \
  FUNCTION(bool, mlirShapedTypeHasStaticShape, (MlirType))                                                             \
  FUNCTION(bool, mlirShapedTypeIsDynamicDim, (MlirType, std::intptr_t))                                                \
  FUNCTION(bool, mlirTypeIsARankedTensor, (MlirType))                                                                  \
  FUNCTION(bool, mlirTypeIsAShaped, (MlirType))                                                                        \
  FUNCTION(bool, mlirTypeIsAMemRef, (MlirType))                                                                        \
  FUNCTION(bool, mlirTypeIsAUnrankedMemRef, (MlirType))                                                                \
  FUNCTION(MlirOpOperand, mlirValueGetFirstUse, (MlirValue))                                                           \
  FUNCTION(MlirLocation, mlirValueGetLocation, (MlirValue))                                                            \
  FUNCTION(MlirType, mlirValueGetType, (MlirValue))                                                                    \
  FUNCTION(bool, mlirValueIsABlockArgument, (MlirValue))                                                               \
  FUNCTION(void, mlirValueReplaceAllUsesExcept, (MlirValue, MlirValue, std::intptr_t, MlirOperation *))                \
  FUNCTION(void, mlirValueReplaceAllUsesOfWith, (MlirValue, MlirValue))                                                \
  FUNCTION(void, mlirValueSetType, (MlirValue, MlirType))

// Functions that older hosts lack; null if absent.
#define MLIR_SHARD_OPTIONAL_CAPI(FUNCTION)                                                                             \
  FUNCTION(bool, mlirOperationHasInherentAttributeByName, (MlirOperation, MlirStringRef))

class BlockOrders;
class InherentNames;

// The functions above, looked up in one library.
struct Capi {
  // Looks up every function in the shared library at `path`. Throws std::runtime_error with the name of the first
  // absent function that is not optional.
  explicit Capi(const std::string &path);

#define MLIR_SHARD_MEMBER(RESULT, NAME, PARAMETERS) RESULT(*NAME) PARAMETERS = nullptr;
  MLIR_SHARD_CAPI(MLIR_SHARD_MEMBER)
  MLIR_SHARD_OPTIONAL_CAPI(MLIR_SHARD_MEMBER)
#undef MLIR_SHARD_MEMBER

  // The known names of inherent attributes of operations; null if none is known.
  std::shared_ptr<InherentNames> inherentNames;

  // The orders of blocks by which walks prefetch operations.
  std::shared_ptr<BlockOrders> blockOrders;
};

} // namespace mlir_shard
