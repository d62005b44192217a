"""Sphinx: the pages in this folder, the public Python names, and the interface of the nodes."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import ros_reference

project = 'robot_dynid'
author = 'robot_dynid maintainers'
extensions = ['myst_parser', 'sphinx.ext.autodoc', 'sphinx.ext.mathjax']
source_suffix = {'.md': 'markdown', '.rst': 'restructuredtext'}
myst_enable_extensions = ['dollarmath']
myst_heading_anchors = 3
autodoc_typehints = 'description'
autodoc_member_order = 'bysource'
html_theme = 'alabaster'
html_theme_options = {'page_width': '70em', 'sidebar_width': '16em'}


def setup(app):
    """Put the reference of the ROS interface into its page."""
    app.connect('source-read', ros_reference.fill)
