"""identified/comparison.py: friction that changed is named, and what days differ by is not."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from everyday_arm import known_model

from robot_dynid import identify, load_log, load_robot
from robot_dynid.estimation.uncertainty.between_recordings import friction_scales
from robot_dynid.identified.comparison import (
    FRICTION,
    INERTIA,
    USUAL_SPREAD,
    WEIGHT,
    Difference,
    differences,
    judged,
)
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.record import FitRecord
from robot_dynid.identified.trained import Trained
from robot_dynid.types import RawLog, frozen
from robot_dynid.validation.validate import validate

#: rise of the friction of one joint, the least share of pairs in which it is to be named, and the
#: largest of unchanged pairs in which anything may be
RISE, FOUND, FALSE = 0.15, 0.9, 0.1
#: windows of the only recording of the TX40
TX40_WINDOWS = '[:2.5]', '[2.6:5.1]', '[5.2:]'

#: factors on viscous and dry friction, and whether they are seen best in friction as a whole
CASES = ((0.7, 1.0, True), (1.5, 0.9, True), (1.0, 1.5, False), (1.3, 0.9, False))


def exact(spread: float = 1e-4, std: float = 1e-6) -> IdentifiedModel:
    """Return a model of three joints that are known, and differ by ``spread`` between days."""
    speed = np.tile([-2.0, 2.0], (3, 1))
    return replace(known_model(spread, std), trained=Trained(
        {'position': np.tile([-1.0, 1.0], (3, 1)), 'velocity': speed}))


def worn(model: IdentifiedModel, joint: int, share: float) -> IdentifiedModel:
    """Return a model with a ``share`` more viscous and dry friction in one joint."""
    more = np.array([1.0 + share * (name in (f'fv{joint + 1}', f'fc{joint + 1}'))
                     for name in model.names])
    return replace(model, values=frozen(model.values * more))


def named(first: IdentifiedModel, second: IdentifiedModel) -> set[tuple[str, str]]:
    return {(one.joint, one.effect) for one in differences(first, second) if one.changed}


def of(first: IdentifiedModel, second: IdentifiedModel, effect: str = FRICTION) -> Difference:
    """Return the difference of an effect on joint_2."""
    return next(one for one in differences(first, second)
                if (one.joint, one.effect) == ('joint_2', effect))


@pytest.mark.parametrize('share', [RISE, -RISE])
def test_change_by_one_factor_is_named_at_its_joint_with_its_sign(share: float) -> None:
    first = replace(exact(), record=FitRecord())
    second = worn(first, 1, share)
    assert named(first, second) == {('joint_2', FRICTION)}
    one = of(first, second)
    assert one.most / one.before == pytest.approx(share, rel=1e-6)
    assert one.size / one.before == pytest.approx(abs(share), rel=1e-6)


@pytest.mark.parametrize(('spread', 'viscous', 'dry'), [(0.02, 0.02, 0.02), (
    None, *USUAL_SPREAD.values())])
def test_interval_is_that_of_other_days(
    spread: float | None, viscous: float, dry: float
) -> None:
    """Viscous and dry friction of each day tell the factor by the inverse of their variances."""
    first = exact(spread or 0.0)
    if spread is None:
        first = replace(first, record=FitRecord())
    one = of(first, worn(first, 1, RISE))
    deviation = np.sqrt((1.0 + (1.0 + RISE) ** 2) / (viscous ** -2 + dry ** -2))
    assert one.half_interval / one.before == pytest.approx(1.96 * deviation, rel=0.01)


def test_change_that_days_differ_by_is_not_named() -> None:
    alike, unlike = exact(1e-4), exact(0.03)
    assert named(alike, worn(alike, 1, 0.03)) == {('joint_2', FRICTION)}
    assert not named(unlike, worn(unlike, 1, 0.03))
    single = replace(unlike, record=FitRecord())
    assert of(unlike, single).half_interval == of(single, unlike).half_interval == \
        of(unlike, unlike).half_interval, 'the model of more days tells what days differ by'


@pytest.mark.parametrize(('freedoms', 'quantile'), [
    ((7.0, 7.0), 2.1448), ((7.0, 3.0), 2.4567), ((2.0, 2.0), 4.3027), ((2.0, 7.0), 4.3027)])
def test_degrees_of_freedom_are_those_of_both_models(
    freedoms: tuple[float, float], quantile: float
) -> None:
    """Quantiles of Student's distribution of 14, 5.9 and 2 degrees."""
    model = exact(std=0.02)
    one, other = (replace(model, record=replace(
        model.record, degrees_of_freedom=freedom)) for freedom in freedoms)
    assert of(one, other, WEIGHT).half_interval / of(model, model, WEIGHT).half_interval == \
        pytest.approx(quantile / 1.96, rel=1e-3)


@pytest.mark.parametrize(('viscous', 'dry', 'whole'), CASES)
def test_friction_as_a_whole_counts_thirteen_tenths_of_a_state(
    viscous: float, dry: float, whole: bool
) -> None:
    """It is the factor on the mean curve by generalised least squares, times its RMS.

    Estimates count with four mean variances more in each state.
    """
    first = exact(0.03, 0.1)
    second = replace(first, values=frozen(first.values * np.array([
        {'fv2': viscous, 'fc2': dry}.get(name, 1.0) for name in first.names])))
    speed = np.resize([0.2, 0.6, 1.2, 2.0], 24)
    columns, curves, own, daily = np.stack([speed, np.ones(24)]), [], 0.0, 0.0
    for model in (first, second):
        places = [model.names.index(name) for name in ('fv2', 'fc2')]
        curves.append(model.values[places] @ columns)
        own = own + columns.T @ np.diag(model.std[places]**2) @ columns
        daily = daily + columns.T @ np.diag((0.03 * model.values[places])**2) @ columns
    curve, change = 0.5 * (curves[0] + curves[1]), curves[1] - curves[0]
    size = np.sqrt(np.mean(curve**2))
    row = np.linalg.solve(
        own + daily + (4.0 * np.trace(own) / 24.0 + 1e-9 * size**2) * np.eye(24), curve)
    rows = np.vstack([np.eye(24), row * size / (row @ curve)])
    deviation = np.sqrt(np.einsum('ri,ij,rj->r', rows, own + daily, rows))
    ratio = np.abs(rows @ change) / deviation
    k = 24 if whole else int(np.argmax(ratio[:24]))
    share = ratio[:24].max() / ratio[24]
    assert 1.2 < share < 1.3 if whole else 1.3 < share < 1.4
    found = of(first, second)
    assert (found.most, found.half_interval) == pytest.approx(
        (rows[k] @ change, 1.96 * deviation[k]), rel=1e-4)


def test_probabilities_are_those_of_draws() -> None:
    first = exact()
    assert of(first, worn(first, 1, RISE)).probability == 1.0 / 20_001.0
    assert of(first, first).probability == 1.0


@pytest.mark.parametrize(('chances', 'expected'), [
    ({WEIGHT: 0.0249}, {WEIGHT}), ({WEIGHT: 0.0251}, set()), ({FRICTION: 0.0999}, {FRICTION}),
    ({FRICTION: 0.1001}, set()), ({INERTIA: 0.0249}, {INERTIA}), ({INERTIA: 0.0251}, set()),
    # the second of three may have two thirds of what the last has, and lets the first through
    ({WEIGHT: 0.0166, FRICTION: 0.0666, INERTIA: 0.5}, {WEIGHT, FRICTION}),
    ({WEIGHT: 0.0167, FRICTION: 0.0667, INERTIA: 0.5}, set()),
    ({WEIGHT: 0.0249, FRICTION: 0.0999, INERTIA: 0.0249}, {WEIGHT, FRICTION, INERTIA})])
def test_one_finding_in_twenty_is_false(chances: dict[str, float], expected: set[str]) -> None:
    """Friction changes more often, so it counts four times as much as weight and inertia."""
    found = judged([Difference('joint_1', effect, 'N m', 1.0, 1.0, 1.0, 1.0, chance, False)
                    for effect, chance in chances.items()])
    assert {one.effect for one in found if one.changed} == expected
    assert judged([]) == ()


def raised(model: IdentifiedModel, log: RawLog, joint: int) -> RawLog:
    """Return a recording with RISE times the friction of ``joint`` by ``model`` added."""
    scales = friction_scales(model.torque_model, model.values)
    assert scales is not None and log.effort is not None
    of_joint = [axis == joint and kind in USUAL_SPREAD
                for kind, axis in zip(scales.kinds, scales.axes, strict=True)]
    more = replace(model, values=frozen(
        model.values + RISE * scales.directions[:, of_joint].sum(axis=1)))
    before, after = (validate(one, [log]).traces[0] for one in (model, more))
    effort = log.effort.copy()
    effort[:, joint] += np.interp(
        log.time, before.time, (after.predicted - before.predicted)[:, joint]
    ) / model.robot.torque_factors[joint]
    return replace(log, effort=effort)


@pytest.mark.soak
def test_raised_friction_of_real_arms_is_named(shared_data: Path) -> None:
    """The UR10e by pairs of which at least one recording chose nothing, the TX40 by windows."""
    recordings = sorted((path for folder in ('train', 'test')
                         for path in (shared_data / 'ur10e' / folder).iterdir()),
                        key=lambda path: path.name)
    whole = shared_data / 'tx40' / 'exciting.csv.gz'
    arms = {'ur10e': list(map(str, recordings)),
            'tx40': [f'{whole}{window}' for window in TX40_WINDOWS]}
    for name, paths in arms.items():
        robot = load_robot(name)
        logs = [load_log(path, robot) for path in paths]
        models = [identify(robot, [log]).model for log in logs]
        more = [[identify(robot, [raised(model, log, joint)]).model for joint in range(robot.n)]
                for model, log in zip(models, logs, strict=True)]
        pairs = [(a, b) for a, b in permutations(range(len(logs)), 2)
                 if name == 'tx40' or a % 2 or b % 2]
        seen = [(a % 2 + b % 2, (joint, FRICTION) in named(models[a], one)) for a, b in pairs
                for joint, one in zip(robot.joints, more[b], strict=True)]
        false = [bool(named(models[a], models[b])) for a, b in pairs if a < b]
        found = [one for _, one in seen]
        both = [one for unseen, one in seen if unseen == 2]
        sys.stdout.write(f'{name}: {RISE:+.0%} found in {sum(found)} of {len(found)}, of both '
                         f'unseen {sum(both)} of {len(both)}; false in {sum(false)} of '
                         f'{len(false)}\n')
        assert np.mean(false) <= FALSE
        assert name == 'tx40' or np.mean(found) >= FOUND
