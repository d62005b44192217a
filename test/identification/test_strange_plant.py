"""identification/identify.py: identification of a plant apart from every law and simulator of the
package.

The tables that are printed are those of `python test/support/strange_scores.py`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

pin = pytest.importorskip('pinocchio', reason='optional oracle is not installed: pinocchio')

from strange_plant import (  # noqa: E402
    TRAINING,
    Plant,
    available,
    bristles,
    inverse_dynamics,
    judging,
    load_arm,
    regressor,
)
from strange_scores import PlainFit, Summary, covered_parameters, run_cases, write_line  # noqa: E402

from robot_dynid.dynamics import rigid_body  # noqa: E402

#: come with the repository: one that turns and slides, one with six joints
ARMS = ('scara', 'ur10e')
#: arms that a table is of, at least
LEAST_ARMS = 10
REPETITIONS = 20


@pytest.fixture(params=ARMS)
def plant(request: pytest.FixtureRequest) -> Plant:
    """Return a plant of each arm."""
    return Plant(load_arm(request.param), 3)


@pytest.mark.parametrize('name', sorted({*available()} - {'franka'}))
def test_descriptions_are_read_alike(name):
    """All but one with links of inertia without mass, which Pinocchio takes as they stand."""
    arm = load_arm(name)
    q, v, a = np.random.default_rng(0).uniform(-1.0, 1.0, (3, 20, arm.n))
    effort = inverse_dynamics(arm.nominal, q, v, a)
    assert np.allclose(effort, rigid_body.inverse_dynamics(arm.robot, q, v, a),
                       atol=1e-9 * np.abs(effort).max())


def test_bodies_are_off_and_can_exist(plant):
    for i in range(1, plant.model.njoints):
        body, nominal = plant.model.inertias[i], plant.arm.nominal.inertias[i]
        assert 0.15 <= abs(body.mass / nominal.mass - 1.0) <= 0.4
        assert 0.55 <= np.trace(body.inertia) / np.trace(nominal.inertia) <= 1.45
        assert np.linalg.eigvalsh(pin.PseudoInertia.FromInertia(body).toMatrix()).min() > 0.0


def test_columns_times_true_parameters_are_the_effort_of_the_links(plant):
    q, v, a = np.random.default_rng(1).uniform(-1.0, 1.0, (3, 10, plant.arm.n))
    standard = np.concatenate([
        body.toDynamicParameters() for body in plant.model.inertias.tolist()[1:]])
    effort = inverse_dynamics(plant.model, q, v, a)
    assert np.allclose(regressor(plant.model, q, v, a) @ standard, effort)


@pytest.mark.parametrize('kind', [*TRAINING, 'judged', 'program'])
def test_motions_are_smooth_and_within_limits(plant, kind):
    arm = plant.arm
    judged = dict(zip(('judged', 'program'), judging(arm, 1), strict=True))
    motion = judged.get(kind) or TRAINING[kind](arm, np.random.default_rng(2))
    time = np.arange(0.0, motion.duration, 2e-3)
    q, v, a = motion.states(time)
    assert (np.abs(q - arm.middle) <= 1.2 * arm.half + 1e-9).all()
    assert (np.abs(v) <= 1.001 * arm.speed).all()
    assert (np.abs(a) <= 1.001 * arm.acceleration).all()
    assert (v[[0, -1]] == 0.0).all()
    slope = np.gradient(q, time, axis=0)
    assert np.abs(slope - v).max() < 0.01 * np.abs(v).max()
    # accelerations jump where quintic moves meet, and nowhere else
    assert np.median(np.abs(np.gradient(v, time, axis=0) - a)) < 1e-3 * np.abs(a).max()


def test_new_motions_are_not_those_of_the_training(plant):
    arm = plant.arm
    time = np.arange(0.0, 15.0, 0.1)
    motions = [one(arm, np.random.default_rng((1, 11))) for one in TRAINING.values()]
    for new in judging(arm, 1):
        for motion in motions:
            way = np.abs(new.states(time)[0] - motion.states(time)[0]).max(axis=1)
            assert np.mean(way < 0.05 * arm.half.max()) < 0.2


def test_bristles_keep_what_a_reversal_left():
    way = np.concatenate([np.linspace(0.0, 1.0, 500), np.linspace(1.0, 0.99, 50),
                          np.full(50, 0.99)])[:, None]
    state = bristles(way, np.array([0.02]))[:, 0]
    assert state[499] == pytest.approx(1.0)
    assert state[549] == pytest.approx(2.0 * np.exp(-0.5) - 1.0)
    assert (state[550:] == state[549]).all()


def test_friction_takes_power_and_depends_on_the_past(plant):
    arm = plant.arm
    motion = TRAINING['repeated'](arm, np.random.default_rng(4))
    time = np.arange(0.0, motion.duration, 2e-3)
    q, v, a = motion.states(time)
    links = inverse_dynamics(plant.model, q, v, a) + plant.rotors * a
    still = plant.gravity(q) - plant.weight(q)
    friction = plant.effort(time, q, v, a) - links - still
    fast = np.abs(v) > 0.2 * np.abs(v).max(axis=0)
    size, _ = plant.ripple
    assert ((friction * np.sign(v) + size)[fast] > 0.0).all()
    other = plant.effort(time[::-1], q[::-1], v[::-1], a[::-1])[::-1]
    assert (np.abs(other - links - still - friction) > 0.1 * plant.dry).any(axis=0).all()


def test_a_recording_has_the_faults_of_sensors_and_is_drawn_from_its_seed(plant):
    motion = TRAINING['pick'](plant.arm, np.random.default_rng(4))
    recorded, again = plant.record(motion, 1), plant.record(motion, 1)
    log, (q, v, _) = recorded.log, recorded.states
    assert (log.effort == again.log.effort).all()
    step = np.where(plant.arm.slides > 0.0, 0.3, 2.0 * np.pi) / 2.0**plant.bits
    assert (np.abs(log.position - q) <= 0.51 * step).all()
    assert len(log.time) < plant.rate * motion.duration - 0.04 * plant.rate
    noise = (log.effort - recorded.effort).std(axis=0)
    assert np.allclose(noise, plant.noise, rtol=0.1)
    late = np.median(np.diff(log.time)) * np.argmax([
        log.velocity[k:, 0] @ v[:len(v) - k, 0] for k in range(int(0.1 * plant.rate) + 2)])
    assert 0.0 < late < 0.1


def test_plain_least_squares_are_right_where_the_plant_is_as_plain(plant):
    """The control that identification has to beat is no straw man."""
    zero = np.zeros(plant.arm.n)
    plant.stribeck = plant.asymmetry = plant.load = plant.second = zero
    plant.power, plant.lengths = zero + 1.0, (zero + 1e-5, zero + 1e-5)
    plant.place, plant.cable, plant.warming = (zero, zero), (zero, zero), (zero, zero + 1.0)
    plant.orders, plant.noise, plant.lag = zero, zero, 0.0
    training = plant.record(TRAINING['random'](plant.arm, np.random.default_rng(1)), 1)
    varied, _ = judging(plant.arm, 1)
    plain, nominal = PlainFit(plant.arm, training).errors([plant.record(varied, 9)])
    assert np.median(plain) < 0.08
    assert (plain < nominal).all()


#: figures of a summary, and the largest that is wanted
WANTED: dict[str, tuple[Callable[[Summary], float], float]] = {
    'error over plain least squares': (lambda s: s.over_plain.max(), 1.1),
    'error over the better of that and nominal links': (lambda s: s.over_better.max(), 1.1),
    'error got over promised, median': (lambda s: np.median(s.promise), 1.1),
    'error got over promised, 90 %': (lambda s: np.percentile(s.promise, 90), 2.0),
    'error got over promised, largest': (lambda s: s.promise.max(), 4.0),
    'false contacts': (lambda s: s.contacts, 0.0),
    'joints refused': (lambda s: s.refused, 0.0),
    'mass matrices that are not definite': (lambda s: s.indefinite, 0.0),
}
#: shares, which a few joints do not show
SHARES: dict[str, tuple[Callable[[Summary], float], float]] = {
    'good for feed-forward, but is not': (lambda s: s.wrong / max(s.good, 1), 0.03),
    'static effort beyond what is said': (lambda s: s.static, 0.1),
    'effort outside of its 95 % interval': (lambda s: 1.0 - s.covered.mean(), 0.1),
    'effort within its 95 % interval': (lambda s: s.covered.mean(), 0.98),
    'ripple waves that are not there': (
        lambda s: 1.0 - s.waves[1] / s.waves[0] if s.waves[0] else 0.0, 0.1),
}


@pytest.fixture(scope='module')
def figures() -> Summary:
    """Return the figures of the tables of two arms, which are printed."""
    cases, failures = run_cases(ARMS, ['pick'], [1])
    assert not failures
    return Summary.of(cases)


@pytest.mark.parametrize('name', WANTED)
def test_figures_of_two_arms(figures, name):
    figure, largest = WANTED[name]
    assert figure(figures) <= largest


@pytest.mark.soak
@pytest.mark.parametrize('kind', TRAINING)
def test_figures_of_all_arms(kind):
    arms = available()
    if len(arms) < LEAST_ARMS:
        pytest.skip('example-robot-data is not installed')
    cases, failures = run_cases(arms, [kind], [1])
    figures = Summary.of(cases)
    missed = [f'{name}: {figure(figures):.3g}, wanted at most {largest:g}'
              for name, (figure, largest) in (WANTED | SHARES).items()
              if not figure(figures) <= largest]
    assert not [*failures, *missed], '\n'.join([*failures, *missed])


@pytest.mark.soak
@pytest.mark.parametrize('kind', ['repeated', 'random'])
def test_intervals_of_parameters_hold_as_often_as_they_say(kind):
    shares = []
    for name in ARMS:
        shares.append(covered_parameters(name, kind, 1, REPETITIONS))
        write_line(f'{name} {kind}: 95 % intervals of parameters hold in '
                   f'{100 * shares[-1].mean():.0f} %')
    assert 0.9 <= np.concatenate(shares).mean() <= 0.98
