"""Published experiments by name: one module each, whose `rows` compares the paper with ours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING

from robot_dynid.errors import UsageError
from robot_dynid.types import Progress

if TYPE_CHECKING:
    from robot_dynid.robot.model import RobotModel

@dataclass(frozen=True)
class Experiment:
    """A published experiment: ``paper`` by authors and year, ``what`` is repeated of it.

    ``minutes`` of processor time are those of the last run, see docs/papers.
    """

    paper: str
    what: str
    minutes: float


#: experiments by name; the module of one is named the same, with underscores
EXPERIMENTS = {
    'minimal-set-3r': Experiment(
        'Wang et al. 2025', 'minimal set, sequential sinusoids, forward dynamics', 0.1),
    'stanford-arm': Experiment('Lin 1991', 'composite bodies, one joint at a time', 0.1),
    'sequential-sdp': Experiment(
        'sequential optimization', 'feasible parameters link by link and at once, up to 60 joints',
        2.0),
    'elastic-joints': Experiment(
        'Zollo et al. 2014', 'all parameters of arms whose gears deflect, with noise', 19.0),
    'double-encoder': Experiment(
        'Liu et al. 2023', 'three loops with both encoders against least squares', 13.0),
    'double-encoder-robot': Experiment(
        'public recordings', 'two encoders on a KUKA KR300, one run against the other', 9.0),
    'double-encoder-excitation': Experiment(
        'Liu et al. 2023', 'Fourier excitation and its limits, by three objectives', 0.3),
}


#: kinds of row: the paper's figure against ours; our own simulation found again; no judgement
COMPARED, RECOVERED, SHOWN = 'compared', 'recovered', 'shown'
#: how well the figure of a known difference is known, relative
AS_KNOWN = 0.1


@dataclass(frozen=True)
class Row:
    """One figure of a paper and ours: numbers or text, the ``kind`` of row, and the verdict.

    ``ok`` is None exactly in rows that are shown only, whose ``note`` is the reason; ``known``
    marks a difference that is explained in ``note``. ``claim`` is the statement of the paper that
    the row decides, for the table of all papers. Raises ValueError otherwise.
    """

    quantity: str
    paper: float | str | None
    ours: float | str
    kind: str
    ok: bool | None = None
    note: str = ''
    known: bool = False
    claim: str = ''

    def __post_init__(self) -> None:
        if (self.kind == SHOWN) != (self.ok is None) or type(self.ok) not in (bool, type(None)):
            raise ValueError(f'{self.quantity}: a row is judged unless it is shown only')
        if not self.note and (self.kind == SHOWN or self.known):
            raise ValueError(f'{self.quantity}: why is this not judged, or known to differ?')
        if self.known and self.ok is not False:
            raise ValueError(f'{self.quantity}: known to differ, but it agrees')


@dataclass(frozen=True)
class Remark:
    """Comment on a paper that no computation decides: a misprint or an omission."""

    about: str
    text: str


Entry = Row | Remark


def compared(quantity: str, paper: float, ours: float, tolerance: float, note: str = '') -> Row:
    """Return a row that is right when the two differ by at most ``tolerance``."""
    return matched(quantity, paper, float(ours), abs(ours - paper) <= tolerance, note)


def matched(
    quantity: str, paper: float | str | None, ours: float | str, ok: bool, note: str = ''
) -> Row:
    """Return a compared row whose verdict is ``ok``: text, or a statement of the paper."""
    return Row(quantity, paper, ours, COMPARED, bool(ok), note)


def shown(quantity: str, paper: float | str | None, ours: float | str, reason: str) -> Row:
    """Return a row without verdict, for a ``reason``."""
    return Row(quantity, paper, ours, SHOWN, None, reason)


def known(
    row: Row, explanation: str, figure: float | str, within: float = AS_KNOWN
) -> Row:
    """Return ``row``; where it differs as is known, as a known difference with ``explanation``.

    ``figure`` is what ours is known to be, a text or a number within ``within``, relative. It is
    a constant, never a result of the run that it excuses. Another difference is a new one.
    """
    same = row.ours == figure if isinstance(figure, str) else (
        isinstance(row.ours, float) and abs(row.ours - figure) <= within * abs(figure))
    if row.ok is not False or not same:
        return row
    return replace(row, note=f'{row.note}; {explanation}' if row.note else explanation,
                   known=True)


def claimed(row: Row, claim: str) -> Row:
    """Return ``row`` as the one that decides a ``claim`` of the paper."""
    return replace(row, claim=claim)


def published_arm(path: str) -> RobotModel:
    """Return the arm of an installed file; raises UsageError when it is not there."""
    from robot_dynid.robot import locate
    from robot_dynid.robot.robot_file import load_robot

    found = locate.find(path)
    if found is None:
        raise UsageError(f'{path} is not installed; install the package with its config folder')
    return load_robot(found)


def reproduce(name: str, progress: Progress) -> Iterator[Entry]:
    """Run a published experiment and yield its rows and remarks, each once it is known.

    Raises UsageError with the names there are.
    """
    if name not in EXPERIMENTS:
        raise UsageError(f'experiment {name!r}: choose one of {", ".join(EXPERIMENTS)}')
    module = import_module(f'{__name__}.{name.replace("-", "_")}')
    yield from module.rows(progress)
