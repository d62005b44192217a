"""Emergency stop and temperatures: before the motion and during it."""

from dataclasses import replace

from execution_bench import RULES, Bench

from robot_dynid.execution.commands import Cancel
from robot_dynid.execution.guards import Code


def guarded(**settings):
    return replace(RULES, settings=replace(RULES.settings, **settings))


def test_the_emergency_stop_before_and_during_the_motion():
    bench = Bench(guarded(emergency_stop_required=True)).start()
    assert bench.outcome.code is Code.EMERGENCY_STOP
    assert 'no message of it was received' in bench.outcome.text
    assert 'nothing was sent' in bench.outcome.text
    bench = Bench()
    bench.alarms.pressed = True
    assert bench.start().outcome.text == 'the emergency stop is pressed; nothing was sent'
    bench = Bench(guarded(emergency_stop_required=True))
    bench.alarms.pressed = False
    bench.start().run(2.0)
    bench.alarms.pressed = True
    commands = bench.execution.on_alarm(bench.now)
    assert commands == (Cancel(),)
    assert bench.do(commands).run().outcome.code is Code.EMERGENCY_STOP
    bench = Bench(guarded(emergency_stop_required=True))
    bench.alarms.pressed = False
    bench.start().run(2.0)
    bench.alarms.present = False
    assert 'publisher went away' in bench.run().outcome.text


def test_a_hot_joint_is_given_time_to_brake():
    rules = guarded(temperature_limit=70.0, temperature_timeout=1.5)
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
    assert "joint 'elbow' has 71.2 degrees C, allowed are 70" in bench.outcome.text
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
