"""Joint states as they come, and the settings of the guards."""

import numpy as np
import pytest

from robot_dynid.errors import UsageError
from robot_dynid.excitation.guards import GuardSettings, JointStates, Tolerances

JOINTS = ('shoulder', 'elbow')


def test_joint_states_in_parts_any_order_and_repeated():
    states = JointStates(JOINTS)
    assert not states.update(1.0, ['gripper'], 1.0, ([0.1], [], []))
    assert states.update(2.0, ['gripper', 'elbow'], 1.0, ([0.1, 0.2], [], [3.0, 4.0]))
    assert states.position[1] == 0.2 and states.effort[1] == 4.0
    assert states.missing('position') == ('shoulder',)
    assert states.oldest(2.0) == ('shoulder', np.inf)
    assert states.update(2.1, JOINTS, 1.1, ([1.0, 2.0], [0.0, 0.0], [1.0, 1.0]))
    assert not states.update(2.2, JOINTS, 1.1, ([1.0, 2.0], [0.0, 0.0], [1.0, 1.0]))
    assert states.oldest(2.2)[1] == pytest.approx(0.1)
    assert states.update(2.3, JOINTS, 0.0, ([1.0], [0.0, 0.0], [1.0, 1.0]))
    assert states.missing('position') == JOINTS, 'a field of the wrong length is no measurement'


def test_settings_are_checked():
    with pytest.raises(UsageError, match='state_timeout'):
        GuardSettings(state_timeout=0.0)
    with pytest.raises(UsageError, match='effort_fraction'):
        GuardSettings(effort_fraction=1.2)
    with pytest.raises(UsageError, match='tolerance path must be positive'):
        Tolerances(np.ones(2), np.ones(2), np.array([0.1, 0.0]), np.ones(2))
