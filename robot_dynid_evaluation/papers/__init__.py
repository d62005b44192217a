"""Published experiments by name: one module each, whose `rows` compares the paper with ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module

from robot_dynid.errors import UsageError
from robot_dynid.types import Progress

#: what each experiment is; its module is named the same, with underscores
EXPERIMENTS = {
    'minimal-set-3r': 'minimal set, sequential sinusoids, forward dynamics (Wang et al. 2025)',
    'stanford-arm': 'composite bodies, one joint at a time (Lin 1991)',
    'sequential-sdp': 'feasible parameters link by link and at once, up to 9 joints',
    'elastic-joints': 'all parameters of arms whose gears give, with noise (Zollo et al. 2014)',
    'double-encoder': 'three loops with both encoders against least squares (Liu et al. 2023)',
    'double-encoder-excitation': 'Fourier excitation and its limits (Liu et al. 2023), and ours',
}


@dataclass(frozen=True)
class Row:
    """One comparison: numbers or text; ``ok`` None where the paper's figure cannot be compared."""

    quantity: str
    paper: float | str | None
    ours: float | str
    ok: bool | None = None
    note: str = ''


def compared(quantity: str, paper: float, ours: float, tolerance: float, note: str = '') -> Row:
    """Return a row that is right when the two differ by at most ``tolerance``."""
    return Row(quantity, paper, float(ours), bool(abs(ours - paper) <= tolerance), note)


def reproduce(name: str, progress: Progress) -> Sequence[Row]:
    """Run a published experiment; raises UsageError with the names there are."""
    if name not in EXPERIMENTS:
        raise UsageError(f'experiment {name!r}: choose one of {", ".join(EXPERIMENTS)}')
    module = import_module(f'{__name__}.{name.replace("-", "_")}')
    rows: Sequence[Row] = module.rows(progress)
    return rows
