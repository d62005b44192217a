// The identified arm, as the rest of the controller sees it: the one file that names a robot.
// Its C code is written by `robot-dynid export M.yaml --c .` (here for ur10e).
#pragma once

#include "ur10e.h"

namespace feedforward_controller {

struct Arm {
  static constexpr int joints = UR10E_JOINTS;
  using FrictionState = ur10e_friction_state;

  static const char * joint_name(int joint) {return ur10e_joint_names[joint];}
  static const char * digest() {return UR10E_DIGEST;}
  static void gravity(const double * q, double * effort) {ur10e_gravity(q, effort);}
  static void inverse_dynamics(
    const double * q, const double * qd, const double * qdd, double * effort)
  {
    ur10e_inverse_dynamics(q, qd, qdd, effort);
  }
  static int friction_begin(FrictionState * state, const double * q, const double * qd)
  {
    return ur10e_friction_begin(state, q, qd);
  }
  static int friction_step(
    FrictionState * state, const double * q, const double * qd, const double * qdd,
    double * friction)
  {
    return ur10e_friction_step(state, q, qd, qdd, friction);
  }
};

}  // namespace feedforward_controller
