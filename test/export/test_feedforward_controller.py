"""The loop of the example controller, compiled with the C code of an arm, on that arm."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest
from compiled_c import STRICT, compiler, pointer
from models_with_laws import AUTO, model_of

from robot_dynid import load_robot
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.types import FloatArray

INCLUDE = Path(__file__).resolve().parents[2] / 'examples/feedforward_controller/include'
FACE = r"""
#include "feedforward_controller/arm.hpp"
#include "feedforward_controller/feedforward.hpp"
using Loop = feedforward_controller::Feedforward<feedforward_controller::Arm>;
using Joints = Loop::Joints;
static Loop loop;
static Joints joints(const double * from)
{
  Joints found;
  std::copy(from, from + found.size(), found.begin());
  return found;
}
extern "C" int activate(
  const double * stiffness, const double * damping, const double * limit, const double * q,
  const double * qd)
{
  Loop::Settings settings;
  settings.stiffness = joints(stiffness);
  settings.damping = joints(damping);
  settings.effort_limit = joints(limit);
  settings.ramp = 0.5;
  return loop.activate(settings, joints(q), joints(qd));
}
extern "C" int update(
  const double * q, const double * qd, const double * q_ref, const double * qd_ref,
  const double * qdd_ref, double * out)
{
  Joints effort;
  const auto outcome = loop.update(
    0.001, joints(q), joints(qd), {joints(q_ref), joints(qd_ref), joints(qdd_ref)}, effort);
  std::copy(effort.begin(), effort.end(), out);
  return static_cast<int>(outcome);
}
"""
RUNNING, BLIND, FAILED = range(3)
N, STEP = 6, 0.001
START = np.array([0.3, -1.2, 1.5, -1.8, -1.57, 0.2])
STILL, NONE = np.zeros(N), np.full(N, np.nan)
STIFFNESS = np.array([2000.0, 2000.0, 1500.0, 500.0, 500.0, 300.0])
DAMPING = STIFFNESS / 15.0
LIMIT = np.array([330.0, 330.0, 150.0, 56.0, 56.0, 56.0])


class Loop:
    """The compiled loop, and the simulated arm that it moves."""

    def __init__(self, model: IdentifiedModel, library: ctypes.CDLL) -> None:
        self.model, self._library = model, library
        self.q, self.qd, self.effort = START.copy(), STILL.copy(), STILL.copy()

    def activate(self, q: FloatArray = START, limit: FloatArray = LIMIT,
                 stiffness: FloatArray = STIFFNESS) -> bool:
        return bool(self._library.activate(*map(pointer, (stiffness, DAMPING, limit, q, STILL))))

    def update(self, *reference: FloatArray, q: FloatArray | None = None) -> int:
        """Compute the effort of one cycle; ``q`` in place of the position of the arm."""
        full = [*reference, *(STILL, STILL)][:3] if reference else [NONE, NONE, NONE]
        return int(self._library.update(*map(pointer, (
            self.q if q is None else q, self.qd, *full, self.effort))))

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
def library(tmp_path_factory) -> tuple[IdentifiedModel, ctypes.CDLL, Path]:
    folder = tmp_path_factory.mktemp('loop')
    model = model_of(load_robot('ur10e'), AUTO)
    _, source = model.to_c().save(folder)
    (folder / 'face.cpp').write_text(FACE)
    subprocess.run([compiler('gcc'), '-O1', '-fPIC', '-c', str(source), '-o',
                    str(folder / 'arm.o')], check=True)
    path = folder / 'loop.so'
    subprocess.run([compiler('g++'), '-O1', '-std=c++17', *STRICT, '-Wno-sign-conversion',
                    '-shared', '-fPIC', f'-I{INCLUDE}', f'-I{folder}', str(folder / 'face.cpp'),
                    str(folder / 'arm.o'), '-o', str(path)], check=True)
    return model, ctypes.CDLL(str(path)), path


@pytest.fixture
def loop(library) -> Loop:
    model, compiled, _ = library
    return Loop(model, compiled)


def test_the_arm_stays_where_it_is(loop) -> None:
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
    np.testing.assert_allclose(efforts[-1], held, atol=1e-9)


def test_a_heavier_arm_sags_by_what_stiffness_allows(loop) -> None:
    light = loop.model
    loop.model = model_of(light.robot.with_nominal(1.2 * light.robot.nominal), AUTO)
    assert loop.activate()
    loop.run(1.5)
    missing = np.abs(loop.model.gravity(START) - light.gravity(START))
    assert loop.away < 1.2 * (missing / STIFFNESS).max()


def swing(time: float) -> list[FloatArray]:
    """Return position, velocity, acceleration (n,) of a motion that begins at rest."""
    w, size = 3.0, np.linspace(0.2, 0.4, N)
    return [START + size * (1.0 - np.cos(w * time)), size * w * np.sin(w * time),
            size * w**2 * np.cos(w * time)]


def test_it_follows_by_the_model_and_not_by_its_error(loop) -> None:
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


def test_where_references_end_the_arm_is_held(loop) -> None:
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
        assert loop.update(*swing(0.4), q=bad) == (BLIND if k < 5 else FAILED)
        np.testing.assert_allclose(loop.effort, weight, rtol=1e-12, atol=1e-12)
    assert loop.update() == FAILED  # for good, until it is activated anew
    assert loop.activate()
    assert loop.update() == RUNNING


def test_what_moved_unseen_is_held_where_it_is_seen_again(loop) -> None:
    assert loop.activate()
    loop.run(0.6)
    assert loop.update(q=NONE) == BLIND
    loop.q += 0.05
    assert loop.update() == RUNNING
    spring = loop.effort - loop.model.gravity(loop.q)
    assert np.abs(spring).max() < 1.0  # from where it was: 15 to 100 N m


def test_it_does_not_begin_blind_and_keeps_to_the_limits(loop) -> None:
    assert not loop.activate(NONE)
    assert loop.update() == FAILED
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
        np.testing.assert_allclose(loop.effort, weight, atol=2e-3)
    huge = [START, STILL, np.full(N, 1e308)]
    assert loop.update(*huge) == RUNNING
    np.testing.assert_allclose(loop.effort, loop.model.gravity(loop.q), atol=1e-9)


def test_nothing_allocates(library) -> None:
    listed = subprocess.run([compiler('nm'), '--dynamic', str(library[2])], check=True,
                            capture_output=True, text=True).stdout
    wanted = {line.split()[1].partition('@')[0] for line in listed.splitlines()
              if line.split()[0] == 'U'}
    assert not [name for name in wanted if name in ('malloc', 'calloc', 'realloc', 'free')
                or name.startswith(('_Zn', '_Zd', '__cxa_throw'))]
