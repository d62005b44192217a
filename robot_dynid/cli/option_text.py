"""Options as YAML text or file, for what would need too many flags."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from robot_dynid.errors import UsageError


def with_text(flags: Mapping[str, Any], text: str | None) -> dict[str, Any]:
    """Return the options given as ``flags`` and those of a YAML ``text``, or file of that name.

    Raises UsageError when it is no mapping, or when an option is given in both ways.
    """
    if text is None:
        return dict(flags)
    where = f'{text}: ' if Path(text).suffix in ('.yaml', '.yml') else ''
    try:
        content = yaml.safe_load(Path(text).read_text(encoding='utf-8') if where else text)
    except OSError as error:
        raise UsageError(f'{where}cannot read the options: {error.strerror}') from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise UsageError(f'{where}options are not YAML: {error}') from error
    if not isinstance(content, Mapping):
        raise UsageError(f"{where}options must be a mapping such as '{{dwell: 2, poses: 30}}'")
    twice = [name for name in content if name in flags]
    if twice:
        raise UsageError(f"option '{twice[0]}' is given as --{twice[0]} and in --options")
    return {**content, **flags}
