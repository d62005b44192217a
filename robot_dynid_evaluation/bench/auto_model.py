"""The UR10e with the friction that `identify` chooses for it, and with Coulomb's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from robot_dynid.identified.model import IdentifiedModel

#: inertia [kg m^2] of the rotors on the joint side
ROTORS = (6.4, 5.1, 1.7, 0.48, 0.53, 0.48)
#: joint by joint what `identify` with laws of its own choice makes of the recordings of a UR10e:
#: law, settings, and the values of its parameters
CHOSEN: tuple[tuple[str, dict[str, Any], dict[str, float]], ...] = (
    ('dahl+levelling', {
        'length': 1.22e-4, 'width': 0.01,
        'levelling': {'speed': 0.5343, 'speeds': [-1.435, 1.376]}},
     {'fv': 16.5, 'fc': 14.5, 'f0': 0.06, 'fl': 7.64}),
    ('dahl+load+levelling', {
        'length': 1.422e-4, 'width': 0.01, 'load': {},
        'levelling': {'speed': 0.6331, 'speeds': [-1.574, 1.251]}},
     {'fv': 12.3, 'fc': 11.8, 'f0': -0.17, 'fw': 0.0595, 'fl': 5.68}),
    ('dahl+load+levelling', {
        'length': 1.443e-4, 'width': 0.01, 'load': {},
        'levelling': {'speed': 0.5424, 'speeds': [-1.59, 1.608]}},
     {'fv': 6.82, 'fc': 4.78, 'f0': -0.02, 'fw': 0.0675, 'fl': 2.25}),
    ('maxwell', {'lengths': [2e-5, 6e-5, 6e-4], 'width': 0.01},
     {'fv': 3.75, 'fca': 1.2, 'fcb': 0.552, 'fcc': 1.05, 'f0': 0.0}),
    ('maxwell', {'lengths': [2e-5, 6e-5, 6e-4, 2e-3], 'width': 0.01},
     {'fv': 2.42, 'fca': 1.05, 'fcb': 1.05, 'fcc': 0.736, 'fcd': 0.483, 'f0': 0.0}),
    ('maxwell', {'lengths': [2e-5, 6e-5, 6e-4, 2e-3], 'width': 0.01},
     {'fv': 3.11, 'fca': 0.854, 'fcb': 0.856, 'fcc': 0.558, 'fcd': 0.353, 'f0': 0.01}),
)
#: the same with Coulomb friction
COULOMB: tuple[tuple[str, dict[str, Any], dict[str, float]], ...] = tuple(
    ('coulomb', {'width': 0.005}, {'fv': viscous, 'fc': dry, 'f0': 0.0})
    for viscous, dry in ((20.5, 16.9), (15.6, 17.6), (8.2, 7.0), (3.75, 2.8), (2.42, 3.3),
                         (3.11, 2.6)))
FRICTION = {'auto': CHOSEN, 'coulomb': COULOMB}


#: viscous [N m s/rad] and dry friction [N m] of a peer that knows no other
VISCOUS, DRY = (tuple(values[p] for _, _, values in COULOMB) for p in ('fv', 'fc'))


def ur10e_model(friction: str) -> IdentifiedModel:
    """Return the model with nominal links and ``friction``, a key of FRICTION."""
    from robot_dynid.friction import law_from
    from robot_dynid.identified.model import IdentifiedModel
    from robot_dynid.identified.structure import Structure
    from robot_dynid.robot.robot_file import load_robot
    from robot_dynid.signals.prepare import Preprocessing

    robot, chosen = load_robot('ur10e'), FRICTION[friction]
    structure = Structure.of(
        True, [(name, law_from(name, settings)) for name, settings, _ in chosen], robot.nominal)
    reduction = structure.torque_model(robot).reduction
    known = {f'{p}{j + 1}': value for j, (_, _, values) in enumerate(chosen)
             for p, value in values.items()}
    known |= {f'Ia{j + 1}': value for j, value in enumerate(ROTORS)}
    others = [known[name] for name in reduction.standard[10 * robot.n:]]
    base = reduction.base(np.concatenate([robot.nominal.ravel(), others]))
    return IdentifiedModel(robot, structure, reduction, base, np.zeros_like(base), base,
                           Preprocessing(cutoff=10.0), status='true parameters')
