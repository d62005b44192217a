"""The exceptions of the package: one family, so callers can catch all of it at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, TypeVar

Arguments = ParamSpec('Arguments')
Result = TypeVar('Result')

#: what users pass on to functions, by class, and what makes it
MADE_BY = {'RobotModel': 'load_robot(name or path)', 'RawLog': 'load_log(path, robot)',
           'Recipe': 'Recipe(...) or read_recipe(path)',
           'IdentifiedModel': 'IdentifiedModel.load(path)'}
#: characters of a message; what a file holds is quoted in it, whatever its length
MESSAGE = 4000


def clipped(text: str, length: int = 80) -> str:
    """Return a text of at most ``length`` characters, the middle left out."""
    if len(text) <= length:
        return text
    half = (length - 5) // 2
    return f'{text[:half]} ... {text[-half:]}'


def printable(text: str) -> str:
    """Return a text with what a terminal might obey, or hide, in backslash form.

    These are control characters and marks of writing direction. Line feeds and tabs stay.
    """
    return '\n'.join(line if line.isprintable() else ''.join(
        c if c.isprintable() or c == '\t' else repr(c)[1:-1] for c in line)
        for line in text.split('\n'))


#: distributions by the names of their modules, where these differ
DISTRIBUTIONS = {'sklearn': 'scikit-learn', 'yaml': 'PyYAML'}


class DynIdError(Exception):
    """The data, the robot or the model does not allow what was asked (exit code 1).

    Its message is one line, also where it quotes those of libraries and files.
    """

    def __init__(self, message: str = '') -> None:
        super().__init__(clipped(' '.join(map(str.strip, message.splitlines())), MESSAGE))


class UsageError(DynIdError):
    """The call itself is wrong: an unknown name, an impossible option (exit code 2)."""


class RobotError(DynIdError):
    """The robot description is broken or describes something outside the scope."""


class DataError(DynIdError):
    """The recorded data cannot be used; the message names file, channel and remedy.

    ``findings`` are those that recordings were refused for, see `plausibility.finding`.
    """

    def __init__(self, message: str = '', findings: tuple[Any, ...] = ()) -> None:
        super().__init__(message)
        self.findings = findings


class ModelError(DynIdError):
    """The identified model is incomplete, damaged or belongs to another robot."""


class MissingDependency(DynIdError):
    """An optional library is absent; the message says how to install it."""

    @classmethod
    def of(cls, purpose: str, extra: str) -> MissingDependency:
        """Return the error for ``purpose`` ("a report needs Plotly") and the extra with it."""
        return cls(f"{purpose}: pip install 'robot_dynid[{extra}]'")


class Cancelled(DynIdError):
    """The caller asked a long computation to stop."""


class UnexpectedError(DynIdError):
    """A fault of this software, or no memory left; the exception it stands for is its cause."""

    @classmethod
    def of(cls, error: Exception) -> DynIdError:
        """Return the error that stands for one outside the family, with what to do."""
        if isinstance(error, MemoryError):
            return cls('not enough memory: give less data at once')
        library = (getattr(error, 'name', None) or '').partition('.')[0]
        if isinstance(error, ModuleNotFoundError) and not library.startswith('robot_dynid'):
            return MissingDependency(f'the Python library {library} is not installed: pip install '
                                     f'{DISTRIBUTIONS.get(library, library)}')
        return cls(f'unexpected {type(error).__name__}: {error}; this is a fault of robot_dynid: '
                   'report it with the command and its input')


def reported(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Return a public function that raises nothing outside the family.

    A call with other arguments, or others than MADE_BY makes, is a UsageError. What else gets so
    far is a fault of this software; it becomes an UnexpectedError whose cause it is.
    """
    expected, annotations = signature(function), getattr(function, '__annotations__', {})

    @wraps(function)
    def _reported(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        try:
            bound = expected.bind(*args, **kwargs)
        except TypeError as error:
            raise UsageError(_misused(function.__name__, tuple(expected.parameters), str(error),
                                      kwargs)) from None
        try:
            return function(*args, **kwargs)
        except DynIdError:
            raise
        except Exception as error:
            wrong = [text for name, value in bound.arguments.items()
                     if (text := _of_another_kind(value, annotations.get(name)))]
            if wrong:
                raise UsageError(f'{function.__name__}: {wrong[0]}') from error
            raise UnexpectedError.of(error) from error

    return _reported


def _of_another_kind(value: Any, annotation: Any) -> str:
    """Return the message for a value whose class differs from its annotation, or ''."""
    kinds = re.findall(r'\w+', str(annotation))
    if not hasattr(value, 'joints'):  # what a reader needs of a robot
        kinds = ['RobotModel' if kind == 'HasJoints' else kind for kind in kinds]
    for kind in (one for one in kinds if one in MADE_BY):
        several = 'Sequence' in kinds
        values = value if several and isinstance(value, Sequence) else [value]
        for one in values if value is not None or 'None' not in kinds else ():
            classes = [base.__name__ for base in type(one).__mro__]
            if kind not in classes or (several and not hasattr(value, '__getitem__')):
                return f'{"a list of" if several else "a"} {kind} is expected, as ' \
                    f'{MADE_BY[kind]} gives, not {clipped(repr(one))}'
    return ''


def _misused(name: str, takes: tuple[str, ...], error: str, given: Mapping[str, Any]) -> str:
    """Return the message for a call with wrong arguments; it lists the valid ones."""
    settings = ', '.join(f'{key}={value!r}' for key, value in given.items() if key not in takes)
    hint = f'; settings belong to recipe=Recipe({settings})' if settings and 'recipe' in takes \
        else ''
    return clipped(f'{name}: {error}; its arguments are {", ".join(takes)}{hint}', MESSAGE)


class RefusedJointWarning(UserWarning):
    """A model is used that has refused joints; the message names them and the reasons."""


class ExportWarning(UserWarning):
    """A simulator or controller is given a model of which it cannot hold all."""
