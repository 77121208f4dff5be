# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An explanation as one HTML file that needs neither network nor server.

Read in this order: `document` assembles the file; `data` converts an explanation to the data that the page's scripts
read, with each distinct value once (`tables`); `outline` finds the groups that values are shown in; `assets/` holds
the scripts and the style sheet.
"""
