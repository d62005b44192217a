"""effects/counterbalance.py: counterbalances in the model file, the report, the monitor's
momentum, and what exports say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from identified_models import SPRINGS, counterbalanced, random_model
from tolerances import SAME_FORMULA

from robot_dynid import IdentifiedModel, load_robot
from robot_dynid.dynamics.rigid_body import Momentum
from robot_dynid.errors import ModelError
from robot_dynid.report.effects import shown


@pytest.fixture(scope='module')
def model() -> IdentifiedModel:
    return counterbalanced(random_model(load_robot('ur10e')))


def torque(model: IdentifiedModel, q: np.ndarray) -> np.ndarray:
    """Return the torque (K, n) of the springs: sin(x) over the length, by their anchors."""
    found = np.zeros_like(q)
    for spring in SPRINGS:
        x = q[:, spring.joint] + spring.angle
        length = np.hypot(1.0 - spring.ratio * np.cos(x), spring.ratio * np.sin(x))
        found[:, spring.joint] = model.standard[f'cb{spring.joint + 1}'] * np.sin(x) / length
    return found


def test_gravity_and_efforts_have_the_counterbalance_at_any_angle(model: IdentifiedModel) -> None:
    q, qd, qdd = np.random.default_rng(1).uniform(-9.0, 9.0, (3, 200, 6))
    without = replace(model, structure=replace(model.structure, chosen={}))
    assert np.allclose(model.gravity(q) - without.gravity(q), torque(model, q), rtol=SAME_FORMULA)
    assert np.allclose(model.inverse(q, qd, qdd) - without.inverse(q, qd, qdd), torque(model, q),
                       atol=1e-9 * np.abs(model.inverse(q, qd, qdd)).max())
    assert np.abs(torque(model, q)).max() <= max(
        abs(model.standard[f'cb{spring.joint + 1}']) for spring in SPRINGS)


def test_momentum_changes_by_the_counterbalance(model: IdentifiedModel) -> None:
    q, qd = np.random.default_rng(2).uniform(-3.0, 3.0, (2, 50, 6))
    links = model.links.parameters
    rates = [Momentum(model.robot, own)(q, qd)[1] for own in (links, links[:, :10])]
    assert np.allclose(rates[0] - rates[1], -torque(model, q), atol=1e-9 * np.abs(rates[0]).max())


def test_the_model_file_holds_the_counterbalance(model: IdentifiedModel) -> None:
    again = IdentifiedModel.from_yaml(model.to_yaml())
    assert again.structure.chosen['counterbalance'] == SPRINGS
    assert np.array_equal(again.gravity(np.ones(6)), model.gravity(np.ones(6)))
    text = model.to_yaml().rpartition('digest')[0]
    assert 'joint: 1,' in text
    with pytest.raises(ModelError, match=r'counterbalance: a joint is none of the 6'):
        IdentifiedModel.from_yaml(text.replace('joint: 1,', 'joint: 6,', 1))


def test_report_names_counterbalances_with_joint_and_unit(model: IdentifiedModel) -> None:
    words = model.torque_model.words['cb2']
    assert (words.part, words.unit) == (model.joints[1], 'N m')
    (section,) = shown(model)
    assert [row.cells[0] for row in section.tables[0].rows] == [model.joints[1], model.joints[0]]
    assert shown(replace(model, structure=replace(
        model.structure, chosen={}))) == ()


@pytest.mark.parametrize('form', ['to_urdf', 'to_mjcf', 'to_sdf', 'to_solver_parameters'])
def test_exports_without_counterbalances_say_so(model: IdentifiedModel, form: str) -> None:
    warnings = ' '.join(getattr(model, form)().warnings)
    first, second = model.joints[:2]
    assert f'springs at joints, maximum [N m]: {first} 40, {second} 30' in warnings
