// RUN: not shard-run 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: not shard-run -n none %s 2>&1 | FileCheck %s --check-prefix=COUNT
// RUN: not shard-run -n 2 %s 2>&1 | FileCheck %s --check-prefix=RANKS
// RUN: not shard-run --function absent %s 2>&1 | FileCheck %s --check-prefix=FUNCTION
// RUN: not shard-run --show locl %s 2>&1 | FileCheck %s --check-prefix=STAGE
// RUN: not shard-run --pipeline cse %s 2>&1 | FileCheck %s --check-prefix=ONE
// RUN: not shard-run --pipeline 'shard-propagat;shard-spmdize' %s 2>&1 | FileCheck %s --check-prefix=PIPELINE
// RUN: not shard-run --output %S/results.txt %s 2>&1 | FileCheck %s --check-prefix=SUFFIX
// RUN: not shard-run --save %S/absent/results.npz %s 2>&1 | FileCheck %s --check-prefix=UNWRITABLE
// RUN: not shard-run --load %S/absent.py %s 2>&1 | FileCheck %s --check-prefix=LOAD
// RUN: not shard-run %S/absent.mlir 2>&1 | FileCheck %s --check-prefix=ABSENT
// RUN: not shard-run %S 2>&1 | FileCheck %s --check-prefix=DIRECTORY
// RUN: not shard-run %s --inputs %S/absent.npy 2>&1 | FileCheck %s --check-prefix=INPUT
// RUN: not shard-run %s --inputs %s 2>&1 | FileCheck %s --check-prefix=NOINPUT
// RUN: not shard-run %s --expect %S/absent.npy 2>&1 | FileCheck %s --check-prefix=INPUT
// RUN: not shard-run %s --rtol=-2 2>&1 | FileCheck %s --check-prefix=RTOL
// RUN: not shard-run %s --no-verify --atol=2 2>&1 | FileCheck %s --check-prefix=ATOL
// RUN: not shard-run --engine pjr %s 2>&1 | FileCheck %s --check-prefix=ENGINE
// RUN: not shard-run --mpi system --engine pjrt %s 2>&1 | FileCheck %s --check-prefix=NOTMPI
// RUN: not shard-run --platform cpu %s 2>&1 | FileCheck %s --check-prefix=PLATFORM
// RUN: not shard-run --collectives stablehl %s 2>&1 | FileCheck %s --check-prefix=WHOSE
// RUN: not shard-run --collectives shard --engine pjrt %s 2>&1 | FileCheck %s --check-prefix=NOTSHARD
// RUN: not shard-run --collectives shard --pipeline 'shard-propagate;shard-spmdize' %s 2>&1 | FileCheck %s --check-prefix=BOTH
// RUN: not shard-run --mpi %S/absent %s 2>&1 | FileCheck %s --check-prefix=LAUNCHER
// RUN: not shard-run --mpi %s %s 2>&1 | FileCheck %s --check-prefix=LAUNCHER
// RUN: not shard-run --rank 2 %s 2>&1 | FileCheck %s --check-prefix=FLAG

// FLAG: shard-run: error: unknown option '--rank'; did you mean '--ranks'?
// NOTHING: shard-run: error: the following arguments are required: FILE
// COUNT: shard-run: error: argument -n/--ranks: 'none' is not a number of ranks: expected 1 or more
// RANKS: shard-run: error: the program is for 4 ranks, not 2: its mesh is @mesh of 4 (<["x"=4]>)
// FUNCTION: shard-run: error: the program has no function @absent to run; its functions: @main
// STAGE: shard-run: error: argument --show: 'locl' is not a stage to show; did you mean 'local'?
// ONE: shard-run: error: argument --pipeline: 'cse' is a single pipeline: expected two, separated by a semicolon
// PIPELINE: shard-run: error: {{.*}}shard-propagat{{.*}}did you mean 'shard-propagate'
// SUFFIX: shard-run: error: --output={{.*}}results.txt: results are written to a .npz file, or a single result to a .npy file
// UNWRITABLE: shard-run: error: cannot open output file '{{.*}}results.npz': No such file or directory
// LOAD: error: cannot load '{{.*}}absent.py'
// ABSENT: shard-run: error: cannot open input file '{{.*}}absent.mlir': No such file or directory
// DIRECTORY: shard-run: error: cannot open input file '{{.*}}': Is a directory
// INPUT: shard-run: error: cannot read '{{.*}}absent.npy': No such file or directory
// NOINPUT: shard-run: error: cannot read '{{.*}}': it is not a NumPy array
// RTOL: shard-run: error: argument --rtol: '-2' is not a tolerance: expected a non-negative number
// ATOL: shard-run: error: --atol is not allowed with --no-verify, which disables the comparison
// ENGINE: shard-run: error: argument --engine: 'pjr' is not an engine; did you mean 'pjrt'?
// NOTMPI: shard-run: error: --mpi requires --engine=mpi, but the engine is pjrt
// PLATFORM: shard-run: error: --platform requires --engine=pjrt, but the engine is mpi
// WHOSE: shard-run: error: argument --collectives: 'stablehl' is not a dialect of collectives; did you mean 'stablehlo'?
// NOTSHARD: shard-run: error: --collectives=shard requires --engine=mpi: PJRT runs the collectives of StableHLO
// BOTH: shard-run: error: --collectives is not allowed with --pipeline: set the option on a pass of the pipeline
// LAUNCHER: shard-run: error: '{{.*}}' is not an MPI launcher: no such program, or not executable

sdy.mesh @mesh = <["x"=4]>

func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  return %a : tensor<8xf32>
}
