"""execution/guards.py: emergency stop and temperatures: before the motion and during it."""

from dataclasses import replace

from execution_bench import HARD, PERIOD, Bench

from robot_dynid.execution.guards import Code
from robot_dynid.execution.segment import Cancel


def guarded(**settings):
    return replace(HARD, settings=replace(HARD.settings, **settings))


def beating(bench, seconds, period=0.1):
    """Run while the emergency stop says every ``period`` s that it is not pressed."""
    end = bench.now + seconds
    while bench.now < end:
        bench.alarms.note_emergency_stop(bench.now, False)
        bench.run(min(period, end - bench.now))
    return bench


def test_the_emergency_stop_before_and_during_the_motion():
    bench = Bench(guarded(emergency_stop_required=True)).start()
    assert bench.outcome.code is Code.EMERGENCY_STOP
    assert 'no message of it was received' in bench.outcome.text
    assert 'nothing was sent' in bench.outcome.text
    bench = Bench(HARD)
    bench.alarms.note_emergency_stop(bench.now, True)
    assert bench.start().outcome.text == 'the emergency stop is pressed; nothing was sent'
    bench = Bench(guarded(emergency_stop_required=True))
    bench.alarms.note_emergency_stop(bench.now, False)
    beating(bench.start(), 2.0)
    bench.alarms.note_emergency_stop(bench.now, True)
    commands = bench.execution.on_alarm(bench.now)
    assert commands == (Cancel(),)
    assert bench.do(commands).run().outcome.code is Code.EMERGENCY_STOP
    bench = Bench(guarded(emergency_stop_required=True))
    bench.alarms.note_emergency_stop(bench.now, False)
    beating(bench.start(), 2.0)
    bench.alarms.present = False
    assert 'its publisher is gone' in bench.run().outcome.text


def test_the_publisher_of_a_required_emergency_stop_dies_in_mid_motion():
    bench = Bench(guarded(emergency_stop_required=True, emergency_stop_timeout=0.5))
    bench.alarms.note_emergency_stop(bench.now, False)
    beating(bench.start(), 2.0)
    assert bench.outcome is None
    heard = bench.now
    bench.alarms.note_emergency_stop(heard, False)
    bench.run()
    assert bench.outcome.code is Code.EMERGENCY_STOP
    assert 'is required, but sent no message for 0.5' in bench.outcome.text
    assert 'publish it at 10 Hz or more' in bench.outcome.text
    assert 0.5 < bench.first(Cancel)[0] - heard < 0.5 + 2.5 * PERIOD


def test_a_required_emergency_stop_heard_long_ago_forbids_the_motion():
    bench = Bench(guarded(emergency_stop_required=True))
    bench.alarms.note_emergency_stop(bench.now - 0.6, False)
    assert bench.start().outcome.code is Code.EMERGENCY_STOP
    assert 'nothing was sent' in bench.outcome.text
    latched = Bench(guarded(emergency_stop_required=True, emergency_stop_timeout=0.0))
    latched.alarms.note_emergency_stop(latched.now - 1000.0, False)
    latched.start().run(2.0)
    assert latched.outcome is None
    latched.alarms.present = False
    assert 'its publisher is gone' in latched.run().outcome.text


def test_an_emergency_stop_that_came_regularly_must_not_fall_silent_though_not_required():
    bench = Bench(HARD)
    beating(bench, 0.7)
    beating(bench.start(), 1.0).run()
    assert bench.outcome.code is Code.EMERGENCY_STOP
    assert 'was published regularly when the motion began' in bench.outcome.text
    occasional = Bench()
    for _ in range(3):  # a press and its release, heard twice, is no beat
        occasional.alarms.note_emergency_stop(occasional.now, False)
    assert occasional.start().run().outcome.code is Code.SUCCESS
    over = beating(Bench(), 0.7).run(0.6)
    assert over.start().run().outcome.code is Code.SUCCESS
    seldom = Bench()
    beating(seldom, 3.0, period=0.6)
    assert seldom.start().run().outcome.code is Code.SUCCESS


def test_a_hot_joint_is_given_time_to_brake():
    rules = guarded(stop_temperature='path', temperature_limit=70.0, temperature_timeout=1.5)
    bench = Bench(rules).start()
    assert bench.outcome.code is Code.TEMPERATURE
    assert "no temperature of joints 'shoulder', 'elbow'" in bench.outcome.text
    bench = Bench(rules)
    for joint in ('shoulder', 'elbow', 'gripper'):
        bench.alarms.note_temperature(bench.now, joint, 50.0)
    bench.start().run(1.0)
    bench.alarms.note_temperature(bench.now, 'shoulder', 50.0)
    bench.alarms.note_temperature(bench.now, 'elbow', 71.25)
    bench.do(bench.execution.on_alarm(bench.now)).run()
    assert bench.outcome.code is Code.TEMPERATURE
    assert "joint 'elbow' is at 71.2 degrees C (limit 70): let it cool down" in bench.outcome.text
    assert 'stopped along the path' in bench.outcome.text
    assert not any(isinstance(c, Cancel) for _, c in bench.log)


def test_a_thermometer_that_falls_silent():
    bench = Bench(guarded(temperature_limit=70.0, temperature_timeout=1.5))
    for joint in ('shoulder', 'elbow'):
        bench.alarms.note_temperature(bench.now, joint, 50.0)
    bench.start().run(1.0)
    bench.alarms.note_temperature(bench.now, 'elbow', 50.0)
    bench.run()
    assert bench.outcome.code is Code.TEMPERATURE
    assert "no temperature of joint 'shoulder' within the last 1.5 s" in bench.outcome.text
