"""ros/excitation/runner.py: motions whose speed the controller scales, as by a speed slider:
separate processes over DDS."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')

from excitation_stage import LONG, Client, Stage

from robot_dynid.execution.guards import Code

pytestmark = pytest.mark.ros


@pytest.fixture(scope='module')
def shared(module_domain: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    # the default, so that there are as many pieces as with it
    stage = Stage(tmp_path_factory.mktemp('bags'), lookahead=1.0)
    yield stage
    stage.close()


@pytest.fixture
def client(shared: Stage) -> Iterator[Client]:
    client = shared.reset().with_robot()
    client.scale(1.0)
    yield client
    client.scale(1.0)


def test_the_motion_follows_the_slider_and_a_pause_at_the_pendant(client: Client) -> None:
    """The slider is the parameter speed_scaling of the simulated robot."""
    handle = client.moving()
    for factor, seconds in ((0.9, 1.0), (0.5, 1.5), (0.0, 1.0), (1.0, 1.0), (0.5, 0.5)):
        client.scale(factor)
        client.later(seconds)
    _, result = client.result(handle)  # checks that the reference makes no step
    assert result.code == Code.SUCCESS, result.message
    assert any('speed scaling fell to 0: the motion was slower' in w for w in result.warnings)
    assert len(client.sent) > 20, 'it was sent in pieces'


def test_a_cancelled_motion_at_half_speed_stops_on_its_path(client: Client) -> None:
    client.scale(0.5)
    handle = client.moving()
    client.answer(handle.cancel_goal_async())
    _, result = client.result(handle)
    assert result.code == Code.CANCELLED and 'stopped along the path' in result.message
    client.comes_to_rest()


def test_too_fast_a_controller_is_stopped_and_refused(client: Client) -> None:
    handle = client.moving()
    client.scale(1.3)
    _, result = client.result(handle)
    assert result.code == Code.SPEED_SCALING, result.message
    assert 'speed scaling is 1.3: the motion is faster than planned' in result.message
    client.comes_to_rest()


def test_a_paused_robot_is_refused_by_the_first_motion(shared: Stage, client: Client) -> None:
    shared.reset(lookahead=1.1).with_robot()  # a node started anew
    client.scale(0.0)
    client.later(0.2)
    result = client.excite(LONG)
    assert result.code == Code.SPEED_SCALING
    assert 'the robot is paused' in result.message and 'nothing was sent' in result.message
