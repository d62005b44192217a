"""identification/gears.py, signals/prepare.py: delays of link encoders behind those of motors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace as Mapping

import numpy as np
import pytest
from elastic_arms import D, K, elastic_arm, recordings

from robot_dynid import identify, load_robot
from robot_dynid.estimation.deflection_fit import DeflectionFit, Determined
from robot_dynid.identification.gears import delays_to_undo, joints_to_make_rigid
from robot_dynid.identification.identify import better_on_held_out_motion
from robot_dynid.identification.recipe import Recipe
from robot_dynid.signals.averaging import Periodic, average
from robot_dynid.signals.prepare import Preprocessing, prepare, repair
from robot_dynid.types import FloatArray, RawLog, interpolated

PERIOD, RATE = 4.0, 500.0
DELAYS = (3e-3, -2e-3)
#: rad: of deflections of 3e-3, of which delays would hide all
UNDONE = 2e-6


def sines(time: FloatArray, sizes: FloatArray) -> FloatArray:
    """Return sums (N, n) of the first harmonics at times (N, n)."""
    rate = 2.0 * np.pi / PERIOD * (1.0 + np.arange(sizes.shape[1]))
    phase = rate * time[:, :, None] + np.arange(sizes.shape[1])
    return np.asarray(np.sum(np.sin(phase) * sizes, axis=2))


def bend(time: FloatArray) -> FloatArray:
    """Return the deflection (N, 2) at times (N, 2)."""
    return sines(time, 1e-3 * np.array([[2.0, 1.0, 0.5], [-1.0, 0.5, 1.5]]))


def recorded(seconds: float) -> RawLog:
    """Return a recording whose link encoders show the past of DELAYS."""
    time = np.tile(np.arange(0.0, seconds, 1.0 / RATE)[:, None], 2)
    travel = np.array([[0.5, 0.2, 0.1], [0.3, -0.4, 0.1]])
    return RawLog('late', load_robot('elastic_2r').joints, time[:, 0],
                  sines(time - DELAYS, travel), effort=2e4 * bend(time),
                  motor_position=sines(time, travel) + bend(time))


@pytest.mark.parametrize('averaged', [False, True])
def test_prepare_undoes_the_delay_of_each_joint(averaged: bool) -> None:
    robot, log = load_robot('elastic_2r'), recorded(5 * PERIOD)
    repaired = average(robot, log, Periodic(PERIOD, 1)) if averaged else repair(robot, log)
    for delays, undone in ((DELAYS, True), ((), False)):
        samples = prepare(robot, repaired, Preprocessing(
            40.0, decimate=False, trim_rest=False, encoder_delays=delays))
        wanted = bend(samples.time[:, None] - DELAYS)
        found = samples.position[:, 2:] - samples.position[:, :2]
        assert bool(np.abs(found - wanted).max() < UNDONE) is undone
        rates = np.gradient(found, samples.time, axis=0)[5:-5]
        turned = (samples.velocity[:, 2:] - samples.velocity[:, :2])[5:-5]
        assert np.abs(turned - rates).max() < 1e-3


def fit(joint: str, delay: float, late: float, determined: bool = True) -> DeflectionFit:
    """Return a fit of a deflection of a milliradian, ``late`` of it from its delay."""
    none, found = (Determined(value, 1e-6, 0.0, 0.0, shown)
                   for value, shown in ((0.0, False), (delay, determined)))
    return DeflectionFit(joint, none, none, found, none, none, none, 1e-3, 1e-5, late)


@pytest.mark.parametrize(('fits', 'undone', 'delays'), [
    ([fit('joint_1', 2e-3, 5e-4)], (), {'joint_1': 2e-3}),
    ([fit('joint_1', -2e-3, 5e-4)], (), {'joint_1': -2e-3}),
    ([fit('joint_1', 2e-3, 5e-4, False)], (), {}),  # open
    ([fit('joint_1', 2e-3, 9e-6)], (), {}),  # less than what is unexplained
    ([fit('joint_3', 2e-3, 5e-4)], (), {}),  # rigid
    ([fit('joint_1', 2e-3, 5e-4)], (2e-3, 0.0), {}),  # undone
    ([fit('joint_1', 2e-3, 5e-4)], (1.9e-3, 0.0), {'joint_1': 2e-3}),  # not quite
    ([fit('joint_1', 2e-3, 5e-4), fit('joint_2', 1e-3, 9e-6)], (), {'joint_1': 2e-3}),
])
def test_delays_to_undo_are_those_that_change_the_deflection(
    fits: list[DeflectionFit], undone: tuple[float, ...], delays: dict[str, float]
) -> None:
    model: object = Mapping(
        joints=('joint_1', 'joint_2'), elastic_joints=('joint_1', 'joint_2'),
        preprocessing=Preprocessing(10.0, encoder_delays=undone),
        record=Mapping(encoders=tuple(fits)))
    assert delays_to_undo(model) == delays  # type: ignore[arg-type]


def test_joints_to_make_rigid_say_why() -> None:
    def gear(joint: str, stiffness: float, std: float) -> object:
        return Mapping(joint=joint, stiffness=stiffness, stiffness_std=std)

    def beside(joint: str, rigid: float, elastic: float) -> object:
        return Mapping(joint=joint, rigid_error=rigid, elastic_error=elastic)

    model: object = Mapping(record=Mapping(
        gears=(gear('a', 1e4, 1e3), gear('b', 1e4, 1e4), gear('c', -1e4, 1.0),
               gear('d', 1e4, 1e3)),
        rigid_beside=(beside('a', 1.0, 1.05), beside('d', 1.0, 1.2), beside('e', 1.0, 2.0))))
    reasons = joints_to_make_rigid(model)  # type: ignore[arg-type]
    assert list(reasons) == ['b', 'c', 'd']
    assert 'leave its stiffness open' in reasons['b'] and 'open' in reasons['c']
    assert 'held-out effort of d worse' in reasons['d']


@pytest.mark.parametrize(('errors', 'stays'), [
    ((1.0, 1.0, 9.0), True), ((1.2, 1.0, 9.0), True), ((1.0, 1.3, 9.0), False)])
def test_better_on_held_out_motion_counts_every_joint(
    errors: tuple[float, ...], stays: bool
) -> None:
    """Squared errors of an elastic model, its motor last, against 1 N^2 m^2 of the rigid one."""
    elastic: object = Mapping(model=Mapping(elastic_joints=('joint_1',)),
                              held_out=Mapping(raw=np.array(errors)))
    rigid: object = Mapping(model=Mapping(joints=('joint_1', 'joint_2')),
                            held_out=Mapping(raw=np.ones(2)))
    found, notes = better_on_held_out_motion(elastic, rigid)  # type: ignore[arg-type]
    assert found is (elastic if stays else rigid)
    assert notes == ([] if stays else [
        'joint_1: rigid in the dynamics, because the elastic model predicts the held-out effort '
        'of joint_2 worse; record another motion'])


def test_identify_undoes_delays_of_encoders() -> None:
    """Ignored, a millisecond makes damping more than twenty times too large."""
    def late(log: RawLog) -> RawLog:
        assert log.velocity is not None
        return replace(log, position=interpolated(log.time, log.position, log.time - 1e-3),
                       velocity=interpolated(log.time, log.velocity, log.time - 1e-3))

    robot, logs = elastic_arm()[0], [late(log) for log in recordings()]
    recipe = Recipe(friction='coulomb', cutoff=30.0, ripple='none')
    result = identify(robot, logs, 'elastic', recipe)
    model = result.model
    assert model.elastic_joints == robot.joints
    assert model.preprocessing.encoder_delays == pytest.approx((1e-3,) * 3, rel=1e-3)
    assert [gear.stiffness for gear in model.record.gears] == pytest.approx(K, rel=1e-3)
    assert [gear.damping for gear in model.record.gears] == pytest.approx(D, rel=0.05)
    assert [one.delay.value for one in model.record.encoders] == pytest.approx(
        [1e-3] * 3, rel=1e-3)
    assert 'joint_1 by 1 ms' in result.warnings[0]
    ignored = identify(robot, logs, 'elastic', replace(recipe, encoder_delays={})).model
    assert min(gear.damping / d for gear, d in zip(ignored.record.gears, D, strict=True)) > 20.0


@dataclass(frozen=True)
class Geared:
    """A model as far as it is looked at: elastic joints, and those whose stiffness is open."""

    elastic_joints: tuple[str, ...] = ()
    open_ones: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    feasible: object = None

    @property
    def record(self) -> object:
        """Return the stiffness of its gears, known to a thousandth unless open."""
        return Mapping(rigid_beside=(), gears=[
            Mapping(joint=joint, stiffness=1e4, stiffness_std=1e4 if joint in self.open_ones
                    else 10.0) for joint in self.elastic_joints])


@dataclass(frozen=True)
class Fitted:
    """A result as far as it is looked at."""

    model: Geared
    warnings: tuple[str, ...] = ('late',)


def test_identify_keeps_only_gears_that_are_determined(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once without that of the second joint, whose fit leaves that of the first open."""
    asked: list[tuple[str, Recipe]] = []
    results = [Fitted(model) for model in (
        Geared(('joint_1', 'joint_2'), ('joint_2',)), Geared(('joint_1',), ('joint_1',)),
        Geared())]

    def fit(gathered: tuple[str, Recipe], *_: object) -> Fitted:
        asked.append(gathered)
        return results[len(asked) - 1]

    where = 'robot_dynid.identification.identify.'
    monkeypatch.setattr(f'{where}gather', lambda robot, logs, request, *_: (
        request.estimator.name, request.recipe))
    monkeypatch.setattr(f'{where}fit_gathered', fit)
    delays = {'joint_1': 1e-3, 'joint_2': 2e-3}
    found = identify(load_robot('elastic_2r'), [], 'elastic', Recipe(encoder_delays=delays))
    assert [(name, one.elastic_joints, one.encoder_delays) for name, one in asked] == [
        ('elastic', None, delays), ('elastic', ('joint_1',), {'joint_1': 1e-3}), ('wls', (), {})]
    first, second, last = found.warnings
    assert first.startswith('joint_2: rigid in the dynamics, because the efforts leave')
    assert second.startswith('joint_1: rigid') and last == 'late'
    assert found.model.warnings == found.warnings
