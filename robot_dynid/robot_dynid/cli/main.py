"""The command line: `robot-dynid VERB ...`, results on stdout, exit codes 0, 1, 2."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import sys
import traceback
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from robot_dynid.cli.terminal import Terminal, printable_streams
from robot_dynid.cli.verbs import VERBS
from robot_dynid.errors import (
    DataError,
    DynIdError,
    MissingDependency,
    RefusedJointWarning,
    UnexpectedError,
    UsageError,
)

DONE, IMPOSSIBLE, MISUSED, INTERRUPTED = 0, 1, 2, 130
PROGRAM = 'robot-dynid'
#: environment variable with which faults of this software are shown in full
TRACEBACK = 'ROBOT_DYNID_TRACEBACK'
EXAMPLES = (
    'robot-dynid identify train.csv --robot ur10e --out M.yaml --report R.html',
    'robot-dynid validate M.yaml test.csv',
    'robot-dynid identify --help',
)
MORE = f"""Exit codes: 0 done, 1 the data or the model does not allow it, 2 usage error,
130 interrupted.
Environment: NO_COLOR=1 no colours, {TRACEBACK}=1 tracebacks.
Completion in a shell: `{PROGRAM} completion bash` (or zsh, fish)."""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are exceptions."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f'{message}; see {self.prog} --help')


def parser(words: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """Return the parser of the verb that ``words`` begin with, else of all verbs.

    Then arguments are declared of those in ``words`` only. Verbs are modules, which may declare
    names of a registry: no call imports more of them than it needs.
    """
    raw = argparse.RawDescriptionHelpFormatter
    top = _Parser(prog=PROGRAM, description='Identify the dynamics of robot arms and use them.',
                  formatter_class=raw, epilog=f'{_listed(EXAMPLES)}\n\n{MORE}')
    top.add_argument('--version', action='store_true', help='print the version')
    verbs = top.add_subparsers(dest='verb', metavar='VERB', parser_class=_Parser)
    for name in words[:1] if words and words[0] in VERBS else VERBS:
        try:
            verb = VERBS[name]
        except MissingDependency:
            continue
        sub = verbs.add_parser(name, help=verb.HELP, description=f'{verb.HELP}.')
        if words is None or name in words:
            verb.add_arguments(sub)
        sub.add_argument('--json', action='store_true',
                         help='print the result as one JSON object')
        sub.add_argument('--quiet', action='store_true',
                         help='print no progress and no notes')
        sub.add_argument('--verbose', action='store_true',
                         help='print everything, as in the report')
        sub.formatter_class = raw
        examples = _listed(getattr(verb, 'EXAMPLES', ()))
        sub.epilog = f'{sub.epilog}\n\n{examples}' if sub.epilog else examples
    return top


def _listed(examples: Iterable[str]) -> str:
    """Return examples as the end of a help text."""
    return '\n'.join(['examples:', *(f'  {example}' for example in examples)])


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    with printable_streams():
        return _answered(argv)


def _answered(argv: Sequence[str] | None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    if '_ARGCOMPLETE' in os.environ:  # the shell asks what could come next
        from robot_dynid.cli.completion import complete

        complete(parser(os.environ.get('COMP_LINE', '').split()))
    as_object = '--json' in words
    try:
        return _run(words)
    except UsageError as error:
        return _failed(error, MISUSED, as_object)
    except DynIdError as error:
        return _failed(error, IMPOSSIBLE, as_object)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return IMPOSSIBLE
    except ModuleNotFoundError as error:
        return _failed(UnexpectedError.of(error), IMPOSSIBLE, as_object)
    except (ImportError, OSError) as error:  # kernels that are not built name what builds them
        return _failed(error, IMPOSSIBLE, as_object)
    except Exception as error:  # the verb's own; those of the library are in the family
        return _failed(UnexpectedError.of(error), IMPOSSIBLE, as_object, error)
    except KeyboardInterrupt:
        print(f'{PROGRAM}: interrupted', file=sys.stderr)
        return INTERRUPTED


def _run(words: list[str]) -> int:
    if words:
        VERBS.require(words[0])
    options = parser(words).parse_args(words)
    options.command = (PROGRAM, *words)
    if options.version:
        from robot_dynid import __version__

        print(f'{PROGRAM} {__version__}')
        return DONE
    if options.verb is None:
        raise UsageError(f'no verb given: choose one of {", ".join(VERBS)}; see {PROGRAM} --help')
    if getattr(options, 'robot', None) is not None:
        from robot_dynid.cli.files import check_robot

        check_robot(options.robot)
    verb, terminal = VERBS[options.verb], Terminal(options.quiet, options.verbose)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', RefusedJointWarning)  # said in other words
        if options.json:
            with contextlib.redirect_stdout(sys.stderr), terminal.progress(options.verb):
                result = verb.run(options, terminal)
            print(as_json(result), flush=True)
        else:
            with terminal.progress(options.verb):
                result = verb.run(options, terminal)
            verb.show(result, terminal)
            sys.stdout.flush()
    return DONE if result.get('ok', True) else IMPOSSIBLE


def _verdict(error: Exception) -> dict[str, Any]:
    """Return the verdict on recordings that were refused, nothing for other errors."""
    if not isinstance(error, DataError) or not error.findings:
        return {}
    from robot_dynid.validation.verdict import refused_recordings

    return {'verdict': refused_recordings(error.findings).plain()}


def _failed(
    error: Exception, code: int, as_object: bool, cause: BaseException | None = None
) -> int:
    cause = cause or error.__cause__
    if os.environ.get(TRACEBACK) and cause is not None:
        traceback.print_exception(cause)
    text = ' '.join(str(error).split()) or type(error).__name__
    if isinstance(error, OSError) and error.filename is not None:
        text = f'{error.filename}: {error.strerror}'
    print(f'{PROGRAM}: {text}', file=sys.stderr)
    if as_object:
        print(as_json({'error': text, 'kind': type(error).__name__, **_verdict(error)}),
              flush=True)
    return code


def plain(value: Any) -> Any:
    """Return ``value`` in types JSON has; NaN and infinity become None."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if hasattr(value, 'tolist'):  # arrays and scalars of NumPy
        return plain(value.tolist())
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):  # names of files may be no text
        return value.encode('utf-8', 'backslashreplace').decode()
    if value is None or isinstance(value, (bool, int)):
        return value
    return str(value)


def as_json(value: Any) -> str:
    """Return one line of JSON; everything in it any parser can read, nothing a terminal obeys."""
    text = json.dumps(plain(value), allow_nan=False, ensure_ascii=False)
    if text.isprintable():
        return text
    return ''.join(c if c.isprintable() else json.dumps(c)[1:-1] if c > '\x7f' else
                   f'\\u{ord(c):04x}' for c in text)
