"""io/recording_names.py: recordings for fit and validation, told apart by what bags and names say.
"""

from pathlib import Path

import pytest

from robot_dynid.io.bag_writer import BagWriter
from robot_dynid.io.recording_names import PURPOSE, by_purpose, for_validation


def bag(place: Path, purpose: str | None) -> str:
    with BagWriter(place) as writer:
        if purpose is not None:
            writer.note(PURPOSE, purpose)
    return str(place)


def test_a_bag_says_what_it_is_for_whatever_its_name_is(tmp_path: Path) -> None:
    fit, judge = bag(tmp_path / 'a_validation', 'fit'), bag(tmp_path / 'b', 'validation')
    inside = next(str(file) for file in Path(judge).glob('*.mcap'))
    assert by_purpose([judge, fit, f'{inside}[0:2]']) == ([fit], [judge, f'{inside}[0:2]'])


@pytest.mark.parametrize('text', ['', '{', '[]', 'rosbag2_bagfile_information: 3', None])
def test_names_tell_the_purpose_without_metadata(text: str | None, tmp_path: Path) -> None:
    names = ['run', 'run_validation', 'a.csv', 'a_validation.csv.gz', 'validation_1.csv']
    for name in names[:2]:
        (tmp_path / name).mkdir()
        if text is not None:
            (tmp_path / name / 'metadata.yaml').write_text(text)
    paths = [str(tmp_path / name) for name in names]
    fit, judge = by_purpose([*paths, 's3://bucket/arm_validation'])
    assert fit == [paths[0], paths[2], paths[4]]
    assert judge == [paths[1], paths[3], 's3://bucket/arm_validation']


def test_a_validation_recording_alone_is_fitted() -> None:
    assert by_purpose(['run_validation.csv']) == (['run_validation.csv'], [])


@pytest.mark.parametrize(('path', 'judge'), [
    ('T.yaml', 'T_validation.yaml'), ('/a.b/plan.html', '/a.b/plan_validation.html')])
def test_the_name_of_the_other_one_follows(path: str, judge: str) -> None:
    assert str(for_validation(path)) == judge
