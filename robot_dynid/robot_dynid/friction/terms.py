"""Friction as data: elementary terms of the motion of an axis, and parameter names in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_dynid.errors import UsageError
from robot_dynid.kernels.friction import (
    COLUMNS,
    CONSTANT,
    DAHL,
    KIND,
    LEAST,
    LOAD,
    POWER,
    RAMP,
    REFERENCE,
    ROW,
    SCALE,
    SECONDS,
    SLIDING,
    STOP,
    TANH,
    WEIGHT,
    WIDTH,
)
from robot_dynid.types import FloatArray

__all__ = ['CONSTANT', 'DAHL', 'POWER', 'RAMP', 'STOP', 'TANH', 'Parameter', 'Range', 'Term',
           'slid', 'sliding_table', 'table_of', 'unit_of', 'warm', 'words_of']



#: lowest and highest value a law was fitted to; None if unknown
Range = tuple[float, float] | None


@dataclass(frozen=True)
class Term:
    """An elementary torque [N m, N] of one axis with velocity v.

    ``kind`` and its ``scale``: CONSTANT 1; POWER v |v|^(scale - 1); RAMP clip(v / scale, -1, 1)
    and TANH tanh(v / scale), scale in rad/s or m/s; STOP, a spring that slips at the travel
    ``scale`` [rad, m], and DAHL, the Dahl state, both between -1 and 1, in steady sliding a ramp
    of ``width``. Factors, where set: ``weight``; the magnitude of the ``load``; 1 - tanh(|v| /
    ``fade``); exp(-t / ``seconds``), not below ``least``; temperature minus ``reference`` [deg C],
    within ``temperatures``. ``side`` 1 acts forward only, -1 backward only; below the speed
    ``above`` the term is zero; outside ``speeds`` a function of velocity continues along its
    tangent.
    """

    kind: float
    scale: float = 1.0
    weight: float = 1.0
    side: float = 0.0
    above: float = 0.0
    speeds: Range = None
    fade: float = 0.0
    width: float = SLIDING
    load: bool = False
    seconds: float = 0.0
    least: float = 0.0
    reference: float | None = None
    temperatures: Range = None

    def __post_init__(self) -> None:
        """Raise UsageError for a power below one, whose slope at rest is infinite."""
        if self.kind == POWER and self.scale < 1.0:
            raise UsageError(f'friction with the power {self.scale:g} of the speed has an '
                             'infinite slope at rest: give a power from 1 on, or a RAMP or TANH')

    @property
    def odd(self) -> bool:
        """Whether its sign changes with the direction of motion."""
        return self.kind != CONSTANT and self.side == 0.0

    @property
    def viscous(self) -> bool:
        """Whether it is proportional to velocity in at least one direction."""
        return self.kind == POWER and self.scale == 1.0 and self.reference is None

    def row(self, place: int, holds: bool) -> tuple[float, ...]:
        """Return it as a row of the kernels' table that adds to the result at index ``place``."""
        weight, load = (0.0, self.weight) if self.load else (self.weight, 0.0)
        return (place, self.kind, self.scale, weight, load, holds, self.side, self.above,
                *(self.speeds or (-np.inf, np.inf)), self.fade, self.width, self.seconds,
                self.least, np.nan if self.reference is None else self.reference,
                *(self.temperatures or (-np.inf, np.inf)))


@dataclass(frozen=True)
class Parameter:
    """A friction parameter: its torque at value one is the sum of its ``terms``.

    ``nonnegative``: a passive axis has it at zero or above; ``holds``: it holds an axis at rest
    against a load of either sign.
    """

    name: str
    terms: tuple[Term, ...]
    nonnegative: bool = True
    holds: bool = False


def table_of(parameters: Sequence[Parameter]) -> FloatArray:
    """Return the terms (t, COLUMNS) of parameters; each parameter has a row of the result."""
    return np.array([term.row(i, parameter.holds) for i, parameter in enumerate(parameters)
                     for term in parameter.terms]).reshape(-1, COLUMNS)


def warm(terms: FloatArray) -> FloatArray:
    """Return terms (t, COLUMNS) of a warm joint: decaying terms have decayed."""
    decayed = terms.copy()
    share = np.where(terms[:, SECONDS] > 0.0, terms[:, LEAST], 1.0)
    decayed[:, [WEIGHT, LOAD]] *= share[:, None]
    decayed[:, SECONDS] = 0.0
    return decayed


def slid(terms: FloatArray) -> FloatArray:
    """Return terms (t, COLUMNS) in steady sliding: states become ramps."""
    ramps = terms.copy()
    states = terms[:, KIND] >= STOP
    ramps[states, KIND], ramps[states, SCALE] = RAMP, terms[states, WIDTH]
    return ramps


def sliding_table(laws: Sequence[Sequence[Parameter]], widths: FloatArray) -> FloatArray:
    """Return the terms (t, COLUMNS) of the parameters of many axes in steady sliding.

    Each parameter has a row of the result; dry friction is no steeper than the ramps of ``widths``
    (m,) [rad/s, m/s]. Load and temperature terms are dropped.
    """
    terms = slid(warm(table_of([parameter for law in laws for parameter in law])))
    wide = np.repeat(widths, [len(law) for law in laws])[terms[:, ROW].astype(np.int64)]
    steep = (terms[:, KIND] == RAMP) | (terms[:, KIND] == TANH)
    terms[:, SCALE] = np.where(steep, np.maximum(terms[:, SCALE], wide), terms[:, SCALE])
    return np.asarray(terms[np.isnan(terms[:, REFERENCE])])


POWERS = {2.0: 'the square', 3.0: 'the cube'}
WAYS = {1.0: ' forward', -1.0: ' backward'}


def words_of(parameter: Parameter, slides: bool = False) -> str:
    """Return a parameter of a law in words; ``slides`` for a prismatic joint."""
    term, speed = parameter.terms[0], 'm/s' if slides else 'rad/s'
    plain = _plain(parameter, term, slides)
    excess = [other for other in parameter.terms[1:] if other.weight == -term.weight]
    if excess:
        words = f'static friction above the dry one, gone above {excess[0].scale:.3g} {speed}'
    elif term.fade > 0.0:
        gone = max(one.fade for one in parameter.terms)
        words = f'break-away: dry friction at rest above that in motion, gone above ' \
                f'{gone:.3g} {speed}'
    elif term.load:
        words = 'dry friction per torque that the joint transmits'
    elif term.seconds > 0.0:
        words = f'dry friction of the cold joint above that of the warm one, fading over ' \
                f'{term.seconds:.3g} s'
    elif term.reference is not None:
        words = f'change of {plain} with temperature, zero at {term.reference:.3g} deg C'
    else:
        words = plain
    above = f', above {term.above:.3g} {speed}' if term.above > 0.0 else ''
    return f'{words}{WAYS.get(term.side, "")}{above}'


def unit_of(parameter: Parameter, slides: bool = False) -> str:
    """Return the unit of a parameter of a law; ``slides`` for a prismatic joint."""
    term, torque, travel = parameter.terms[0], *(('N', 'm') if slides else ('N m', 'rad'))
    if term.load:
        return '-'
    above, below = [torque], []
    if term.kind == POWER:
        power = '' if term.scale == 1.0 else f'^{term.scale:g}'
        above.append(f's{power}')
        below.append(f'{travel}{power}')
    if term.reference is not None:
        below.append('K')
    bottom = f'({" ".join(below)})' if len(below) > 1 else ''.join(below)
    return f'{" ".join(above)}/{bottom}' if below else torque


def _plain(parameter: Parameter, term: Term, slides: bool) -> str:
    """Return the elementary friction of a term in words."""
    if term.kind == CONSTANT:
        return 'constant offset'
    if term.kind == POWER:
        power = POWERS.get(term.scale, f'power {term.scale:g}')
        return 'viscous friction' if term.scale == 1.0 else \
            f'friction that grows with {power} of the speed'
    if term.kind in (STOP, DAHL):
        return (f'dry friction that builds up over {1e3 * term.scale:.3g} '
                f'{"mm" if slides else "mrad"} of travel')
    if not parameter.holds and term.reference is None:
        return (f'friction that rises up to {term.scale:.3g} {"m/s" if slides else "rad/s"} and '
                'levels off')
    return 'dry (Coulomb) friction'
