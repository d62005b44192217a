"""From a rosbag2 folder (or an .mcap or .db3 file) to a model, without a ROS installation.

    python examples/identify_bag.py ROBOT.yaml MODEL.yaml BAG [TOPIC [BEGIN END]]

TOPIC is that of the joint states, BEGIN and END a window of the bag in seconds.
"""

import sys

from robot_dynid import Recipe, identify, load_log, load_robot
from robot_dynid.io.bag import Topics


def main(robot_file, model_file, bag, topic='/joint_states', *window):
    """Read, say what was found in the bag, identify."""
    robot = load_robot(robot_file)
    path = f'{bag}[{window[0]}:{window[1]}]' if window else bag
    log = load_log(path, robot, Topics(joint_states=topic))
    print(f'{len(log.time)} joint states in {log.time[-1] - log.time[0]:.1f} s')
    for finding in log.findings:
        print('found:', finding)

    # what a recipe does not name is chosen from the data
    result = identify(robot, [log], recipe=Recipe(friction='auto without maxwell'))
    result.model.save(model_file)
    model = result.model
    for name, value, std in zip(model.names, model.values, model.std):
        print(f'{name:>8} {value:10.4f} +- {std:.4f}')


if __name__ == '__main__':
    main(*sys.argv[1:])
