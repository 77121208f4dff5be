# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The settings of Sphinx for the site of the documentation, which `tools/build-docs` builds from the pages in docs."""

import sys
from pathlib import Path

import mlir_shard

sys.path.insert(0, str(Path(__file__).resolve().parent))

project = "mlir-shard"
author = copyright = "mlir-shard contributors"
version = release = mlir_shard.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "gallery",
    "mlir_lexer",
    "other_pages",
    "public_names",
]
exclude_patterns = ["site", "examples"]

myst_enable_extensions = ["deflist"]
# Links to anchors of pages are those of GitHub.
myst_heading_anchors = 4
nitpicky = True
# Types in signatures may be internal ones, or those of other packages, which cannot be looked up without a network.
nitpick_ignore_regex = [("py:.*", ".*")]

default_role = "code"
# Quotes are parts of defaults and names.
smartquotes = False
# Importing it takes long, and only the signature of one function needs that.
autodoc_mock_imports = ["torch", "torch_mlir.extras"]
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_default_options = {"members": True}
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
# Signatures have the types.
napoleon_attr_annotations = False

# Notebooks are kept without outputs, so the site runs them.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = -1

# For `tools/build-docs --check-external`. Of these pages only scripts know the anchors.
linkcheck_anchors_ignore_for_url = ["https://github.com/.*"]
linkcheck_retries = 3
linkcheck_timeout = 30

html_theme = "furo"
pygments_style, pygments_dark_style = "default", "github-dark"
html_title = f"mlir-shard {version}"
html_show_sphinx = False
templates_path = ["templates"]
# Those of furo, and the switch of versions.
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "versions.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_static_path = ["static"]
html_css_files = ["site.css"]
