"""Sphinx: the pages in this folder, and the public Python names from their docstrings."""

project = 'robot_dynid'
author = 'robot_dynid maintainers'
extensions = ['myst_parser', 'sphinx.ext.autodoc', 'sphinx.ext.mathjax']
source_suffix = {'.md': 'markdown', '.rst': 'restructuredtext'}
myst_enable_extensions = ['dollarmath']
myst_heading_anchors = 2
autodoc_typehints = 'description'
autodoc_member_order = 'bysource'
html_theme = 'alabaster'
