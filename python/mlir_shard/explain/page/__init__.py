# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An explanation as one HTML file that needs neither network nor server.

Read in this order: `document` puts the file together; `data` turns an explanation into what the page's scripts read,
with each distinct thing once (`tables`); `outline` finds the groups that values are shown in; `assets/` holds the
scripts and the style sheet.
"""
