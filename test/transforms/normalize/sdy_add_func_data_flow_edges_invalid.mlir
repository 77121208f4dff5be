// RUN: shard-opt %s --verify-diagnostics --sdy-add-func-data-flow-edges

// expected-error @+1 {{a module with 2 functions needs one called @main, where the program begins}}
module {
  func.func @one() {
    return
  }
  func.func @other() {
    return
  }
}
