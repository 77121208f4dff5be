// RUN: shard-opt %s --verify-diagnostics --sdy-add-func-data-flow-edges

// expected-error @+1 {{a module with 2 functions must define the entry function @main}}
module {
  func.func @one() {
    return
  }
  func.func @other() {
    return
  }
}
