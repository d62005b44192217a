"""robot_dynid_evaluation/bench/many.py: the benchmark of many recordings: sizes, what it measures,
its page."""

from __future__ import annotations

from pathlib import Path

import pytest

from robot_dynid.cli.main import main
from robot_dynid.errors import UsageError
from robot_dynid.io.log import load_log
from robot_dynid.robot.robot_file import load_robot
from robot_dynid_evaluation.bench import many

ROBOT = load_robot('seven_axis')


def row(count: int, hours: float, workers: int, seconds: float) -> dict[str, float]:
    """Return a row as it is measured."""
    found = {'recordings': count, 'hours': hours, 'workers': workers, 'seconds': seconds,
             'processor s': 2.0 * seconds, 'peak MB': 300.0}
    return found | many.growth(found, {**found, 'hours': 0.5, 'recordings': 1,
                                        'processor s': seconds})


def test_the_many_benchmark_runs_its_sizes_and_writes_its_page(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[int] = []

    def identified(data: Path, recipe: Path, workers: int) -> dict[str, float]:
        asked.append(len(list(data.iterdir())))
        return {'seconds': 1.0, 'processor s': 2.0 + asked[-1], 'peak MB': 300.0}

    monkeypatch.setattr(many, 'identified', identified)
    page = tmp_path / 'scale.html'
    assert main(['bench', 'many', '--sizes', '0.01h,3,5', '--out', str(page)]) == 0
    assert asked == [1, 3, 5, 3, 5]
    assert 'processor time' in page.read_text()
    assert main(['bench', 'many', '--sizes', 'much']) == 2
    assert 'such as 1h,2h,10,100' in capsys.readouterr().err
    with pytest.raises(UsageError, match='greater than zero'):
        many.cases('0h')


def test_growth_is_what_comes_with_more() -> None:
    found = row(11, 1.5, 1, 20.0)
    assert found['per hour s'] == pytest.approx(20.0)
    assert found['per recording s'] == pytest.approx(2.0)


def test_recordings_differ(tmp_path: Path) -> None:
    many.write_recordings(tmp_path / 'short', ROBOT, many.Case(many.MOTIONS + 1, 2.0, 100.0, 1))
    first, *_, last = (load_log(path, ROBOT) for path in sorted((tmp_path / 'short').iterdir()))
    assert (first.position == last.position).all()
    assert (first.effort != last.effort).all()
    many.write_recordings(tmp_path / 'long', ROBOT, many.Case(1, 3.0, 100.0, 1))
    assert len(load_log(tmp_path / 'long' / 'bag', ROBOT).time) == 300
