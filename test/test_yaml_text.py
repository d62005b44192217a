"""YAML text: plain values only, bounded in depth and size, every refusal with its place."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import yaml

from robot_dynid.errors import ModelError, RobotError
from robot_dynid.yaml_text import YamlError, load_yaml, one_line, parsed, yaml_text

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / 'robot_dynid'
BOMB = '\n'.join(['a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]',
                  *(f'a{i}: &a{i} [{", ".join([f"*a{i - 1}"] * 10)}]' for i in range(1, 20))])


@pytest.mark.parametrize(
    'path', sorted((PACKAGE / 'config').rglob('*.yaml')), ids=lambda p: p.stem)
def test_files_of_the_package_read_as_pyyaml_reads_them(path: Path) -> None:
    text = path.read_text(encoding='utf-8')
    own, other = parsed(text), yaml.safe_load(text)

    def compare(one: object, two: object) -> None:
        assert type(one) is type(two) or isinstance(two, str), (one, two)
        if isinstance(one, dict) and isinstance(two, dict):
            assert list(one) == list(two)
            for key in one:
                compare(one[key], two[key])
        elif isinstance(one, list) and isinstance(two, list):
            assert len(one) == len(two)
            for a, b in zip(one, two, strict=True):
                compare(a, b)
        elif isinstance(one, float) and isinstance(two, str):
            assert one == float(two)  # PyYAML takes 1e-5 for a word
        else:
            assert one == two

    compare(own, other)


@pytest.mark.parametrize(('text', 'value'), [
    ('', None), ('a: 1e6', {'a': 1e6}), ('a: .inf', {'a': math.inf}),
    ('a: -.INF', {'a': -math.inf}),
    ('a: 2020-01-01', {'a': '2020-01-01'}), ('a: 010', {'a': 10}), ('a: 1:30', {'a': '1:30'}),
    ('a: no', {'a': False}), ("a: 'no'", {'a': 'no'}), ('a: ~', {'a': None}),
    ('a: &x [1, 2]\nb: *x', {'a': [1, 2], 'b': [1, 2]}), ('[1, -2.5, +3]', [1, -2.5, 3]),
])
def test_values(text: str, value: object) -> None:
    assert load_yaml(text, 'file', RobotError) == value


@pytest.mark.parametrize(('text', 'words'), [
    ('[' * 60_000 + ']' * 60_000, 'nest'),  # the parser of newer libraries says so itself
    ('[' * 500 + ']' * 500, 'nested more than 32 deep'),
    ('- ' * 500 + 'a', 'nested more than 32 deep'),
    ('[' * 33 + ']' * 33, 'line 1, column 33: nested more than 32 deep'),
    (BOMB, 'more than 500000 values'),
    ('<<: {a: 1}', 'merge keys'), ('a: 1\nb: 2\na: 3', 'line 3, column 1: key a appears twice'),
    ('!!bool q', 'tags such as'), ('a: !!python/object:os.system x', 'tags such as'),
    ('&a [*a]', 'no value has the anchor'), ('? [1]\n: 2', 'cannot be a key'),
    ('a\n---\nb', 'a second document'), ('a: \x07', 'not valid YAML'), ('\ud800', 'characters'),
    ('a:\n- ' + '9' * 301, 'line 2, column 3: a number of more than 300 digits'),
    ('a: [1', "not valid YAML: line 2, column 1: did not find expected ',' or ']'"),
])
def test_refused_with_the_place(text: str, words: str) -> None:
    with pytest.raises(ModelError, match=r'^model\.yaml: ') as caught:
        load_yaml(text, 'model.yaml', ModelError)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(('value', 'text'), [
    ('a b.c/d-e', 'a b.c/d-e'), ('no', "'no'"), ("it's", "'it''s'"), ('1e5', "'1e5'"),
    ('', "''"), (1e-5, '1.0e-05'), (True, 'true'), (None, 'null'), (3, '3'),
    ({'a': [1.0, 'x y'], 'b': {}}, '{a: [1.0, x y], b: {}}'),
    (200 * ['word'], f'[{"word, " * 199}word]'), (300 * 'w', 300 * 'w')])
def test_one_line_is_yaml_without_a_break(value: object, text: str) -> None:
    assert one_line(value) == text and parsed(f'a: {text}') == {'a': value}


def test_half_a_million_values_are_read_and_no_more() -> None:
    # the list itself, one of 999 numbers, 498 times that again, and as many numbers as are left
    start = f'[&a [{"1, " * 998}1], {"*a, " * 498}{"2, " * 997}&b 2, *b'
    assert len(parsed(f'{start}]')) == 1 + 498 + 999
    with pytest.raises(YamlError, match='more than 500000 values'):
        parsed(f'{start}, 2]')


def test_yaml_text_round_trips_through_parsed() -> None:
    words = ['no', '1e5', '<<', 'ü', '0123', '08', '', '9' * 300, '9' * 301, int('9' * 300)]
    value = {'a': [1.0, 1e-5, -3, True, None, *words], 'b': {'c': {}}}
    assert parsed(yaml_text(value)) == value
    deep: object = 1
    for _ in range(32):
        deep = [deep]
    assert parsed(yaml_text(deep)) == deep
