"""Jinja2 and Plotly: the libraries of the report, which the extra ``report`` brings."""

from robot_dynid.errors import MissingDependency

try:
    import jinja2
    import plotly.graph_objects as go
    from plotly.offline import get_plotlyjs
    from plotly.subplots import make_subplots
except ImportError as error:
    raise MissingDependency.of('a report needs Plotly and Jinja2', 'report') from error

__all__ = ['get_plotlyjs', 'go', 'jinja2', 'make_subplots']
