"""YAML text to plain values: one reader for every file, option and request.

Its plain values are None, bool, int, float, str, list and dict with scalar keys. Nothing else is
made of a text, whatever its tags say: no dates, no merge keys, no objects. Time and memory are
bounded by the length of the text and by NODES, also where aliases repeat parts of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from robot_dynid.errors import DynIdError, clipped

#: values of a text, those behind aliases counted as often as they appear
NODES = 500_000
#: lists and mappings inside each other
MOST_NESTING = 32
#: characters from which lists are broken into lines
LINE_WIDTH = 99
#: digits of a whole number
MOST_DIGITS = 300

Loader = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)

_WORDS = {'': None, '~': None, 'null': None, 'Null': None, 'NULL': None,
          **{w: v for v, words in ((True, ('true', 'yes', 'on')), (False, ('false', 'no', 'off')))
             for word in words for w in (word, word.capitalize(), word.upper())}}
_WHOLE = re.compile(r'[-+]?[0-9]+')
_FLOAT = re.compile(r'[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?')
_SPECIAL = re.compile(r'([-+]?)\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)')


class YamlError(Exception):
    """The text is no YAML, or none that is read here; its words begin with the place."""


@dataclass
class _Open:
    """A list or mapping whose end has not come."""

    value: Any
    anchor: str | None
    nodes: int = 1
    keys: list[Any] = field(default_factory=list)


def load_yaml(text: str, source: str, error: type[DynIdError]) -> Any:
    """Return the plain value of ``text``; that of an empty text is None.

    Raises ``error``, whose message begins with ``source``, for what is no YAML, has tags, merge
    keys or a key twice, or is nested deeper than MOST_NESTING or larger than NODES.
    """
    try:
        return parsed(text)
    except YamlError as problem:
        raise error(f'{source}: {problem}') from None


def parsed(text: str) -> Any:
    """Return the plain value of ``text``. Raises YamlError."""
    reader = _Reader()
    try:
        for event in yaml.parse(text, Loader=Loader):
            reader.take(event)
    except yaml.YAMLError as problem:
        mark = getattr(problem, 'problem_mark', None)
        place = '' if mark is None else f'line {mark.line + 1}, column {mark.column + 1}: '
        words = getattr(problem, 'problem', None) or str(problem)
        raise YamlError(f'not valid YAML: {place}{clipped(words)}') from None
    except UnicodeError:
        raise YamlError('not valid YAML: contains characters that are not text') from None
    return reader.result


def yaml_text(value: Any) -> str:
    """Return a text that `load_yaml` turns into ``value`` again; keys keep their order."""
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=LINE_WIDTH,
                          default_flow_style=None, allow_unicode=True)
    return text


def one_line(value: Any) -> str:
    """Return a plain value as YAML in one line, to be pasted into a file or a command."""
    if isinstance(value, dict):
        pairs = (f'{one_line(key)}: {one_line(one)}' for key, one in value.items())
        return f'{{{", ".join(pairs)}}}'
    if isinstance(value, (list, tuple)):
        return f'[{", ".join(map(one_line, value))}]'
    if isinstance(value, str):
        plain = re.fullmatch(r'[^\W\d][\w./-]*(?: [\w./-]+)*', value)
        return value if plain and _unquoted(value) is value else \
            "'" + value.replace("'", "''") + "'"
    return yaml_text(value).removesuffix('...\n').strip()


class _Dumper(getattr(yaml, 'CSafeDumper', yaml.SafeDumper)):  # type: ignore[misc]
    """Quotes every text that would be read as a word or number."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write repeated values out."""
        return True


def _represent_text(dumper: Any, text: str) -> Any:
    """Represent a text; bytes of file names that are none stand in backslash form."""
    text = text.encode('utf-8', 'backslashreplace').decode()
    plain = _unquoted(text)
    return dumper.represent_scalar('tag:yaml.org,2002:str', text,
                                   style=None if plain is text else "'")


_Dumper.add_representer(str, _represent_text)


class _Reader:
    """Builds the value from the parser's events; a stack of its own, so depth costs nothing."""

    def __init__(self) -> None:
        self.result: Any = None
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._nodes = 0
        self._documents = 0

    def take(self, event: Any) -> None:
        """Take the next event."""
        kind = type(event).__name__
        if kind == 'ScalarEvent':
            self._plain(event)
            self._add(_scalar(event), event, 1)
            self._note(event.anchor, self._last, 1)
        elif kind in ('MappingStartEvent', 'SequenceStartEvent'):
            self._plain(event)
            if len(self._open) == MOST_NESTING:
                raise YamlError(f'{_place(event)}nested more than {MOST_NESTING} deep')
            self._count(event, 1)
            self._open.append(_Open({} if kind[0] == 'M' else [], event.anchor))
        elif kind in ('MappingEndEvent', 'SequenceEndEvent'):
            ended = self._open.pop()
            self._nodes -= ended.nodes  # counted again, as one, by the list or mapping around it
            self._add(ended.value, event, ended.nodes)
            self._note(ended.anchor, ended.value, ended.nodes)
        elif kind == 'AliasEvent':
            if event.anchor not in self._anchors:
                raise YamlError(f'{_place(event)}no value has the anchor &{clipped(event.anchor)}')
            value, nodes = self._anchors[event.anchor]
            self._add(value, event, nodes)
        elif kind == 'DocumentStartEvent':
            self._documents += 1
            if self._documents > 1:
                raise YamlError(f'{_place(event)}a second document begins; give one only')

    def _plain(self, event: Any) -> None:
        if event.tag is not None:
            raise YamlError(f'{_place(event)}tags such as {clipped(event.tag)} are not read')

    def _count(self, event: Any, nodes: int) -> None:
        self._nodes += nodes
        if self._nodes > NODES:
            raise YamlError(f'{_place(event)}more than {NODES} values')

    def _note(self, anchor: str | None, value: Any, nodes: int) -> None:
        if anchor is not None:
            self._anchors[anchor] = value, nodes

    def _add(self, value: Any, event: Any, nodes: int) -> None:
        """Put a value, which stands for so many, where it belongs."""
        self._count(event, nodes)
        self._last = value
        if not self._open:
            self.result = value
            return
        inner = self._open[-1]
        inner.nodes += nodes
        if isinstance(inner.value, list):
            inner.value.append(value)
        elif inner.keys:
            inner.value[inner.keys.pop()] = value
        elif isinstance(value, (list, dict)):
            raise YamlError(f'{_place(event)}a list or mapping cannot be a key')
        elif value == '<<':
            raise YamlError(f'{_place(event)}merge keys (<<) are not read; write the values out')
        elif value in inner.value:
            raise YamlError(f'{_place(event)}key {clipped(str(value))} appears twice')
        else:
            inner.keys.append(value)


def _place(event: Any) -> str:
    mark = event.start_mark
    return '' if mark is None else f'line {mark.line + 1}, column {mark.column + 1}: '


def _scalar(event: Any) -> Any:
    """Return the value of a scalar."""
    text: str = event.value
    if event.style in ("'", '"', '|', '>'):
        return text
    if len(text) > MOST_DIGITS and _WHOLE.fullmatch(text):
        raise YamlError(f'{_place(event)}a number of more than {MOST_DIGITS} digits')
    return _unquoted(text)


def _unquoted(text: str) -> Any:
    """Return the value of a text without quotes: itself, a word or a number."""
    if text in _WORDS:
        return _WORDS[text]
    if _WHOLE.fullmatch(text):
        return int(text) if len(text) <= MOST_DIGITS else text
    if _FLOAT.fullmatch(text):
        return float(text)
    if _SPECIAL.fullmatch(text):
        return float(text.replace('.', ''))
    return text
