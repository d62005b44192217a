"""Two models of one robot: what changed between them beyond chance, and which predicts better.

    python examples/compare_models.py BEFORE.yaml AFTER.yaml RECORDING

For a robot cell that looks once a month whether a joint drifted; `robot-dynid compare` prints and
draws the same.
"""

import sys

from robot_dynid import IdentifiedModel, load_log, validate
from robot_dynid.identified.comparison import differences


def main(before_file, after_file, recording):
    """Print changes by joint, and errors of both models."""
    before, after = (IdentifiedModel.load(path) for path in (before_file, after_file))
    changes = differences(before, after)
    for change in changes:
        word = 'changed' if change.changed else 'same'
        print(f'{change.joint:>24} {change.effect:>10}: {change.before:8.3f} {change.unit}, '
              f'differs by {change.size:.3f}, {word}')
    drifted = sorted({change.joint for change in changes if change.changed})
    print('joints that changed beyond chance:', ', '.join(drifted) or 'none')

    log = load_log(recording, before.robot)
    for path, model in ((before_file, before), (after_file, after)):
        scores = validate(model, [log]).model['all']
        print(path, ', '.join(f'{joint} {score.relative_error:.1%}'
                              for joint, score in scores.items()))


if __name__ == '__main__':
    main(*sys.argv[1:])
