// RUN: not shard-explain %s %%q 2>&1 | FileCheck %s --check-prefix=VALUE
// RUN: not shard-explain %s '@f:%%a' 2>&1 | FileCheck %s --check-prefix=FUNCTION
// RUN: not shard-explain %s --what-if %%a 2>&1 | FileCheck %s --check-prefix=CHANGE
// RUN: not shard-explain %s --what-if '%%a: [{"z"}]' 2>&1 | FileCheck %s --check-prefix=AXIS
// RUN: not shard-explain %t.absent 2>&1 | FileCheck %s --check-prefix=ABSENT
// RUN: echo 'func.func @f(' > %t.mlir
// RUN: not shard-explain %t.mlir 2>&1 | FileCheck %s --check-prefix=PARSE
// RUN: not shard-explain %s --form=json 2>&1 | FileCheck %s --check-prefix=FLAG
// RUN: not shard-explain %s -o %t.absent/x.json 2>&1 | FileCheck %s --check-prefix=OUTPUT
// RUN: not shard-explain %s -o %t.png 2>&1 | FileCheck %s --check-prefix=PICTURE
// RUN: not shard-explain %s -o %t.webp 2>&1 | FileCheck %s --check-prefix=PICTURE
// RUN: not shard-explain %s --format=text -o %t.htm 2>&1 | FileCheck %s --check-prefix=FORMAT
// RUN: not ls %t.png
// RUN: not shard-explain %s -o %t.html --what-if '%%a: [{"y"}]' 2>&1 | FileCheck %s --check-prefix=PAGE
// RUN: printf '[links.TYPO]\nbandwidth = 1e9\n' > %t.toml
// RUN: not shard-explain %s --costs %t.toml 2>&1 | FileCheck %s --check-prefix=LINK

sdy.mesh @mesh = <["x"=2, "y"=2]>

func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  return %a : tensor<8xf32>
}

// VALUE: shard-explain: error: no tensor matches '%q': a tensor is selected by {{.*}}; results of calls and arguments of loops are selected by their line
// FUNCTION: shard-explain: error: unknown function '@f'; values of called functions are selected in their callers: @main
// CHANGE: shard-explain: error: '%a' is not a value and its sharding, such as '%w: [{}, {"model"}]'
// AXIS: shard-explain: error: '[{"z"}]' for %a, tensor<8xf32>: dim 0: unknown axis "z": the mesh has "x", "y"
// ABSENT: shard-explain: error: cannot open input file
// PARSE: .mlir:{{[0-9]+}}:{{[0-9]+}}: error: 
// FLAG: shard-explain: error: unknown option '--form'; did you mean '--format'?
// PICTURE: shard-explain: error: --output={{.*}}: an explanation is written to a .json, .html or .svg file, or as text to any other file; shard-explain draws a program, shard-reshard a plan, as a .svg picture or a .html page
// FORMAT: shard-explain: error: --output={{.*}}.htm: --format=text does not produce such a file; shard-explain draws
// PAGE: shard-explain: error: --what-if requires text or JSON: a page or a picture shows a single program
// LINK: shard-explain: error: costs: cost model {{.*}}.toml: links.TYPO: not an axis of the mesh, which has "x", "y"
// OUTPUT: shard-explain: error: cannot open output file
