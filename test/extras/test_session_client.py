"""robot_dynid_extras/session/client.py: what a session asks a node for, and what ends it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')

from robot_dynid.errors import Cancelled
from robot_dynid.execution.guards import Code
from robot_dynid.ros.common.action_caller import NotAnswered
from robot_dynid.ros.common.stop_request import StopRequest
from robot_dynid.yaml_text import load_yaml
from robot_dynid_extras.session import client
from robot_dynid_extras.session.client import Operator, Session, run_session
from robot_dynid_interfaces.action import Excite

Answer = Any


class Node:
    """A node that gives one answer after the other; a function is called, an error raised."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: Answer) -> None:
        self.answers, self.goals, self.stop = list(answers), list[Any](), StopRequest(lambda: None)
        self.places: list[Any] = []

        @contextmanager
        def calling(kind: object, name: str, timeout: float) -> Iterator[Node]:
            self.places.append((kind, name, timeout))
            yield self

        @contextmanager
        def stop_request(wake: object) -> Iterator[StopRequest]:
            yield self.stop

        monkeypatch.setattr(client, 'calling', calling)
        monkeypatch.setattr(client, 'stop_request', stop_request)

    def wake(self) -> None:
        """Do nothing."""

    def called(self, goal: Any, feedback: Callable[[Any], None], stopping: Callable[[], bool]
               ) -> Any:
        """Return the next answer, after half of the way."""
        feedback(Excite.Feedback(segment='swing', fraction=0.5))
        self.goals.append((load_yaml(goal.options, 'o', ValueError) if goal.options else None,
                           goal.trajectory, goal.dry_run, goal.type))
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer() if callable(answer) else answer


def shown(code: Code = Code.SUCCESS, plan: str = 'p1', success: bool = True, **more: Any) -> Any:
    """Return the answer to a dry run."""
    return Excite.Result(success=success, code=int(code), plan=plan, **(
        {'message': f'shown {plan}', 'duration': 12.5, 'largest_deviation': 0.25} | more))


def done(recording: str, success: bool = True, code: Code = Code.SUCCESS) -> Any:
    """Return the answer to a motion."""
    return Excite.Result(success=success, code=int(code), message=f'done {recording}',
                         recording=recording)


def run(node: Node, longest: float = 100.0, agrees: Callable[[Any], bool] = lambda _: True,
        recordings: tuple[str, ...] = ()) -> dict[str, Any]:
    """Run a session."""
    seen: list[tuple[str, float]] = []
    result = run_session('/exciter', Session({'accuracy': 0.2, 'seed': 3}, longest, recordings),
                         Operator(agrees, lambda *stage: seen.append(stage)), 7.0)
    assert node.places == [(Excite, '/exciter/excite', 7.0)]
    assert seen == [('swing', 0.5)] * len(node.goals)
    assert not node.answers
    return result


def options(longest: float, *recordings: str) -> dict[str, Any]:
    """Return the options of a dry run."""
    data = {'data': list(recordings)} if recordings else {}
    return {'accuracy': 0.2, 'seed': 3, 'procedure': 'adaptive', 'longest': longest, **data}


def test_a_session_goes_from_swing_to_swing_until_the_accuracy_is_met(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is planned from the recordings before; what was not recorded takes no time."""
    node = Node(monkeypatch, shown(plan='p1'), done('bag 1'), shown(
        plan='p2', duration=20.0, largest_deviation=0.125), done(''), shown(plan='p3'), done(
        'bag 3'), shown(Code.ACCURACY_MET, '', False, message='met', largest_deviation=0.0625,
                        out_of_reach=['fv2']))
    found = run(node, recordings=('old',))
    assert node.goals == [
        (options(100.0, 'old'), '', True, 'sine-sequence'), (None, 'p1', False, ''),
        (options(87.5, 'old', 'bag 1'), '', True, 'sine-sequence'), (None, 'p2', False, ''),
        (options(87.5, 'old', 'bag 1'), '', True, 'sine-sequence'), (None, 'p3', False, ''),
        (options(75.0, 'old', 'bag 1', 'bag 3'), '', True, 'sine-sequence')]
    swings = found.pop('swings')
    assert found == {'ok': True, 'ended': 'met', 'message': 'met', 'largest_deviation': 0.0625,
                     'out_of_reach': ['fv2'], 'recordings': ['old', 'bag 1', 'bag 3']}
    assert swings[1] == {'shown': 'shown p2', 'duration': 20.0, 'expected': 0.125,
                         'code': 'SUCCESS', 'message': 'done ', 'recording': ''}
    assert [one['recording'] for one in swings] == ['bag 1', '', 'bag 3']


def test_what_is_out_of_reach_of_the_rest_is_asked_of_the_whole_time(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    """Out of time where it would be within reach then; at the beginning it is the whole."""
    beyond = shown(Code.OUT_OF_REACH, '', False, message='beyond', largest_deviation=0.5)
    node = Node(monkeypatch, beyond)
    found = run(node)
    assert (found['ok'], found['ended'], found['message'], found['largest_deviation']) == (
        False, 'out of reach', 'beyond', 0.5)
    assert node.goals == [(options(100.0), '', True, 'sine-sequence')]
    node = Node(monkeypatch, shown(duration=90.0), done('bag'), beyond, shown(message='p2'))
    found = run(node)
    assert [goal[0] for goal in node.goals] == [
        options(100.0), None, options(10.0, 'bag'), options(100.0, 'bag')]
    assert (found['ok'], found['ended'], found['largest_deviation']) == (
        False, 'out of time', None)
    assert found['message'] == 'the 100 s of swings are used up; next: p2'
    node = Node(monkeypatch, shown(duration=100.0), done('bag'), beyond)
    found = run(node)
    assert [goal[0] for goal in node.goals] == [options(100.0), None, options(100.0, 'bag')]
    assert found['ended'] == 'out of reach'


def test_a_session_ends_where_a_motion_is_declined_stopped_or_fails(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    found = run(Node(monkeypatch, shown()), agrees=lambda one: one.plan != 'p1')
    assert (found['ended'], found['message'], found['swings']) == (
        'declined', 'the next motion was declined; nothing moved since', [])
    found = run(Node(monkeypatch, shown(Code.REJECTED, success=False, message='no')))
    assert (found['ended'], found['message']) == ('failed', 'no')
    failed = done('half', False, Code.REJECTED)
    found = run(Node(monkeypatch, shown(), failed))
    assert (found['ended'], found['message'], found['recordings']) == (
        'failed', 'done half', ['half'])
    assert found['swings'][0]['code'] == 'REJECTED'

    def stopped(answer: Any) -> Callable[[], Any]:
        def ask() -> Any:
            node.stop.ask()
            return answer
        return ask

    node = Node(monkeypatch, shown(), stopped(failed))
    found = run(node)
    assert (found['ended'], found['message']) == ('stopped', 'done half')
    node = Node(monkeypatch, stopped(shown()))
    found = run(node)
    assert (found['ended'], found['message']) == ('stopped', 'stopped before the next motion')
    for error in (Cancelled('x'), KeyboardInterrupt()):
        found = run(Node(monkeypatch, shown(), error))
        assert (found['ended'], found['message']) == ('stopped', 'stopped before the next motion')


def test_a_node_that_falls_silent_leaves_what_was_recorded(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the beginning there is nothing to leave."""
    found = run(Node(monkeypatch, shown(), done('bag'), NotAnswered('no answer.')))
    assert (found['ok'], found['ended'], found['recordings']) == (False, 'node silent', ['bag'])
    assert found['message'] == ('no answer. What was recorded of a motion under way is in its '
                                'recording_directory')
    with pytest.raises(NotAnswered):
        run(Node(monkeypatch, NotAnswered('no answer.')))
