"""Parameters of friction laws in words and with their units, read from their tables of terms."""

from __future__ import annotations

from robot_dynid.friction.terms import CONSTANT, DAHL, POWER, STOP, Parameter, Term

POWERS = {2.0: 'the square', 3.0: 'the cube'}
WAYS = {1.0: ' forward', -1.0: ' backward'}


def words_of(parameter: Parameter, slides: bool = False) -> str:
    """Return the name in words of a parameter of a law; ``slides`` for a prismatic joint."""
    term, speed = parameter.terms[0], 'm/s' if slides else 'rad/s'
    plain = _plain(parameter, term, slides)
    excess = [other for other in parameter.terms[1:] if other.weight == -term.weight]
    if excess:
        found = f'static friction above the dry one, gone above {excess[0].scale:.3g} {speed}'
    elif term.fade > 0.0:
        found = f'break-away: dry friction at rest above that in motion, gone above ' \
                f'{term.fade:.3g} {speed}'
    elif term.load:
        found = 'dry friction per torque that the joint transmits'
    elif term.seconds > 0.0:
        found = f'dry friction of the cold joint above that of the warm one, fading over ' \
                f'{term.seconds:.3g} s'
    elif term.reference is not None:
        found = f'change of {plain} with temperature, zero at {term.reference:.3g} deg C'
    else:
        found = plain
    above = f', above {term.above:.3g} {speed}' if term.above > 0.0 else ''
    return f'{found}{WAYS.get(term.side, "")}{above}'


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
    """Return the elementary friction of a term."""
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
