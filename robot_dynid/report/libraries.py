"""Jinja2 and Plotly: the libraries of the report, which the extra ``report`` brings."""

from robot_dynid.errors import MissingDependency

try:
    import jinja2
    from plotly.offline import get_plotlyjs
except ImportError as error:
    raise MissingDependency.of('a report needs Plotly and Jinja2', 'report') from error

__all__ = ['get_plotlyjs', 'jinja2']
