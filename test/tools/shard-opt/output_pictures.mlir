// Tools that draw nothing refuse names of pictures and pages before they read input, and name the tools that draw them.
//
// RUN: not shard-opt %s -o %t.svg 2>&1 | FileCheck %s
// RUN: not shard-opt %s -o %t.PNG 2>&1 | FileCheck %s
// RUN: not shard-opt %s -o %t.html 2>&1 | FileCheck %s
// RUN: not shard-opt %s --memory-report=%t.html 2>&1 | FileCheck %s --check-prefix=REPORT
// RUN: not shard-run %s -o %t.svg 2>&1 | FileCheck %s --check-prefix=RESULTS
// RUN: not shard-run %s --communication-report=%t.svg 2>&1 | FileCheck %s --check-prefix=COMMUNICATION
// RUN: not ls %t.svg %t.PNG %t.html
//
// CHECK: shard-opt: error: --output={{.*}}: a module is written as text, or with --emit-bytecode as bytecode;
// CHECK-SAME: shard-explain draws a program, shard-reshard a plan, as a .svg picture or a .html page
// REPORT: shard-opt: error: --memory-report={{.*}}.html: a report is written as a table, or as JSON to a .json file; shard-explain draws
// RESULTS: shard-run: error: --output={{.*}}.svg: results are written to a .npz file, or a single result to a .npy file; shard-explain draws
// COMMUNICATION: shard-run: error: --communication-report={{.*}}.svg: a report is written as a table, or as JSON to a .json file; shard-explain
func.func @main() {
  return
}
