"""Published experiments by name: one module each, whose `rows` compares the paper with ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING

from robot_dynid.errors import UsageError
from robot_dynid.types import Progress

if TYPE_CHECKING:
    from robot_dynid.robot.model import RobotModel

#: what each experiment is; its module is named the same, with underscores
EXPERIMENTS = {
    'minimal-set-3r': 'minimal set, sequential sinusoids, forward dynamics (Wang et al. 2025)',
    'stanford-arm': 'composite bodies, one joint at a time (Lin 1991)',
    'sequential-sdp': 'feasible parameters link by link and at once, up to 9 joints',
    'elastic-joints': 'all parameters of arms whose gears give, with noise (Zollo et al. 2014)',
    'double-encoder': 'three loops with both encoders against least squares (Liu et al. 2023)',
    'double-encoder-excitation': 'Fourier excitation and its limits (Liu et al. 2023), and ours',
}


#: kinds of row: the paper's figure against ours; our own simulation found again; no judgement
COMPARED, RECOVERED, SHOWN = 'compared', 'recovered', 'shown'
#: how well the figure of a known difference is known, relative
AS_KNOWN = 0.1


@dataclass(frozen=True)
class Row:
    """One figure of a paper and ours: numbers or text, the ``kind`` of row, and the verdict.

    ``ok`` is None exactly in rows that are shown only, whose ``note`` is the reason; ``known``
    marks a difference that is explained in ``note``. Raises ValueError otherwise.
    """

    quantity: str
    paper: float | str | None
    ours: float | str
    kind: str
    ok: bool | None = None
    note: str = ''
    known: bool = False

    def __post_init__(self) -> None:
        if (self.kind == SHOWN) != (self.ok is None) or type(self.ok) not in (bool, type(None)):
            raise ValueError(f'{self.quantity}: a row is judged unless it is shown only')
        if not self.note and (self.kind == SHOWN or self.known):
            raise ValueError(f'{self.quantity}: why is this not judged, or known to differ?')
        if self.known and self.ok is not False:
            raise ValueError(f'{self.quantity}: known to differ, but it agrees')


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


def known(row: Row, explanation: str, figure: float | None = None) -> Row:
    """Return ``row``; where it differs, as a known difference with its ``explanation``.

    It is known to be ``figure`` within AS_KNOWN, if given; another difference is a new one.
    """
    if row.ok is not False:
        return row
    if figure is not None and not (
            isinstance(row.ours, float) and abs(row.ours / figure - 1.0) <= AS_KNOWN):
        return row
    note = f'{row.note}; {explanation}' if row.note else explanation
    return replace(row, note=note, known=True)


def published_arm(path: str) -> RobotModel:
    """Return the arm of an installed file; raises UsageError when it is not there."""
    from robot_dynid.robot import locate
    from robot_dynid.robot.robot_file import load_robot

    found = locate.find(path)
    if found is None:
        raise UsageError(f'{path} is not installed; install the package with its config folder')
    return load_robot(found)


def reproduce(name: str, progress: Progress) -> Sequence[Row]:
    """Run a published experiment; raises UsageError with the names there are."""
    if name not in EXPERIMENTS:
        raise UsageError(f'experiment {name!r}: choose one of {", ".join(EXPERIMENTS)}')
    module = import_module(f'{__name__}.{name.replace("-", "_")}')
    rows: Sequence[Row] = module.rows(progress)
    return rows
