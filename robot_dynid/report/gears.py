"""Elastic joints as a section: gears, encoders, and a rigid fit of the same data beside."""

from __future__ import annotations

from robot_dynid.document import Row, Section, Table, number
from robot_dynid.identification.gears import ATTENUATED
from robot_dynid.identified.model import IdentifiedModel

TEXT = (
    'A gear transmits K (theta - q) + D (theta_d - q_d), theta and J those of its motor on the '
    'joint side. The deflection is what both encoders differ by, so their steps and noise decide '
    'what is known of K: the noise share is by how much they draw K down in least squares. The '
    'offset is what the motor reads more than the link where nothing bends the gear.')
BESIDE = (
    'The same recordings were fitted as if all joints were rigid, with the lag of the effort that '
    'suits that: errors are root mean squares of the whole effort of each joint on stretches left '
    'out of both fits in turn, by weighted least squares. ')


def elastic_joints(model: IdentifiedModel) -> tuple[Section, ...]:
    """Return one section about elastic joints, none where all are rigid."""
    gears = model.record.gears
    if not gears:
        return ()
    rows = tuple(
        Row((g.joint, _with_std(g.stiffness, g.stiffness_std),
             _with_std(g.damping, g.damping_std), _with_std(g.rotor_inertia, g.rotor_inertia_std),
             f'{1e3 * g.offset:.4g} ± {1e3 * g.offset_std:.2g}',
             number(1e3 * g.deflection_rms, 3), number(1e3 * g.deflection_peak, 3),
             ' / '.join(number(1e3 * step, 3) if step else 'none seen'
                        for step in (g.resolution_link, g.resolution_motor)),
             number(1e3 * g.noise, 2), number(100.0 * g.attenuation, 2)),
            'poor' if g.attenuation > ATTENUATED else '') for g in gears)
    columns = ('joint', 'K [N m/rad]', 'D [N m s/rad]', 'J [kg m²]', 'offset [mrad]',
               'deflection rms [mrad]', 'peak [mrad]', 'steps link / motor [mrad]',
               'noise [mrad]', 'noise share of K [%]')
    beside = model.record.rigid_beside
    stiff = tuple(Row((r.joint, 'elastic' if r.elastic else 'rigid',
                       number(r.rigid_error), number(r.elastic_error),
                       number(r.rigid_error / r.elastic_error, 3),
                       'elasticity matters' if r.matters else 'no more than 10 % apart'))
                  for r in beside)
    matters = ', '.join(r.joint for r in beside if r.matters)
    conclusion = f'Elasticity matters at {matters}.' if matters else \
        'The rigid model predicts these efforts as well; only the elastic one predicts where ' \
        'the links are, and accelerations of links and motors.'
    titles = ('joint', 'fitted as', 'rigid model [N m]', 'elastic model [N m]', 'ratio', '')
    return (Section('Elastic joints', text=f'{TEXT} {BESIDE}{conclusion}', tables=(
        Table(columns, rows, 'Gears and encoders'),
        Table(titles, stiff, 'Rigid beside elastic', words=True))),)


def _with_std(value: float, std: float) -> str:
    return f'{number(value)} ± {number(std, 2)}'
