"""monitoring/contact_events.py: contacts of a recording at known times, and its largest torque
without any."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from monitored import model_of

from robot_dynid.errors import DataError
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.noise_levels import NoiseLevels
from robot_dynid.monitoring.contact_events import Contact, ContactEvents, contact_events
from robot_dynid.monitoring.monitor import MonitorSettings
from robot_dynid.monitoring.observer import ContactSettings
from robot_dynid.monitoring.watched_joints import BlindTime
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import FloatArray, RawLog

STEP, ROWS = 0.01, 200
#: an observer that follows every torque at once, as the mean of two rows
SETTINGS = MonitorSettings(1e9, ContactSettings(1.5, 0.6, 0.0))


def resting_model() -> IdentifiedModel:
    """Return a weightless arm without friction, with levels of 1, 2 and 3 N m."""
    robot = load_robot('planar_3r').with_gravity(np.zeros(3))
    model = model_of(robot)
    values = model.reduction.base(np.concatenate([
        robot.nominal.ravel(), np.zeros(len(model.reduction.standard) - 30)]))
    return replace(model, values=values, noise_levels=NoiseLevels(
        np.array([1.0, 2.0, 3.0]), np.zeros(3), np.full(3, 0.01), 1e9))


def pushed(push: FloatArray) -> RawLog:
    """Return a recording of the arm at rest, held against torques (N, 3) from outside."""
    still = np.zeros_like(push)
    return RawLog('pushed', ('joint_1', 'joint_2', 'joint_3'), 5.0 + STEP * np.arange(len(push)),
                  np.add(still, (0.1, 0.2, 0.3)), still, -push)


def test_contacts_are_told_in_order_with_their_times_and_signed_peaks() -> None:
    push = np.zeros((ROWS, 3))
    push[90:110, 1], push[95:98, 1] = -5.0, -9.0
    push[40:50, 2], push[45, 2] = 6.0, 8.0
    push[140:150, 0] = 1.4  # below one and a half times the level
    push[41, 0] = 2.9  # no contact, but just before one is reported
    (found,) = contact_events(resting_model(), [pushed(push)], SETTINGS)
    np.testing.assert_allclose(found.torque[1:], 0.5 * (push[1:] + push[:-1]), rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(found.threshold, np.tile([1.5, 3.0, 4.5], (ROWS, 1)))
    # 2.5 and 3 are in the first row of a push, the third above the threshold is contact; it ends
    # with the third below three fifths
    np.testing.assert_allclose(found.without_contact, [1.4, 2.5, 3.0])
    assert [one.joint for one in found.contacts] == ['joint_3', 'joint_2']
    np.testing.assert_allclose([(one.start, one.stop, one.peak) for one in found.contacts], [
        (5.43, 5.52, 7.0), (5.93, 6.12, -9.0)])
    assert (found.source, found.notes, found.watched) == ('pushed', (), True)
    np.testing.assert_allclose(found.moving, [1.5, 3.0, 4.5])
    assert not found.static_friction.any() and not found.claimed.any()
    push[5:8, 1] = 0.2
    (cut,) = contact_events(resting_model(), [pushed(push[:44])], SETTINGS)
    assert [one.stop for one in cut.contacts] == [5.43]  # the last row: the two before are no rest
    np.testing.assert_allclose(cut.without_contact, [0.0, 0.2, 3.0], rtol=0.0, atol=1e-9)


def test_time_without_contact_detection_is_summed_by_joint() -> None:
    (found,) = contact_events(resting_model(), [pushed(np.full((20, 3), 0.1))], SETTINGS)
    settling = BlindTime('joint_1', 0.0, 0.1, 'z', True)
    blind = (settling, BlindTime('joint_2', 1.0, 1.5, 'x'), BlindTime('joint_2', 2.0, 2.25, 'y'))
    events = replace(found, blind=blind)
    assert events.blind_seconds(('joint_3', 'joint_2', 'joint_1')) == pytest.approx(
        (0.0, 0.75, 0.1))
    assert not events.watched and replace(found, blind=(settling,)).watched


def test_recordings_without_joint_states_are_refused() -> None:
    with pytest.raises(DataError) as caught:
        contact_events(resting_model(), [], SETTINGS)
    assert str(caught.value) == 'no recording to detect contacts in'


def test_a_joint_that_is_never_watched_without_contact_has_no_largest_torque() -> None:
    push = np.tile([0.2, 9.0, -0.4], (30, 1))
    (found,) = contact_events(resting_model(), [pushed(push)], SETTINGS)
    assert [(one.joint, one.peak) for one in found.contacts] == [('joint_2', pytest.approx(9.0))]
    assert isinstance(found, ContactEvents) and isinstance(found.contacts[0], Contact)
    assert np.isnan(found.without_contact).all()
