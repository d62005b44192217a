"""Pages of papers and of two encoders: their commands run, one after the other.

Those of the papers take a minute or two together, so they run with `make soak`; `make test` looks
at their options.
"""

from __future__ import annotations

import re
import runpy
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from doc_blocks import check_command

from robot_dynid.cli.main import main, parser
from robot_dynid.identified.model import IdentifiedModel

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / 'docs'
PAGES = [DOCS / 'two_encoders.md', *sorted((DOCS / 'papers').glob('*.md'))]
#: languages of blocks that are run, written to files, and only read: what needs a robot or minutes
LANGUAGES = {'sh', 'yaml', 'python', 'console'}
NAMED = re.compile(r'# (\w+\.yaml)\n')


class Block(NamedTuple):
    """A block of a page and its language."""

    language: str
    text: str

    @property
    def commands(self) -> Iterator[list[str]]:
        """The words of its lines."""
        return (shlex.split(line) for line in self.text.splitlines())


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page in order."""
    return [Block(*one) for one in re.findall(r'^```(\w*)\n(.*?)^```$', page.read_text('utf-8'),
                                              re.M | re.S)]


def run(words: list[str]) -> None:
    """Run a command of a page in this process."""
    if words[0] == 'robot-dynid':
        assert main(words[1:]) == 0, words
    else:
        assert words[0] == 'python', words
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr('sys.argv', words[1:])
            runpy.run_path(words[1], run_name='__main__')


def ids(page: Path) -> str:
    return page.stem


@pytest.mark.parametrize('page', [
    pytest.param(page, marks=[pytest.mark.soak] if page.parent.name == 'papers' else [])
    for page in PAGES], ids=ids)
def test_walkthrough_page_commands_run_in_order(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip('mujoco')
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'examples').symlink_to(ROOT / 'examples')
    for block in blocks(page):
        if block.language == 'yaml' and (name := NAMED.match(block.text)):
            (tmp_path / name[1]).write_text(block.text)
    for block in blocks(page):
        if block.language == 'sh':
            for words in block.commands:
                run(words)
        elif block.language == 'python':
            exec(compile(block.text, page.name, 'exec'), {})
    models = [IdentifiedModel.load(path) for path in tmp_path.glob('*.yaml')
              if 'robot_dynid model' in path.read_text()[:200]]
    identifies = any('identify' in block.text for block in blocks(page))
    assert bool(models) == identifies
    assert not any(model.not_identified for model in models)
    if page.stem == 'two_encoders':
        (model,) = models
        stiffness = [model.standard[f'K{j + 1}'] for j in range(3)]
        assert stiffness == pytest.approx([9e3, 1.2e4, 6e3], rel=0.01)


@pytest.mark.parametrize('page', PAGES, ids=ids)
def test_commands_are_possible(page: Path) -> None:
    found = blocks(page)
    assert {block.language for block in found} <= LANGUAGES
    for block in found:
        for words in block.commands if block.language in ('sh', 'console') else ():
            assert words[0] in ('robot-dynid', 'ros2' if block.language == 'console' else 'python')
            if words[0] == 'robot-dynid':
                parser().parse_args(words[1:])
            elif words[0] == 'ros2':
                check_command(words)


def test_the_page_of_two_encoders_shows_the_example() -> None:
    """All but what a rehearsal pretends is true."""
    import yaml

    shown = next(yaml.safe_load(block.text) for block in blocks(PAGES[0])
                 if block.language == 'yaml')
    example = yaml.safe_load((ROOT / 'examples' / 'arm_two_encoders.yaml').read_text())
    assert shown == {key: value for key, value in example.items() if key != 'simulation'}
