"""What steps of encoders leave unknown: by hand, and said where it is much."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from identified_models import model_with_laws

from robot_dynid.friction import law_from
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import RawLog
from robot_dynid.validation.encoder_steps import change_over, step_warning
from robot_dynid.validation.validate import validate

TRAVEL = 1e-4


@pytest.mark.parametrize(('name', 'settings', 'values', 'expected'), [
    ('maxwell', {'lengths': [2e-5, 6e-4]}, (7.0, 0.8, 1.5, 0.3), 2.0 * 0.8 + 1.5 / 6.0),
    ('maxwell+breakaway', {'lengths': [6e-4]}, (7.0, 1.5, 0.3, -0.4), 1.5 / 6.0 - 0.4 / 0.6),
    ('dahl', {'length': 2e-4}, (7.0, 1.5, 0.3), 2.0 * 1.5 * (1.0 - np.exp(-0.5))),
    ('stribeck', {}, (7.0, 1.5, 0.8, 0.3), 0.0),
])
def test_change_after_a_reversal_is_that_of_the_formula(
    name: str, settings: Mapping[str, object], values: tuple[float, ...], expected: float
) -> None:
    found = change_over(law_from(name, settings), np.array(values), TRAVEL)
    assert found == pytest.approx(expected, rel=1e-9)


def recording(step: float, law: str) -> RawLog:
    robot = load_robot('planar_3r')
    time = 0.01 * np.arange(1000)
    position = 0.4 * np.sin(time[:, None] * [0.7, 1.1, 1.3])
    effort = 5.0 * np.cos(time[:, None] * [0.9, 1.0, 1.2])
    return RawLog(law, robot.joints, time, step * np.round(position / step), None, effort)


@pytest.mark.parametrize(('step', 'law', 'named'), [
    (2e-4, 'dahl', True), (2e-6, 'dahl', False), (2e-4, 'coulomb', False)])
def test_steps_that_hide_presliding_are_named(step: float, law: str, named: bool) -> None:
    settings = {'length': 2e-4} if law == 'dahl' else {}
    model = model_with_laws(load_robot('planar_3r'), [(law, settings)])
    log = recording(step, law)
    warning = step_warning(model, log)
    assert (warning is not None) == named
    if warning is not None:
        whole = 2.0 * model.standard['fc3']
        assert f'joint_3 {whole * (1.0 - np.exp(-1.0)):.2g} of {whole:.2g} within' in warning
        logs = [replace(log, source=name, effort=log.effort * share)
                for name, share in (('one', 1.0), ('other', 1.1))]
        said = [w for w in validate(model, logs).warnings if warning in w]
        assert said == [f'one, other: {warning}']


@pytest.mark.parametrize(('share', 'named'), [(0.3, True), (0.27, False)])
def test_steps_are_named_in_which_a_quarter_of_friction_changes(share: float, named: bool) -> None:
    """Of Dahl friction 1 - exp(-step / length), joint by joint."""
    robot, length = load_robot('planar_3r'), 2e-4
    model = model_with_laws(robot, [('dahl', {'length': length})])
    log, step = recording(1e-6, 'dahl'), share * length
    coarse = log.position.copy()
    coarse[:, 1] = step * np.round(coarse[:, 1] / step)
    whole = 2.0 * model.standard['fc2']
    assert step_warning(model, replace(log, position=coarse)) == ((
        'friction after a reversal changes within one step of the encoder, by [N m or N, rad or '
        f'm]: joint_2 {whole * (1.0 - np.exp(-share)):.2g} of {whole:.2g} within {step:.1e}; '
        'predictions at rest and near reversals are uncertain by that much; record positions with '
        'more digits') if named else None)
