"""robot_dynid_evaluation/bench/feedforward.py: the loop of the example controller, compiled with
the C code of an arm, on that arm."""

from __future__ import annotations

import subprocess
from dataclasses import replace

import numpy as np
import pytest
from compiled_c import compiler
from identified_models import AUTO, model_with_laws

from robot_dynid import load_robot
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.trained import Trained
from robot_dynid.simulation.truth import load_truth
from robot_dynid.types import FloatArray
from robot_dynid_evaluation.bench.feedforward import (
    BLIND,
    OFF,
    PERIOD,
    RUNNING,
    FeedforwardLoop,
    factors,
    gains,
    scaled_model,
    track,
)

NONE_WRONG, NOT_FINITE, STALE, OUT_OF_RANGE = range(4)
N, STEP = 6, PERIOD
START = np.array([0.3, -1.2, 1.5, -1.8, -1.57, 0.2])
STILL, NONE = np.zeros(N), np.full(N, np.nan)
STIFFNESS = np.array([2000.0, 2000.0, 1500.0, 500.0, 500.0, 300.0])
DAMPING = STIFFNESS / 15.0
LIMIT = np.array([330.0, 330.0, 150.0, 56.0, 56.0, 56.0])
RATE = np.full(N, 1e9)
#: range of the recordings, and what the settings allow beyond it [rad]
RANGE, MARGIN = 3.0, 0.1
TRAINED = Trained({'position': np.array([[-RANGE, RANGE]] * N)})


class Loop:
    """The compiled loop, and the simulated arm that it moves."""

    def __init__(self, model: IdentifiedModel, compiled: FeedforwardLoop) -> None:
        self.model, self._compiled = model, compiled
        self.q, self.qd = START.copy(), STILL.copy()

    def activate(self, q: FloatArray = START, limit: FloatArray = LIMIT, rate: FloatArray = RATE,
                 drives_hold: bool = False) -> bool:
        """Activate it, as feed-forward alone where the drives hold the arm."""
        gains = None if drives_hold else (STIFFNESS, DAMPING)
        fault = self._compiled.activate(q, limit, rate, gains=gains)
        assert fault == self.fault
        return fault == NONE_WRONG

    @property
    def fault(self) -> int:
        """What switched it off."""
        return self._compiled.fault

    @property
    def effort(self) -> FloatArray:
        """Efforts of the last cycle (n,) [N m]."""
        return self._compiled.effort

    def update(self, *reference: FloatArray, q: FloatArray | None = None) -> int:
        """Compute the effort of one cycle; ``q`` in place of the position of the arm."""
        full = [*reference, *(STILL, STILL)][:3] if reference else [NONE, NONE, NONE]
        return self._compiled.update(self.q if q is None else q, self.qd, *full)

    def move(self) -> None:
        """Let the arm move for one cycle."""
        position, velocity = self.model.rollout(self.q, self.qd, self.effort[None, None], STEP)
        self.q, self.qd = position[0, 0].copy(), velocity[0, 0].copy()

    def run(self, seconds: float, *reference: FloatArray) -> None:
        """Move under the loop."""
        for _ in range(round(seconds / STEP)):
            assert self.update(*reference) == RUNNING
            self.move()

    @property
    def away(self) -> float:
        """Distance of the joints from where they began [rad]."""
        return float(np.abs(self.q - START).max())


@pytest.fixture(scope='module')
def library(tmp_path_factory) -> tuple[IdentifiedModel, FeedforwardLoop]:
    for name in ('gcc', 'g++'):
        compiler(name)
    model = replace(model_with_laws(load_robot('ur10e'), AUTO), trained=TRAINED)
    return model, FeedforwardLoop(model, tmp_path_factory.mktemp('loop'))


@pytest.fixture
def loop(library) -> Loop:
    return Loop(*library)


def test_the_controller_holds_an_arm_at_rest(loop) -> None:
    assert loop.activate()
    loop.run(1.0)
    assert loop.away < 1e-4  # the offset of friction ramps in
    loop.effort[:] = 0.0  # without the loop it falls
    for _ in range(300):
        loop.move()
    assert loop.away > 0.1


def test_the_first_effort_is_the_weight_and_the_rest_ramps_in(loop) -> None:
    assert loop.activate()
    weight = loop.model.gravity(START)
    assert loop.update() == RUNNING
    np.testing.assert_allclose(loop.effort, weight, rtol=1e-12, atol=1e-12)
    assert loop.activate()
    efforts = []
    for _ in range(600):  # a reference that is off; the arm held in place
        assert loop.update(START + 0.1) == RUNNING
        efforts.append(loop.effort.copy())
    steps = np.diff([weight, *efforts], axis=0)
    assert np.abs(steps).max() < 0.1 * STIFFNESS.max() * STEP / 0.5 * 1.01
    offset = loop.model.friction(START[None], STILL[None])[0]
    held = np.clip(weight + offset + 0.1 * STIFFNESS, -LIMIT, LIMIT)
    np.testing.assert_allclose(efforts[-1], held, rtol=0.0, atol=1e-9)


def test_a_heavier_arm_sags_by_what_stiffness_allows(loop) -> None:
    light = loop.model
    loop.model = model_with_laws(light.robot.with_nominal(1.2 * light.robot.nominal), AUTO)
    assert loop.activate()
    loop.run(1.5)
    missing = np.abs(loop.model.gravity(START) - light.gravity(START))
    assert loop.away < 1.2 * (missing / STIFFNESS).max()


def swing(time: float) -> list[FloatArray]:
    """Return position, velocity, acceleration (n,) of a motion that begins at rest."""
    w, size = 3.0, np.linspace(0.2, 0.4, N)
    return [START + size * (1.0 - np.cos(w * time)), size * w * np.sin(w * time),
            size * w**2 * np.cos(w * time)]


def test_feedforward_controller_follows_by_the_model_not_by_its_error(loop) -> None:
    assert loop.activate()
    loop.run(0.6)
    errors, springs = [], []
    for k in range(1500):
        reference = swing(k * STEP)
        assert loop.update(*reference) == RUNNING
        loop.move()
        errors.append(np.abs(swing((k + 1) * STEP)[0] - loop.q).max())
        springs.append(np.abs(loop.effort - loop.model.gravity(loop.q)).max())
    assert max(errors) < 4e-3
    assert max(springs) > 30.0  # what the springs alone would need 15 mrad for


def test_the_controller_holds_the_arm_where_references_end(loop) -> None:
    assert loop.activate()
    loop.run(0.6)
    for k in range(300):
        assert loop.update(*swing(k * STEP)) == RUNNING
        loop.move()
    there = loop.q.copy()
    assert np.abs(loop.qd).max() > 0.3
    loop.run(0.4)
    held = loop.q.copy()
    loop.run(0.4, NONE, STILL, STILL)
    assert np.abs(loop.qd).max() < 0.01  # it creeps back over its friction
    for place in (held, there):
        assert np.abs(loop.q - place).max() < 0.02


@pytest.mark.parametrize('wrong', [np.nan, np.inf])
def test_a_state_that_is_not_finite_holds_the_weight_and_then_fails(loop, wrong) -> None:
    assert loop.activate()
    loop.run(0.6)
    weight = loop.model.gravity(loop.q)
    assert loop.update() == RUNNING
    for _ in range(5):
        assert loop.update(q=np.full(N, wrong)) == BLIND
        np.testing.assert_allclose(loop.effort, weight, rtol=1e-12, atol=1e-12)
        loop.move()
    loop.run(0.1)  # seen again
    assert loop.away < 1e-4
    weight = loop.model.gravity(loop.q)
    assert loop.update() == RUNNING
    for k in range(7):
        bad = loop.q.copy()
        bad[k % N] = wrong
        assert loop.update(*swing(0.4), q=bad) == (BLIND if k < 5 else OFF)
        np.testing.assert_allclose(loop.effort, weight, rtol=1e-12, atol=1e-12)
    assert loop.update() == OFF  # for good, until it is activated anew
    assert loop.activate()
    assert loop.update() == RUNNING


def test_feedforward_controller_holds_the_position_seen_after_blindness(loop) -> None:
    assert loop.activate()
    loop.run(0.6)
    assert loop.update(q=NONE) == BLIND
    loop.q += 0.05
    assert loop.update() == RUNNING
    spring = loop.effort - loop.model.gravity(loop.q)
    assert np.abs(spring).max() < 1.0  # from where it was: 15 to 100 N m


def test_feedforward_controller_refuses_a_blind_start_and_keeps_limits(loop) -> None:
    assert not loop.activate(NONE)
    assert loop.update() == OFF
    assert loop.activate(limit=np.full(N, 5.0))
    assert loop.update(START + 1.0) == RUNNING
    assert np.abs(loop.effort).max() == 5.0
    assert loop.update(q=NONE) == BLIND
    assert np.abs(loop.effort).max() == 5.0


def test_references_that_are_not_finite_are_none(loop) -> None:
    assert loop.activate()
    loop.run(0.6)
    weight = loop.effort.copy()
    for place in range(3):
        reference = [START + 0.1, STILL.copy(), STILL.copy()]
        reference[place] = np.full(N, np.nan)
        assert loop.update(*reference) == RUNNING
        np.testing.assert_allclose(loop.effort, weight, rtol=0.0, atol=2e-3)
    huge = [START, STILL, np.full(N, 1e308)]
    for k in range(7):  # the effort itself is not finite
        assert loop.update(*huge) == (BLIND if k < 5 else OFF)
        np.testing.assert_allclose(loop.effort, loop.model.gravity(loop.q), rtol=0.0, atol=1e-9)
    assert loop.fault == NOT_FINITE


def test_efforts_change_no_faster_than_their_rate(loop) -> None:
    assert loop.activate(rate=np.full(N, 100.0))
    previous = np.clip(loop.model.gravity(START), -LIMIT, LIMIT)
    for _ in range(400):
        assert loop.update(START + 1.0) == RUNNING
        assert np.abs(loop.effort - previous).max() <= 100.0 * STEP * (1.0 + 1e-9)
        previous = loop.effort.copy()
    assert np.abs(previous - loop.model.gravity(START)).max() > 30.0


def test_the_controller_ramps_efforts_in_and_out_where_drives_hold_the_arm(loop) -> None:
    rate = np.full(N, 400.0)
    assert loop.activate(drives_hold=True, rate=rate)
    weight = loop.model.gravity(START) + loop.model.friction(START[None], STILL[None])[0]
    for k in range(600):
        assert loop.update(START) == RUNNING
        if k < 500:
            np.testing.assert_allclose(loop.effort, k / 500 * weight, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(loop.effort, weight, rtol=0.0, atol=1e-9)
    for k in range(6):
        assert loop.update(START, q=NONE) == (BLIND if k < 5 else OFF)
        if k < 5:
            np.testing.assert_allclose(loop.effort, weight, rtol=0.0, atol=1e-9)
    efforts = [loop.effort.copy()]
    for _ in range(400):
        assert loop.update(START) == OFF
        efforts.append(loop.effort.copy())
    assert np.abs(np.diff(efforts, axis=0)).max() <= 400.0 * STEP * (1.0 + 1e-9)
    assert not efforts[-1].any()


@pytest.mark.parametrize('drives_hold', [False, True])
@pytest.mark.parametrize(('joint', 'side'), [(0, 1.0), (5, -1.0)])
def test_a_position_outside_of_the_recordings_stops_the_controller(loop, drives_hold, joint, side
                                                              ) -> None:
    place = START.copy()
    place[joint] = side * (RANGE + 0.99 * MARGIN)
    assert loop.activate(q=place, drives_hold=drives_hold)
    assert loop.update(place, q=place) == RUNNING
    beyond = place.copy()
    beyond[joint] = side * (RANGE + 1.01 * MARGIN)
    assert loop.update(place, q=beyond) == OFF
    assert loop.fault == OUT_OF_RANGE
    held = STILL if drives_hold else loop.model.gravity(place)
    np.testing.assert_allclose(loop.effort, held, rtol=0.0, atol=1e-9)
    assert loop.update(place, q=place) == OFF
    assert not loop.activate(q=beyond, drives_hold=drives_hold)
    assert loop.activate(q=place, drives_hold=drives_hold)


def test_states_that_stand_still_in_motion_stop_the_controller(loop) -> None:
    assert loop.activate()
    speed = np.full(N, 0.5)
    count = 0
    while loop.update(START + count * STEP * speed, speed) == RUNNING:
        count += 1
        assert count < 1000
    assert loop.fault == STALE
    assert 49 <= count <= 50  # stale [s], in which the reference moved 25 mrad
    assert loop.activate()
    for _ in range(1000):  # at rest nothing has to change
        assert loop.update(START) == RUNNING
    slow = np.full(N, 0.05)
    for k in range(190):  # nor while the reference moves less than stiction explains
        assert loop.update(START + k * STEP * slow, slow) == RUNNING


def test_a_model_that_is_off_by_a_fifth_leaves_a_third_of_the_tracking_error(tmp_path) -> None:
    robot = load_robot('seven_axis')
    truth = replace(load_truth(robot), drives={})
    worst = max(factors(robot).values(), key=lambda scale: float(scale.std()))
    assert set(np.abs(worst - 1.0).round(9)) == {0.2}
    assert (gains(robot, truth)[0] > 0.0).all()
    loop = FeedforwardLoop(scaled_model(robot, worst), tmp_path)
    alone, with_it = (float(np.sqrt(np.mean(track(robot, truth, added, seed=11)**2)))
                      for added in (None, loop))
    assert with_it < alone / 3.0


def test_feedforward_controller_library_imports_no_allocator(library) -> None:
    listed = subprocess.run([compiler('nm'), '--dynamic', str(library[1].path)], check=True,
                            capture_output=True, text=True).stdout
    wanted = {line.split()[1].partition('@')[0] for line in listed.splitlines()
              if line.split()[0] == 'U'}
    assert not [name for name in wanted if name in ('malloc', 'calloc', 'realloc', 'free')
                or name.startswith(('_Zn', '_Zd', '__cxa_throw'))]
