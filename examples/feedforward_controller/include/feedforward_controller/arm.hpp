// The identified arm, as the rest of the controller sees it. Its C code, NAME.h and NAME.c, is
// written by `robot-dynid export M.yaml --c model`; the build defines ARM_HEADER "NAME.h",
// ARM_NAME NAME and ARM_CAPITALS, the same in capitals (CMakeLists.txt finds them in model/).
#pragma once

#include <type_traits>

#include ARM_HEADER

#define ARM_JOINED(a, b) a ## b
#define ARM_JOIN(a, b) ARM_JOINED(a, b)
#define ARM(name) ARM_JOIN(ARM_NAME, name)

namespace feedforward_controller {

struct Arm {
  static constexpr int joints = ARM_JOIN(ARM_CAPITALS, _JOINTS);
  using FrictionState = ARM(_friction_state);

  static const char * joint_name(int joint) {return ARM(_joint_names)[joint];}
  static const char * digest() {return ARM_JOIN(ARM_CAPITALS, _DIGEST);}
  // Range of the recordings that the model was fitted to, rad (m).
  static double lowest(int joint) {return ARM(_trained_position)[joint][0];}
  static double highest(int joint) {return ARM(_trained_position)[joint][1];}
  static void gravity(const double * q, double * effort) {ARM(_gravity)(q, effort);}
  static void inverse_dynamics(
    const double * q, const double * qd, const double * qdd, double * effort)
  {
    ARM(_inverse_dynamics)(q, qd, qdd, effort);
  }
  static int friction_begin(FrictionState * state, const double * q, const double * qd)
  {
    return ARM(_friction_begin)(state, q, qd);
  }
  static int friction_step(
    FrictionState * state, const double * q, const double * qd, const double * qdd,
    double * friction)
  {
    return step(ARM(_friction_step), state, q, qd, qdd, friction);
  }

private:
  // Where gears are elastic, motors move with the reference of their joints.
  template<class Step>
  static int step(
    Step friction_step, FrictionState * state, const double * q, const double * qd,
    const double * qdd, double * friction)
  {
    if constexpr (std::is_invocable_v<
        Step, FrictionState *, const double *, const double *, const double *, double *>)
    {
      return friction_step(state, q, qd, qdd, friction);
    } else {
      return friction_step(state, q, qd, qdd, q, qd, friction);
    }
  }
};

}  // namespace feedforward_controller
