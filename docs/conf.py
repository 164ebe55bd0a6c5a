"""Sphinx settings: `make docs` builds offline into docs/_build, warnings are errors."""

import sys
from pathlib import Path

import covey

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

project = "covey"
author = "the covey developers"
version = release = covey.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "shown_output",
    "thumbnails",
]
html_theme = "pydata_sphinx_theme"
html_title = "covey"
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["covey.css"]
html_show_sourcelink = False
html_math_renderer = "mathml"
html_theme_options = {
    "navigation_with_keys": False,
    "header_links_before_dropdown": 7,  # up to the API reference
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
# pages without a section of their own leave the room to the text
ALONE = ("index", "why", "api", "install", "quickstart", "cli", "scale", "coming_from", "reticulate", "faq", "glossary")
html_sidebars = {page: [] for page in ALONE}
copyright = "the covey developers, BSD 3-clause"
exclude_patterns = ["_build", "gallery/GALLERY_HEADER.rst"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
myst_heading_anchors = 3
# ref.ref: scikit-learn's inherited docstrings point into its own guide
suppress_warnings = ["myst.xref_missing", "myst.header", "ref.ref"]
# parameters of compiled and re-exported names are documented where they are defined
add_module_names = False
toc_object_entries_show_parents = "hide"
default_role = "literal"

# pages whose Python is run while they are built, its output shown below it
shown_output_pages = ("guide/", "quickstart", "report")

sphinx_gallery_conf = {
    "examples_dirs": [str(HERE.parent / "examples")],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"/plot_",
    "within_subsection_order": "reading_order.reading_order",
    "download_all_examples": False,
    "show_signature": False,
    "capture_repr": (),
    "remove_config_comments": True,
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("covey",),
    "image_srcset": ["2x"],
    "thumbnail_size": (832, 582),
    "only_warn_on_example_error": False,
    "abort_on_example_error": True,
}
