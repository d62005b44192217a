"""Torque ripple as a section: the waves of every joint, and the stiffness they imply."""

from __future__ import annotations

from robot_dynid.document import Row, Section, Table, number, percent
from robot_dynid.identified.model import IdentifiedModel

TEXT = (
    'What the model leaves of the unfiltered effort waves with the position of a joint: gears and '
    'motors make torque that repeats with every turn of theirs. Errors are root mean squares on '
    'stretches of the recordings left out in turn, without and with the waves. A wave is there '
    'only where it lowers them, and where noise of the same spectrum gives one so large with a '
    'probability below 1 in 1000. Delay: by how much the wave comes before the position of its '
    'row, negative where it comes later.')
STIFFNESS = (
    'Torque twists a gear, and shifts the waves of its motor against the encoder behind it. The '
    'stiffness that this implies, with its 95 % interval, is experimental; it holds where the '
    'encoder sits behind the gear, and its orders are known.')


def torque_ripple(model: IdentifiedModel) -> tuple[Section, ...]:
    """Return one section about torque ripple, none where it was not looked for."""
    found = model.record.ripple
    if not found:
        return ()
    silent = ', '.join(one.joint for one in found if not one.waves)
    text = f'{TEXT} {STIFFNESS}' if any(one.stiffness for one in found) else TEXT
    if silent:
        text = f'{text} None beyond chance at {silent}.'
    errors = tuple(Row((one.joint, number(one.before), number(one.after),
                        percent(one.gain), number(len(one.waves)), _stiffness(one.stiffness)))
                   for one in found if one.waves)
    waves = tuple(Row((one.joint, number(wave.order), number(wave.amplitude),
                       f'{1e3 * wave.delay:.2f} ± {1e3 * wave.delay_std:.2f}',
                       f'{wave.chance:.0e}'))
                  for one in found for wave in one.waves)
    tables = () if not errors else (
        Table(('joint', 'without [N m]', 'with [N m]', 'variance explained [%]', 'waves',
               'stiffness [kN m/rad]'), errors, 'Error that is left'),
        Table(('joint', 'waves per turn', 'rms [N m]', 'delay [ms]', 'chance'), waves, 'Waves'))
    return (Section('Torque ripple', text=text, tables=tables),)


def _stiffness(found: tuple[float, float, float] | None) -> str:
    if found is None:
        return ''
    low, value, high = (1e-3 * one for one in found)
    return f'{number(value, 3)} ({number(low, 3)} to {number(high, 3)})'
