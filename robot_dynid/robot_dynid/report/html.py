"""The page: a report as one HTML file that needs nothing else, neither network nor other files."""

from __future__ import annotations

import base64
import gzip
import json
from functools import cache
from pathlib import Path

from robot_dynid.document import Report, Section, Table, plain_document
from robot_dynid.errors import MissingDependency, printable
from robot_dynid.files import atomic_write
from robot_dynid.report.texts import TERMS, without_folders

try:
    import jinja2
    from plotly.offline import get_plotlyjs
except ImportError as error:
    raise MissingDependency.of('a report needs Plotly and Jinja2', 'report') from error

TEMPLATES = Path(__file__).parent / 'templates'
#: in the head of every report; no other file is replaced by one
MARK = b'<meta name="generator" content="robot_dynid">'
#: the fastest level of compression within one per cent of the best
COMPRESSION_LEVEL = 5


@cache
def packed_plotly() -> str:
    """Return plotly.js as the page embeds it: gzip, base64; browsers since 2023 unpack it."""
    source: str = get_plotlyjs()
    packed = gzip.compress(source.encode(), COMPRESSION_LEVEL, mtime=0)
    return base64.b64encode(packed).decode('ascii')


def render(report: Report) -> str:
    """Return the report as one HTML document."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, trim_blocks=True,
        lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    environment.filters['without_folders'] = without_folders
    style, script = ((TEMPLATES / name).read_text(encoding='utf-8')
                     for name in ('report.css', 'report.js'))
    page: str = environment.get_template('report.html.j2').render(
        report=report, style=style, script=script, plotly=packed_plotly(),
        figures=_figures(report), terms=glossary(report))
    return printable(page)


def glossary(report: Report) -> Section:
    """Return the TERMS that a report uses."""
    text = str(plain_document(report)).lower()
    rows = [(term, meaning) for term, meaning in TERMS.items() if term.lower() in text]
    return Section('Terms', tables=(Table((), rows, words=True),))


def _figures(report: Report) -> str:
    """Return the figures of all sections, in their order, as JSON within a script element."""
    drawn = [{'spec': figure.spec, 'link': figure.link}
             for section in report.sections for figure in section.figures]
    return json.dumps(drawn, separators=(',', ':')).replace('<', '\\u003c')


def write_report(report: Report, path: str | Path, inside: Path | None = None) -> None:
    """Write the report to ``path``, in place of an earlier report only.

    With ``inside``, the file must lie below that folder. Raises UsageError for a path where
    something else is, DynIdError when the file cannot be written.
    """
    atomic_write(path, render(report), MARK, inside)
