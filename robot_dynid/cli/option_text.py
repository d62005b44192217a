"""Options as YAML text or file, for what would need too many flags."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from robot_dynid.errors import UsageError
from robot_dynid.files import read_text
from robot_dynid.yaml_text import load_yaml


def with_text(flags: Mapping[str, Any], text: str | None) -> dict[str, Any]:
    """Return the options given as ``flags`` and those of a YAML ``text``, or file of that name.

    Raises UsageError when it is no mapping, or when an option is given in both ways.
    """
    if text is None:
        return dict(flags)
    is_file = Path(text).suffix in ('.yaml', '.yml')
    source = f'{text}: options' if is_file else 'options'
    content = load_yaml(read_text(text) if is_file else text, source, UsageError)
    if not isinstance(content, Mapping):
        raise UsageError(f"{source} must be a mapping such as '{{dwell: 2, poses: 30}}'")
    twice = [name for name in content if name in flags]
    if twice:
        raise UsageError(f"option '{twice[0]}' is given as --{twice[0]} and in --options")
    return {**content, **flags}
