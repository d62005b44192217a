"""execution/clocks.py: a program that is held up does not blame the robot, and does not overlook a
fault either."""

from dataclasses import replace

import numpy as np
import pytest
from execution_bench import HARD, JOINTS, PERIOD, RULES, Bench
from pytest import approx

from robot_dynid.execution.clocks import CLOCK_LOOK, EXCUSE, Attention, StampClock
from robot_dynid.execution.guards import Code, JointStates
from robot_dynid.execution.segment import Cancel, Hold, Send

WHOLE = replace(HARD, pacing=replace(HARD.pacing, lookahead=0.0))


def looking(until, begin=0.0):
    """Return an attention with a look every CLOCK_LOOK s."""
    attention = Attention()
    for k in range(round((until - begin) / CLOCK_LOOK) + 1):
        assert attention.look(begin + k * CLOCK_LOOK) == 0.0
    return attention


def test_ages_are_true_while_there_are_looks():
    assert looking(1.0).age(0.3, 1.0) == approx(0.7)


def test_time_held_up_does_not_count_until_waiting_messages_must_have_come():
    attention = looking(1.0)
    assert attention.look(3.0) == approx(2.0)
    assert attention.age(0.9, 3.0) == approx(0.1 + CLOCK_LOOK)
    assert attention.age(2.5, 3.0) == approx(0.0)
    assert attention.age(0.9, 3.0 + 0.9 * EXCUSE) == approx(0.1 + CLOCK_LOOK + 0.9 * EXCUSE)
    assert attention.age(0.9, 3.0 + 1.1 * EXCUSE) == approx(2.1 + 1.1 * EXCUSE)
    attention.begin(3.2)
    assert attention.age(0.9, 3.2) == approx(2.3)


def test_stamps_say_when_a_message_was_true_however_late_it_comes():
    clock = StampClock()
    assert clock.time(100.000, 7.0) == approx(100.0)
    assert clock.time(100.302, 7.002) == approx(100.002, abs=1e-3), 'delayed by 0.3 s'
    assert clock.time(100.310, 7.309) == approx(100.309, abs=1e-3)
    assert clock.time(100.311, 7.314) == approx(100.311), 'never later than it came'
    assert clock.time(100.4, 0.0) == 100.4, 'no stamp'
    assert clock.time(102.9, 7.32) == approx(100.317, abs=1e-2), 'it waited for 2.6 s'
    assert clock.time(103.0, 10.0) == approx(103.0, abs=0.02)
    assert clock.time(103.1, 3.0) == approx(103.1), 'its clock was set back'
    assert clock.time(103.2, 30.0) == approx(103.2), 'and forward'


def test_a_clock_that_runs_slower_is_followed():
    clock, last = StampClock(), 0.0
    for k in range(1, 100_000):
        last = clock.time(0.01 * k, 0.01 * k * (1.0 - 1e-4))
    assert last == approx(0.01 * k, abs=1e-3)


def held_up(bench, seconds):
    """Let robot and controller go on while the node is held up, then give it the latest state."""
    bench.node_on = False
    bench.run(seconds - PERIOD)
    bench.node_on = True
    return bench


@pytest.mark.parametrize('length', [0.05, 0.12, 0.3])
def test_a_node_that_is_held_up_again_and_again_does_not_blame_the_robot(length):
    bench = Bench(WHOLE).start()
    while bench.outcome is None:
        held_up(bench, length).run(2.0 * PERIOD)
    assert bench.outcome.code is Code.SUCCESS, bench.outcome.text


@pytest.mark.parametrize('length', [0.12, 0.3, 0.6])
def test_execution_waits_for_queued_messages_after_a_hold_up(length):
    bench = held_up(Bench(WHOLE).start().run(2.0), length)
    assert bench.execution.tick(bench.now) == ()
    assert bench.run().outcome.code is Code.SUCCESS, bench.outcome.text


@pytest.mark.parametrize('length', [0.05, 0.12, 0.3])
def test_a_robot_that_dies_is_missed_by_a_node_that_is_held_up_again_and_again(length):
    bench = Bench(WHOLE).start().run(2.0)
    bench.states_on, died, lost = False, bench.now, 0.0
    while bench.outcome is None and bench.now < died + 3.0:
        held_up(bench, length)
        bench.step()
        lost += length
    assert bench.outcome.code is Code.STALE_STATES
    timeout, at = RULES.settings.state_timeout, bench.first(Cancel)[0]
    bound = min(lost, EXCUSE + 2.0 * length)  # what is excused, and until the next look
    assert timeout < at - died < timeout + bound + 2.5 * PERIOD


def late(bench, stamp):
    """Deliver the state of 0.2 s ago, with or without its stamp."""
    bench.start().run(2.0)
    at, true = bench.now, bench.position
    bench.node_on = False
    bench.run(0.2)
    assert np.max(np.abs(bench.position - true)) > 0.15
    bench.states.update(bench.now, JOINTS, at + 0.5 * PERIOD if stamp else 0.0,
                        (true, bench.velocity, bench.effort))
    return bench.execution.on_state(bench.now)


def test_a_state_is_compared_with_the_path_when_it_was_measured():
    fast = replace(WHOLE, tolerances=replace(WHOLE.tolerances, tracking=np.full(2, 0.03)))
    assert late(Bench(fast), True) == ()
    bench = Bench(fast)
    assert Cancel() in late(bench, False)
    assert bench.do((Cancel(),)).run().outcome.code is Code.TRACKING_ERROR
    bench = Bench(fast)
    bench.start().run(2.0)
    bench.offset[1] = 0.5
    bench.states.update(bench.now + 0.2, JOINTS, bench.now + 0.5 * PERIOD,
                        (bench.position + bench.offset, bench.velocity, bench.effort))
    assert Cancel() in bench.execution.on_state(bench.now + 0.2)


def test_the_speed_is_the_way_by_the_time_of_the_stamps():
    states = JointStates(('a',))
    for k in range(10):
        states.update(1.0 + 0.02 * k + 0.015 * (k % 2), ('a',), 0.02 * (k + 1),
                      ([0.02 * k], [], []))
    assert states.speed[0] == approx(1.0, rel=0.01)


@pytest.mark.parametrize('rules', [RULES, WHOLE])
def test_a_frozen_node_blames_itself_and_the_robot_rests_on_its_path(rules):
    bench = held_up(Bench(rules).start().run(2.0), 2.0).run()
    assert bench.outcome.code is Code.NODE_DELAYED
    assert 'this node was held up for 2.0' in bench.outcome.text
    assert bench.outcome.text.endswith('stopped along the path, the robot holds')
    assert not any(isinstance(command, Cancel) for _, command in bench.log)


class Backlog:
    """Messages of robot and controller while the node is frozen, by their stamps."""

    def __init__(self, bench):
        self.bench, self.clock, self.waiting = bench, StampClock(), []
        self.clock.time(bench.now, bench.now)

    def freeze(self, seconds):
        """Let robot and controller go on; their messages wait."""
        bench = self.bench
        bench.node_on = False
        for _ in range(round(seconds / PERIOD)):
            bench.step()
            since, reference = bench.now - bench.held_since, bench.position
            if bench.goal is not None:
                since = bench.now - bench.goal_start
                reference = bench.goal.sample(since).position[0]
            self.waiting.append((bench.now, since, reference, bench.position, bench.velocity))
        bench.node_on = True
        return self

    def deliver(self, count):
        """Give the node the first ``count`` of them; the middleware had no room for the others."""
        bench = self.bench
        for stamp, since, reference, position, velocity in self.waiting[:count]:
            bench.execution.on_controller_state(
                bench.now, since, reference, self.clock.time(bench.now, stamp))
            bench.do(bench.execution.react(bench.now))
            bench.states.update(bench.now, JOINTS, stamp, (position, velocity, bench.effort))
            bench.do(bench.execution.on_state(bench.now))
        return bench


@pytest.mark.parametrize('look_first', [True, False])
@pytest.mark.parametrize('rules', [RULES, WHOLE])
def test_a_node_that_wakes_up_takes_nothing_old_for_the_present(rules, look_first):
    bench = Bench(rules).start().run(2.0)
    backlog = Backlog(bench).freeze(2.0)
    sent = len(bench.log)
    if look_first:
        bench.do(bench.execution.tick(bench.now))
    backlog.deliver(40).run()
    assert bench.outcome.code is Code.NODE_DELAYED
    assert bench.outcome.text.endswith('stopped along the path, the robot holds')
    unwanted = (Cancel, Hold, Send) if rules is RULES else (Cancel, Hold)
    assert not any(isinstance(command, unwanted) for _, command in bench.log[sent:])


def test_a_frozen_node_blames_itself_whatever_the_robot_did_meanwhile():
    bench = Bench(WHOLE).start().run(2.0)
    bench.offset[0] = 2.0 * RULES.tolerances.tracking[0]
    assert held_up(bench, 2.0).run().outcome.code is Code.NODE_DELAYED


def test_a_node_frozen_before_the_answer_does_not_blame_the_controller():
    bench = Bench()
    bench.answer_time = 0.1
    bench.start()
    assert isinstance(bench.log[-1][1], Send)
    bench.states_on = True
    held_up(bench, 2.5)
    assert bench.run().outcome.code is Code.NODE_DELAYED


def test_a_pause_ends_with_nothing_when_the_node_is_frozen():
    bench = Bench(WHOLE).start().run(2.0)
    bench.do(bench.execution.pause(bench.now)).run(2.0)
    held_up(bench, 2.0).run(0.5)
    assert bench.outcome is None
    assert bench.do(bench.execution.resume(bench.now)).run().outcome.code is Code.SUCCESS
