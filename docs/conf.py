"""How the documentation is built: `make docs`. Nothing is fetched: no remote scripts, fonts or inventories."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

from coterie import __version__

project = "Coterie"
author = "The Coterie authors"
copyright = "The Coterie authors"
release = version = __version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "plain_docstrings", "command_line", "http_interface"]
exclude_patterns = ["_build"]

# The gallery: notebooks as they are saved, with their pictures; the tests execute them.
nb_execution_mode = "off"

# Links to headings work on GitHub and here alike.
myst_heading_anchors = 4
myst_enable_extensions: list[str] = []
suppress_warnings: list[str] = []

nitpick_ignore = [("py:class", "PairAnalysis"), ("py:class", "ReplayAnalysis")]  # what `Grouping` is made from
nitpick_ignore += [
    ("py:class", f"coterie.{name}") for name in ("campaign.service.open_campaigns.OpenCampaigns", "web.webhooks.Timing")
]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
toc_object_entries_show_parents = "hide"

# Types of libraries whose inventories are not fetched, and of the package's own inside, which have no page.
nitpick_ignore_regex = [
    ("py:.*", r"(np|numpy|matplotlib|pandas|fastapi|collections|concurrent|os|pathlib|uvicorn)\..*"),
    ("py:class", r"(FloatArray|IntArray|NDArray|Axes|FastAPI|Path|PlainNoise|Trial|Past|.*\._Dicts|_Dicts)"),
    ("py:class", r".*FurtherOptions"),
    ("py:class", r"(.*\.AddedNoise|.*\.trials\.World|Pool)"),
    ("py:class", r"(Executor|Handover|.*\.Invitations|.*\.PanelPull|.*\.Features|.*\.Cells)"),
    ("py:class", r".*\.(Attachments|Signals|Webhooks)"),
]

html_theme = "furo"
html_title = "Coterie"
html_static_path = ["_static"]
html_css_files = ["coterie.css"]
html_copy_source = False
smartquotes = False
html_show_sphinx = False
pygments_style = "friendly"
