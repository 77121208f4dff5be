// RUN: shard-opt %s --split-input-file --verify-diagnostics --sdy-import-func-calls

func.func @itself() {
  // expected-error @+1 {{the call of @itself in @itself is recursive}}
  call @itself() : () -> ()
  return
}

// -----

func.func @main() {
  call @branches() : () -> ()
  return
}

// expected-error @+1 {{function @branches has 2 blocks, but the body of a named computation must have one}}
func.func private @branches() {
  cf.br ^end
^end:
  return
}
