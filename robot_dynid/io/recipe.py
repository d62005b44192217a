"""Recipe files."""

from __future__ import annotations

from pathlib import Path

import yaml

from robot_dynid.errors import UsageError
from robot_dynid.identification.recipe import Recipe, recipe_from_dict


def read_recipe(path: str | Path) -> Recipe:
    """Read a recipe YAML. Raises UsageError naming file, key and remedy."""
    try:
        text = Path(path).read_text(encoding='utf-8')
    except OSError as error:
        raise UsageError(f'{path}: cannot be read ({error.strerror})') from None
    return parse_recipe(text, str(path))


def parse_recipe(text: str, source: str = 'recipe') -> Recipe:
    """Read a recipe from YAML text; empty text is the default recipe."""
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UsageError(f'{source}: not valid YAML ({error})') from None
    if content is None:
        return Recipe()
    if not isinstance(content, dict):
        raise UsageError(f'{source}: expected a mapping of keys to values')
    return recipe_from_dict(content, source)
