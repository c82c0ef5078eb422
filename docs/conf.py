"""How Sphinx builds the site; `build.py` gathers the pages and calls it."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from dpmodels.version import __version__  # noqa: E402

project = "dpmodels"
author = "The dpmodels authors"
project_copyright = author
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_nb",
    "sphinx_copybutton",
    "references",
    "formulas",
    "polish",
]
root_doc = "index"
templates_path = [str(HERE / "templates")]
default_role = "code"
nitpicky = True
today_fmt = "%Y-%m-%d"

# Signatures without types: the docstrings say them in words.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autosummary_generate = True
# Files whose names differ in more than capitals from those of others.
autosummary_filename_map = {"dpmodels.codebook": "dpmodels.codebook_"}
add_module_names = False
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

myst_enable_extensions = ["attrs_block", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
myst_dmath_allow_digits = False
nb_execution_mode = "auto"
nb_execution_in_temp = True
nb_execution_timeout = 300
nb_execution_show_tb = True
nb_output_stderr = "show"
nb_merge_streams = True
if os.environ.get("DPMODELS_REDUCED"):
    nb_execution_excludepatterns = ["vignettes/0[2-9]*", "vignettes/[12]*"]
    # What kind of Python a notebook has is known once it has run.
    suppress_warnings = ["misc.highlighting_failure"]

html_theme = "pydata_sphinx_theme"
html_title = "dpmodels"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_show_sourcelink = False
html_copy_source = False
html_permalinks_icon = "#"
pygments_style = "a11y-high-contrast-light"
html_theme_options = {
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 6,
    "collapse_navigation": True,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "secondary_sidebar_items": ["page-toc"],
    "show_toc_level": 2,
    "show_prev_next": True,
    "search_bar_text": "Search",
    "back_to_top_button": False,
}
html_sidebars = {"index": [], "gallery": [], "gallery/*": []}
html_context = {"default_mode": "auto"}
html_favicon = "static/icon.svg"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
