"""Drive gains (`estimation.drive_gains`) against a search of all parameters at once."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import least_squares

from robot_dynid.errors import DataError
from robot_dynid.estimation.drive_gains import (
    DriveGains,
    GainStatus,
    KnownLoad,
    fit_drive_gains,
)
from robot_dynid.estimation.information import Accumulator
from robot_dynid.robot.inertia import PARAMETERS, parameters_from_com, symmetric

NAMES = ('a', 'b', *PARAMETERS)
COUNT, BATCH = 240, 20
GAINS = np.array([12.0, 7.5, 31.0])
BODY = parameters_from_com(1.7, [0.05, -0.12, 0.2], symmetric([0.9, 0.1, 1.2, -0.2, 0.15, 1.4]))
FREE, CENTRED = KnownLoad(1.7), KnownLoad(1.7, (0.05, -0.12, 0.2))


class Currents:
    """Columns (3, 12, N) and currents (N, 3), with noise in proportion to `level`."""

    def __init__(self, groups=(0, 1, 2), level=1.0, idle=None):
        rng, gains = np.random.default_rng(5), GAINS[list(groups)]
        self.columns = rng.normal(size=(3, 12, COUNT)) * np.linspace(0.7, 1.9, 12)[:, None]
        if idle is not None:
            self.columns[idle] = 0.0
        torque = np.einsum('ikn,k->ni', self.columns, [0.8, -2.1, *BODY])
        self.current = torque / gains + level * rng.normal(size=(COUNT, 3)) * [0.01, 0.03, 0.004]
        self.groups = np.array(groups)

    def information(self, batch=BATCH):
        accumulator = Accumulator(NAMES, np.ones((3, 12), dtype=bool), batch)
        accumulator.add(self.columns, self.current, 3.0 * self.current)
        return accumulator.information()

    def residual(self, unknown, load, rows=slice(None)):
        """Return measured less predicted current (N, 3): gains of the groups, then parameters."""
        count, fixed = self.groups.max() + 1, load.fixed
        values = np.concatenate([unknown[count:count + 2], fixed, unknown[count + 2:]])
        torque = np.einsum('ikn,k->ni', self.columns[:, :, rows], values)
        return self.current[rows] - torque * np.exp(-unknown[:count])[self.groups]

    def search(self, load, weights, start=None, rows=slice(None)):
        if start is None:
            gains = [GAINS[g] for g in range(self.groups.max() + 1)]
            start = np.concatenate([np.log(gains), [0.8, -2.1], BODY[len(load.fixed):]])
        return least_squares(lambda x: (self.residual(x, load, rows) * weights).ravel(), start,
                             method='lm', xtol=1e-14, ftol=1e-14, gtol=1e-14).x


@pytest.mark.parametrize(('groups', 'load'), [
    ((0, 1, 2), FREE), ((0, 1, 1), FREE), ((1, 0, 1), CENTRED)])
def test_gains_deviations_and_noise_are_those_of_a_search_of_all_parameters(groups, load):
    currents = Currents(groups)
    found = fit_drive_gains(currents.information(), load, currents.groups)
    weights, start = 1.0 / np.sqrt(np.mean(currents.current**2, axis=0)), None
    for _ in range(4):
        start = currents.search(load, weights, start)
        noise = np.sqrt(np.mean(currents.residual(start, load) ** 2, axis=0))
        weights = 1.0 / noise
    left = [currents.search(load, weights, start, np.delete(np.arange(COUNT), range(a, a + BATCH)))
            for a in range(0, COUNT, BATCH)]
    count = currents.groups.max() + 1
    std = np.sqrt(11.0 * np.var(np.array(left)[:, :count], axis=0))[currents.groups]
    assert found.estimates == pytest.approx(np.exp(start[:count])[currents.groups], rel=1e-7)
    assert found.values.tolist() == found.estimates.tolist()
    assert found.relative_std == pytest.approx(std, rel=1e-3)
    assert found.noise == pytest.approx(noise, rel=1e-6)
    body = np.concatenate([load.fixed, start[count + 2:]])
    assert found.centre_of_mass == pytest.approx(body[1:4] / 1.7, rel=1e-6)
    assert found.degrees_of_freedom == 11 and found.status is GainStatus.OK


@pytest.mark.parametrize(('ratio', 'status'), [
    (0.95, GainStatus.OK), (1.05, GainStatus.NOT_DETERMINED)])
def test_a_gain_is_determined_below_three_percent(ratio, status):
    level = 1.0
    for _ in range(3):  # the deviation grows with the noise, nearly in proportion
        std = fit_drive_gains(Currents(level=level).information(), FREE).relative_std
        level *= ratio * 0.03 / std.max()
    found = fit_drive_gains(Currents(level=level).information(), FREE)
    assert found.relative_std.max() == pytest.approx(ratio * 0.03, rel=0.01)
    worst = np.arange(3) == np.argmax(found.relative_std)
    assert found.status is status
    assert found.determined.tolist() == (~worst | (ratio < 1.0)).tolist()
    assert np.isnan(found.values).tolist() == (~found.determined).tolist()


def test_the_gain_of_a_joint_without_torque_is_open():
    found = fit_drive_gains(Currents(idle=1).information(), FREE)
    assert found.determined.tolist() == [True, False, True]
    assert np.isinf(found.relative_std).tolist() == [False, True, False]
    assert found.status is GainStatus.NOT_DETERMINED
    assert found.estimates[[0, 2]] == pytest.approx(GAINS[[0, 2]], rel=0.05)
    lower, upper = found.interval()
    assert (lower[1], upper[1]) == (0.0, np.inf)


def test_intervals_of_gains_are_those_of_their_logarithms():
    gains = DriveGains(np.array([3.0, 8.0]), np.array([0.01, 0.2]), np.array([True, False]), 9,
                       np.zeros(3), np.zeros(2), GainStatus.NOT_DETERMINED)
    for level, arguments in ((0.95, ()), (0.8, (0.8,))):
        reach = np.exp(stats.t.ppf(0.5 + level / 2.0, 9) * np.array([0.01, 0.2]))
        lower, upper = gains.interval(*arguments)
        assert lower == pytest.approx([3.0, 8.0] / reach)
        assert upper == pytest.approx([3.0, 8.0] * reach)
    assert gains.values[0] == 3.0 and np.isnan(gains.values[1])


def test_a_known_load_gives_the_first_parameters():
    assert FREE.fixed.tolist() == [1.7]
    assert CENTRED.fixed == pytest.approx([1.7, 0.085, -0.204, 0.34])


@pytest.mark.parametrize(('count', 'batch'), [(11, 5), (24, 24)])
def test_gains_need_two_batches_and_a_sample_per_parameter(count, batch):
    currents = Currents()
    currents.columns, currents.current = currents.columns[:, :, :count], currents.current[:count]
    with pytest.raises(DataError) as caught:
        fit_drive_gains(currents.information(batch), FREE)
    assert str(caught.value) == (f'{count} usable samples are too few for 12 parameters: record '
                                 'longer motions')


def test_twelve_samples_in_two_batches_give_gains_of_twelve_parameters():
    currents = Currents(level=0.0)
    currents.columns, currents.current = currents.columns[:, :, :12], currents.current[:12]
    found = fit_drive_gains(currents.information(6), FREE)
    assert found.estimates == pytest.approx(GAINS, rel=1e-6) and found.degrees_of_freedom == 1
