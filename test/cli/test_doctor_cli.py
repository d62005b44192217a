"""cli/doctor.py: what is watched for how long, what a running robot needs, and next steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from robot_dynid.cli import doctor
from robot_dynid.cli.main import main, parser
from robot_dynid.errors import UsageError
from robot_dynid.setting_up.diagnosis import ERROR, OK, WARN, Diagnosis


def run(monkeypatch: pytest.MonkeyPatch, items: list[Diagnosis], *words: str
        ) -> tuple[dict[str, Any], list[Any]]:
    """Return the result where the installation has these diagnoses, and what was looked at."""
    asked: list[Any] = []
    monkeypatch.setattr(doctor, 'environment', lambda needs_ros: (
        asked.append(needs_ros), list(items))[1])
    monkeypatch.setattr(doctor, 'live', lambda robot, arguments: (
        asked.append((robot.name, arguments.topic, arguments.controller, arguments.seconds)),
        [Diagnosis('live', OK, 'robot', 'runs')])[1])
    arguments = parser(('doctor',)).parse_args(['doctor', *words])
    return doctor.run(arguments, None), asked  # type: ignore[arg-type]


def diagnosis(name: str, level: Any) -> Diagnosis:
    return Diagnosis(name, level, 'here', 'is so')


@pytest.mark.parametrize(('name', 'level', 'ok', 'looked'), [
    ('dds', OK, True, True), ('dds', WARN, True, True), ('dds', ERROR, False, False),
    ('disk', ERROR, False, True), ('kernels', ERROR, False, False)])
def test_a_robot_is_looked_at_unless_what_it_needs_is_wrong(
    name: str, level: Any, ok: bool, looked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, asked = run(monkeypatch, [diagnosis(name, level)], '--robot', 'planar_3r')
    assert asked == [True, *([('planar_3r', 'joint_states', 'joint_trajectory_controller', 3.0)]
                             if looked else [])]
    assert found['ok'] is ok
    assert [one['name'] for one in found['diagnoses']] == [name, *(['live'] if looked else [])]
    assert run(monkeypatch, [diagnosis(name, level)])[1] == [False]


@pytest.mark.parametrize(('seconds', 'allowed'), [
    ('0.49', False), ('0.5', True), ('600', True), ('601', False)])
def test_topics_are_watched_for_half_a_second_to_ten_minutes(
    seconds: str, allowed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ('--robot', 'planar_3r', '--seconds', seconds, '--topic', 'a', '--controller', 'b')
    if allowed:
        assert run(monkeypatch, [], *words)[1][1] == ('planar_3r', 'a', 'b', float(seconds))
    else:
        with pytest.raises(UsageError, match="option 'seconds'"):
            run(monkeypatch, [], *words)


@pytest.mark.parametrize('data', [True, False])
def test_init_says_what_comes_next(
    data: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    urdf = Path('arm.urdf')
    urdf.write_text(
        '<robot name="arm"><link name="a"/><link name="b"><inertial><mass value="1"/><inertia '
        'ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        '<joint name="j" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/>'
        '<limit lower="-1" upper="1" effort="9" velocity="2"/></joint></robot>')
    Path('answers.yaml').write_text(
        'driver: other\neffort_kind: torque\ntopic: /js\ncontroller: jtc\n')
    words = ['init', 'arm.urdf', '--answers', 'answers.yaml', '--out', 'x.yml']
    monkeypatch.setattr('robot_dynid.setting_up.live.recording_diagnoses', lambda *_: [])
    assert main([*words, *(['--data', 'a run.csv'] if data else [])]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    identify = (f"robot-dynid identify {chr(39) + 'a run.csv' + chr(39) if data else 'BAG'} "
                '--robot x.yml --recipe x.recipe.yaml --out model.yaml')
    rest = ['robot-dynid doctor --robot x.yml --topic /js --controller jtc',
            'robot-dynid design x.yml --scale 0.5 --out first.trajectory.yaml',
            'ros2 launch robot_dynid excite.launch.py robot:=x.yml controller:=jtc '
            'joint_states:=/js']
    assert lines[lines.index('next:') + 1:] == ['robot-dynid base x.yml', *(
        [identify, *rest] if data else [*rest, identify])]
    assert Path('x.recipe.yaml').exists()
    assert main([*words[:-1], 'x.txt']) == 2
    assert '--out x.txt: a robot YAML ends with .yaml' in capsys.readouterr().err
