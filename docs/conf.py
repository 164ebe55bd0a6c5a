"""Sphinx settings: `make docs` builds offline into docs/_build, warnings are errors."""

import covey

project = "covey"
author = "the covey developers"
version = release = covey.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.mathjax", "numpydoc"]
html_theme = "pydata_sphinx_theme"
html_title = "covey"
exclude_patterns = ["_build"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
myst_heading_anchors = 3
# ref.ref: scikit-learn's inherited docstrings point into its own guide
suppress_warnings = ["myst.xref_missing", "myst.header", "ref.ref"]
# parameters of compiled and re-exported names are documented where they are defined
add_module_names = False
