// RUN: not shard-diff %s 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not shard-diff - - 2>&1 | FileCheck %s --check-prefix=INPUTS
// RUN: not shard-diff %s %S/absent.mlir 2>&1 | FileCheck %s --check-prefix=ABSENT
// RUN: not shard-diff %s %s --format markdwn 2>&1 | FileCheck %s --check-prefix=FORMAT
// RUN: not shard-diff %s %s --collectives mpi 2>&1 | FileCheck %s --check-prefix=COLLECTIVES
// RUN: not shard-diff %s %s --threshold byte=5 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not shard-diff %s %s --threshold bytes 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: not shard-diff %s %s --threshold time=5miles 2>&1 | FileCheck %s --check-prefix=UNIT
// RUN: not shard-diff %s %s -o %S/absent/file 2>&1 | FileCheck %s --check-prefix=OUTPUT
// RUN: not shard-diff %s %s -o %t.png 2>&1 | FileCheck %s --check-prefix=PICTURE
// RUN: not shard-diff %s %s -o %t.svg 2>&1 | FileCheck %s --check-prefix=PICTURE
// RUN: not shard-diff %s %s --format=json -o %t.html 2>&1 | FileCheck %s --check-prefix=PICTURE
// RUN: not shard-diff %s %s --load %S/absent.py 2>&1 | FileCheck %s --check-prefix=LOAD
// RUN: not shard-diff %s %S/Inputs/same.mlir 2>%t.error >/dev/full
// RUN: FileCheck %s --check-prefix=FULL < %t.error
// RUN: echo 'func.func' > %t.mlir
// RUN: not shard-diff %s %t.mlir 2>&1 | FileCheck %s --check-prefix=PARSE

// MISSING: shard-diff: error: the following arguments are required: AFTER
// INPUTS: shard-diff: error: standard input holds a single program: specify a file for the other one
// ABSENT: shard-diff: error: cannot open input file '{{.*}}absent.mlir': No such file or directory
// FORMAT: shard-diff: error: argument --format: 'markdwn' is not a format; did you mean 'markdown'?
// COLLECTIVES: shard-diff: error: argument --collectives: 'mpi' is not a dialect of collectives: expected shard or stablehlo
// NAME: shard-diff: error: argument --threshold: 'byte' is not a quantity; did you mean 'bytes'?
// NOTHING: shard-diff: error: argument --threshold: 'bytes' has no amount: expected bytes=10MiB or 1.5GB or 5%
// UNIT: shard-diff: error: argument --threshold: '5miles' is not an amount of time: expected 20ms or 1.5s or 5%
// PICTURE: shard-diff: error: --output={{.*}}: a comparison is written to a .md or .json file, or as text to any other file; shard-explain draws a program, shard-reshard a plan, as a .svg picture or a .html page
// OUTPUT: shard-diff: error: cannot open output file '{{.*}}': No such file or directory
// LOAD: error: cannot load '{{.*}}absent.py'
// FULL: shard-diff: error: cannot write to standard output: No space left on device
// PARSE: .mlir:2:1: error: custom op 'func.func' expected valid

func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
