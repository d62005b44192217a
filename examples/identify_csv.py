"""From CSV files to a model: identify, score on a recording that was not fitted, save.

    python examples/identify_csv.py ROBOT.yaml MODEL.yaml TEST.csv TRAIN.csv [TRAIN.csv ...]

A CSV file has the columns time, position.<joint>, effort.<joint> and, where the driver has it,
velocity.<joint>: s, rad, the unit of effort that the robot YAML states, rad/s.
"""

import sys

from robot_dynid import identify, load_log, load_robot, validate


def main(robot_file, model_file, test, *train):
    """Identify and validate."""
    robot = load_robot(robot_file)
    result = identify(robot, [load_log(path, robot) for path in train])
    for warning in result.warnings:
        print('note:', warning)
    result.model.save(model_file)

    found = validate(result.model, [load_log(test, robot)])
    print(f'error on {test}: RMSE [N m], share of the effort, the same with the links of the URDF')
    for joint, score in found.model['all'].items():
        control = found.control['all'][joint]
        print(f'{joint:>24} {score.rmse:8.3f} {score.relative_error:8.1%} '
              f'{control.relative_error:8.1%}')
    refused = result.model.not_identified
    print('refused joints:', ', '.join(refused) if refused else 'none')


if __name__ == '__main__':
    main(*sys.argv[1:])
