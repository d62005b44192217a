"""estimation/friction_selection/second_motion.py: break-away is kept if other motion shows it."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from motions import five_sines

from robot_dynid.effects import RigidLinks, axes_of
from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.estimation.friction_selection.second_motion import (
    remove_breakaway,
    validate_breakaway,
)
from robot_dynid.estimation.friction_selection.selection_data import FrictionData
from robot_dynid.friction import AxisMotion, Coulomb, law_from
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import Samples

COULOMB = 'coulomb', Coulomb(0.05)
FALLING = 'coulomb+breakaway', law_from('coulomb+breakaway', {
    'width': 0.05, 'breakaway': {'speed': 0.3}})
ROBOT = load_robot('planar_3r')


@cache
def model() -> TorqueModel:
    return TorqueModel.of(ROBOT, (RigidLinks(ROBOT),))


def recorded(seed: int, *breakaway: float, filtered: float = 1.0) -> Samples:
    """Return 6 s in which joints have so much break-away friction [N m]; a share of it in the
    filtered effort."""
    rng, time = np.random.default_rng(seed), 0.01 * np.arange(600)
    q, qd, qdd = five_sines(rng, time, 3)
    noise = 0.05 * rng.normal(size=q.shape)
    efforts = []
    for share in (filtered, 1.0):
        effort = noise.copy()
        for j, size in enumerate(breakaway):
            effort[:, j] += np.array([2.0, 3.0, 0.4, share * size]) @ FALLING[1].columns(
                AxisMotion(time, q[:, j], qd[:, j]))
        efforts.append(effort)
    return Samples(ROBOT.joints, time, q, qd, qdd, *efforts)


@pytest.mark.parametrize(('first', 'second', 'filtered', 'kept'), [
    ((1.5, -1.0, 0.0), (1.5, 1.0, 0.0), 1.0, [True, False, False]),
    ((1.5, 1.5, 1.0), (1.5, 1.5, -1.0), 1.0, [True, True, False]),
    ((1.5, 1.5, 1.5), (1.5, 1.5, 1.5), -1.0, [False, False, False])])  # raw effort decides
def test_breakaway_is_kept_on_axes_where_another_motion_shows_it(
    first: tuple[float, ...], second: tuple[float, ...], filtered: float, kept: list[bool]
) -> None:
    data = FrictionData(model(), axes_of(ROBOT), [
        recorded(1, *first, filtered=filtered), recorded(2, *second, filtered=filtered)])
    laws = [FALLING] * 3
    plain = [remove_breakaway(FALLING, COULOMB[1])] * 3
    assert [law == FALLING for law in validate_breakaway(data, laws, plain, None)] == kept
    fixed = validate_breakaway(data, laws, [plain[0], None, None], None)
    assert [law == FALLING for law in fixed] == [kept[0], True, True]
    assert {law[0] for law in validate_breakaway(data, laws, plain, None)} <= {
        'coulomb', 'coulomb+breakaway'}


def test_laws_without_breakaway_are_not_refitted() -> None:
    laws = [COULOMB, FALLING, COULOMB]
    found = validate_breakaway(FrictionData(None, None, []), laws, [None] * 3, None)  # type: ignore[arg-type]
    assert found == laws
