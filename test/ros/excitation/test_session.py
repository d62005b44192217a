"""Adaptive sessions: swing after swing over DDS, and what ends them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')

from excitation_stage import Stage
from nodes import NodeProcess

from robot_dynid import identify, load_log
from robot_dynid.cli.main import main
from robot_dynid.cli.terminal import Terminal
from robot_dynid.excitation.design_criteria import design_criteria
from robot_dynid.execution.guards import Code
from robot_dynid.identification.recipe import Recipe
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.ros.common.action_caller import NotAnswered
from robot_dynid.simulation.truth import load_truth, true_base
from robot_dynid.yaml_text import load_yaml
from robot_dynid_extras.session import client as session_client
from robot_dynid_extras.session import verb
from robot_dynid_extras.session.client import Operator, Session, run_session
from robot_dynid_extras.session.precision import precision_of
from robot_dynid_interfaces.action import Excite

pytestmark = pytest.mark.ros
ROBOT = load_robot('planar_3r')
ACCURACY = 0.5
COMMAND = 'import sys; from robot_dynid.cli.main import main; sys.exit(main())'
READY = 300.0  # s: a loaded machine plans slowly, a broken node never does


@pytest.fixture(scope='module')
def stage(module_domain: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Return the node, and a robot whose efforts are noisy."""
    folder = tmp_path_factory.mktemp('bags')
    made = Stage(folder, files_directory=folder)
    made.robot = NodeProcess('simulated_robot', {'robot': ROBOT.name})
    made.with_robot()
    yield made
    made.close()
    assert 'Traceback' not in made.node.output, made.node.output


@pytest.mark.soak
def test_a_session_ends_with_parameters_as_accurate_as_asked_for(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ['session', '--yes', '--accuracy', str(ACCURACY), '--swings', '1', '--longest', '300',
             '--options', '{seed: 1}', '--node', '/excitation', '--timeout', str(READY), '--json']
    assert main(asked) == 0
    found = json.loads(capsys.readouterr().out)
    assert found['ended'] == 'met' and found['largest_deviation'] <= ACCURACY, found
    assert found['out_of_reach'] == []
    swings, bags = found['swings'], found['recordings']
    assert len(swings) >= ROBOT.n, 'every joint has to swing'
    assert [swing['recording'] for swing in swings] == bags
    assert {swing['code'] for swing in swings} == {'SUCCESS'}
    assert all("' swings " in swing['shown'] for swing in swings)
    assert sorted(Path(bag).name for bag in bags) == sorted(p.name for p in stage.folder.iterdir())
    # a session that goes on from what is known well enough moves nothing
    again = ['session', '--yes', '--accuracy', str(ACCURACY), '--data', *bags, '--json']
    assert main(again) == 0
    repeated = json.loads(capsys.readouterr().out)
    assert repeated['swings'] == [] and repeated['recordings'] == bags
    assert repeated['largest_deviation'] == pytest.approx(found['largest_deviation'])
    recipe = Recipe(friction='coulomb', ripple='none', adaptation='none')
    result = identify(ROBOT, [load_log(bag, ROBOT) for bag in bags], 'staged', recipe)
    precision = precision_of(design_criteria(ROBOT))
    assert result.estimate.not_excited == ()
    assert precision.names == result.estimate.names
    true = true_base(ROBOT, load_truth(ROBOT), result.model.reduction)
    error = (result.estimate.values - true) / precision.sizes
    assert np.sqrt(np.mean(error**2)) < ACCURACY
    assert np.abs(error).max() < 3.0 * ACCURACY


def test_an_interrupt_stops_the_motion_and_keeps_its_recording(stage: Stage) -> None:
    client = stage.client
    before = set(stage.folder.iterdir())
    running = subprocess.Popen(
        [sys.executable, '-c', COMMAND, 'session', '--yes', '--accuracy', '0.4', '--swings', '1',
         '--json'],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ))
    try:
        stood = np.array(client.state.position)
        client.wait(lambda: running.poll() is not None
                    or np.abs(client.state.position - stood).max() > 0.1, READY)
        assert running.poll() is None, running.communicate()
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=READY)
    finally:
        running.kill()
    assert running.returncode == 1, err
    found = json.loads(out)
    assert (found['ended'], found['swings'][-1]['code']) == ('stopped', 'CANCELLED'), found
    client.comes_to_rest()
    (bag,) = set(stage.folder.iterdir()) - before
    assert found['recordings'] == [str(bag)]
    assert np.ptp(load_log(bag, ROBOT).position, axis=0).max() > 0.01


class Node:
    """What a node says: one result after the other; ``asked`` are the goals."""

    def __init__(self, *results: Any) -> None:
        self.results, self.asked = list(results), list[Excite.Goal]()

    def called(self, goal: Excite.Goal, feedback: Callable[[Any], None],
               stopping: Callable[[], bool]) -> Excite.Result:
        self.asked.append(goal)
        feedback(Excite.Feedback(segment='design'))
        result = self.results.pop(0)
        if isinstance(result, Exception):
            raise result
        if callable(result):
            result = result()
        return result

    def wake(self) -> None:
        """Nothing waits here."""

    @contextmanager
    def calling(self, *_: Any) -> Iterator[Node]:
        yield self


def shown(**given: Any) -> Excite.Result:
    return Excite.Result(success=True, plan='dry-run-1', duration=40.0, **given)


def done(bag: str, code: Code = Code.SUCCESS) -> Excite.Result:
    return Excite.Result(success=code is Code.SUCCESS, code=int(code), recording=bag)


def over(code: Code, *missing: str) -> Excite.Result:
    return Excite.Result(code=int(code), message=code.name, largest_deviation=0.2,
                         out_of_reach=list(missing))


def ran(node: Node, monkeypatch: pytest.MonkeyPatch, agrees: bool = True) -> dict[str, Any]:
    monkeypatch.setattr(session_client, 'calling', node.calling)
    operator = Operator(lambda _: agrees, lambda *_: None)
    return run_session('node', Session({'accuracy': 0.1}, 100.0, ('old',)), operator, 1.0)


def interrupted() -> Excite.Result:
    os.kill(os.getpid(), signal.SIGINT)
    return done('a', Code.CANCELLED)


@pytest.mark.parametrize(('results', 'ended', 'bags'), [
    ([shown(), done('a'), over(Code.ACCURACY_MET)], 'met', ['old', 'a']),
    ([over(Code.OUT_OF_REACH, 'Ia3')], 'out of reach', ['old']),
    ([shown(), done('a'), over(Code.OUT_OF_REACH, 'Ia3'), over(Code.OUT_OF_REACH, 'Ia3')],
     'out of reach', ['old', 'a']),
    ([shown(), done('a'), shown(), done('b'), shown(), done('c'), shown()], 'out of time',
     ['old', 'a', 'b', 'c']),
    ([shown(), done('a'), shown(), done('b'), shown(), done('c'), over(Code.ACCURACY_MET)], 'met',
     ['old', 'a', 'b', 'c']),
    ([shown(), done('a'), over(Code.OUT_OF_REACH, 'Ia3'), shown()], 'out of time', ['old', 'a']),
    ([shown(), done('a', Code.TRACKING_ERROR)], 'failed', ['old', 'a']),
    ([shown(), done('a'), over(Code.EFFORT_PREDICTED)], 'failed', ['old', 'a']),
    ([shown(), NotAnswered('gone')], 'node silent', ['old']),
    ([shown(), interrupted], 'stopped', ['old', 'a']),
])
def test_how_sessions_end(
    results: list[Any], ended: str, bags: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    node = Node(*results)
    handlers = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    found = ran(node, monkeypatch)
    assert (found['ended'], found['recordings'], found['ok']) == (ended, bags, ended == 'met')
    assert found['out_of_reach'] == (['Ia3'] if ended == 'out of reach' else [])
    assert not node.results, 'nothing is asked for that is not needed'
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == handlers
    left, known, before = 100.0, ['old'], None
    for goal in node.asked:
        if goal.dry_run:
            options = load_yaml(goal.options, 'options', ValueError)
            whole = left < 1.0 or (before is not None and before.dry_run)
            assert options == {'accuracy': 0.1, 'procedure': 'adaptive',
                               'longest': 100.0 if whole else left, 'data': known}
            assert not goal.trajectory
        else:
            assert (goal.trajectory, goal.options) == ('dry-run-1', ''), 'what was shown'
            left, known = left - 40.0, bags[:len(known) + 1]
        before = goal


def test_session_moves_nothing_when_the_operator_declines(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node(shown())
    found = ran(node, monkeypatch, agrees=False)
    assert (found['ended'], found['swings']) == ('declined', []) and len(node.asked) == 1


def test_a_node_that_is_not_there_is_named(
    ros_domain: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(['session', '--yes', '--node', 'nobody', '--timeout', '0.3']) == 1
    error = capsys.readouterr().err
    assert 'no action /nobody/excite within 0.3 s: check that the node runs' in error


def test_wrong_options_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for more, said in (
        ([], 'somebody has to agree to every motion'),
        (['--yes', '--longest', '0'], "option 'longest'"),
        (['--yes', '--accuracy', '-1'], "option 'accuracy'"),
        (['--yes', '--timeout', 'nan'], "option 'timeout'"),
        (['--yes', '--options', '{data: [a]}'], "option 'data' is not one of --options"),
        (['--yes', '--options', '{spiral: 1}'], "unknown option 'spiral'"),
    ):
        assert main(['session', *more]) == 2
        assert said in capsys.readouterr().err, more


def test_the_operator_is_shown_each_motion(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = iter(['y', 'n', ''])
    monkeypatch.setattr('builtins.input', lambda _: next(answers))
    terminal = Terminal()
    asked = Excite.Result(message="'joint_1' swings 3 times", warnings=['no floor'],
                          total_duration=12.0)
    assert [verb.agreed(asked, False, terminal) for _ in range(3)] == [True, False, False]
    said = capsys.readouterr().err
    assert "'joint_1' swings 3 times" in said and 'no floor' in said and '12 s' in said


def test_after_swings_the_motion_to_judge_by_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    swing = {'duration': 8.0, 'expected': 0.1, 'code': 'SUCCESS'}
    result = {'ended': 'met', 'message': 'met', 'largest_deviation': 0.1, 'accuracy': 0.1,
              'out_of_reach': [], 'recordings': ['a'], 'node': '/cell/excitation'}
    for swings in ([swing], []):
        verb.show({**result, 'swings': swings}, Terminal())
        said = capsys.readouterr().out
        assert ('robot-dynid excite --node /cell/excitation --options "{purpose: validation}"'
                in said) == bool(swings)
