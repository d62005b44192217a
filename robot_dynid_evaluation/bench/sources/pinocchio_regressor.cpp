// Pinocchio's joint torque regressor of many samples in a loop of C++: the peer of
// `robot-dynid bench regressor`, linked with the library of the installed package.

// As Pinocchio's own CMake files define them: its list of joint types is longer than 20.
#define BOOST_MPL_CFG_NO_PREPROCESSED_HEADERS
#define BOOST_MPL_LIMIT_LIST_SIZE 30
#define BOOST_MPL_LIMIT_VECTOR_SIZE 30
#define BOOST_FUSION_INVOKE_MAX_ARITY 12

#include <cstdint>
#include <string>

#include <pinocchio/algorithm/regressor.hpp>

namespace {

using Vector = Eigen::Map<const Eigen::VectorXd>;
using Tall = Eigen::Map<Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;

struct Robot {
  explicit Robot(const pinocchio::Model & built) : model(built), data(model) {}
  pinocchio::Model model;
  pinocchio::Data data;
};

// The types that Pinocchio's reader of URDF chooses: faster along a coordinate axis.
pinocchio::JointModel joint(const Eigen::Vector3d & axis, bool prismatic) {
  for (int i = 0; i < 3; ++i) {
    if (axis == Eigen::Vector3d::Unit(i)) {
      if (prismatic) {
        if (i == 0) return pinocchio::JointModelPX();
        if (i == 1) return pinocchio::JointModelPY();
        return pinocchio::JointModelPZ();
      }
      if (i == 0) return pinocchio::JointModelRX();
      if (i == 1) return pinocchio::JointModelRY();
      return pinocchio::JointModelRZ();
    }
  }
  if (prismatic) return pinocchio::JointModelPrismaticUnaligned(axis);
  return pinocchio::JointModelRevoluteUnaligned(axis);
}

}  // namespace

extern "C" {

// parents (n), -1 for the base; prismatic (n); axes (n, 3), rotations (n, 3, 3), translations
// (n, 3) of the joint frames in those of their parents; gravity (3).
void * regressor_robot(
  std::int64_t n, const std::int64_t * parents, const std::int64_t * prismatic,
  const double * axes, const double * rotations, const double * translations,
  const double * gravity)
{
  pinocchio::Model model;
  for (std::int64_t i = 0; i < n; ++i) {
    const Eigen::Vector3d axis(axes + 3 * i);
    const Eigen::Map<const Eigen::Matrix<double, 3, 3, Eigen::RowMajor>> turn(rotations + 9 * i);
    const pinocchio::SE3 placement(turn, Eigen::Vector3d(translations + 3 * i));
    const auto parent = static_cast<pinocchio::JointIndex>(parents[i] + 1);
    model.addJoint(parent, joint(axis, prismatic[i] != 0), placement, "j" + std::to_string(i));
  }
  model.gravity.linear() = Eigen::Vector3d(gravity);
  return new Robot(model);
}

void regressor_free(void * robot) {delete static_cast<Robot *>(robot);}

// Compute the regressor of every sample; q, v, a are (count, n). What was found is left behind.
double regressor_calls(
  void * robot, std::int64_t count, const double * q, const double * v, const double * a)
{
  auto & [model, data] = *static_cast<Robot *>(robot);
  const int n = model.nv;
  double sum = 0.0;
  for (std::int64_t k = 0; k < count; ++k) {
    pinocchio::computeJointTorqueRegressor(
      model, data, Vector(q + k * n, n), Vector(v + k * n, n), Vector(a + k * n, n));
    sum += data.jointTorqueRegressor(0, 0);
  }
  return sum;
}

// The same, and rotor inertia, viscous and Coulomb friction and offset beside it: all columns in
// one tall matrix (count n, 14 n), sample by sample.
void regressor_stacked(
  void * robot, std::int64_t count, const double * q, const double * v, const double * a,
  double * out)
{
  auto & [model, data] = *static_cast<Robot *>(robot);
  const int n = model.nv;
  Tall tall(out, count * n, 14 * n);
  for (std::int64_t k = 0; k < count; ++k) {
    pinocchio::computeJointTorqueRegressor(
      model, data, Vector(q + k * n, n), Vector(v + k * n, n), Vector(a + k * n, n));
    tall.block(k * n, 0, n, 10 * n) = data.jointTorqueRegressor;
    for (int j = 0; j < n; ++j) {
      const double speed = v[k * n + j];
      double * line = &tall(k * n + j, 10 * n);
      line[j] = a[k * n + j];
      line[n + 3 * j] = speed;
      line[n + 3 * j + 1] = (speed > 0.0) - (speed < 0.0);
      line[n + 3 * j + 2] = 1.0;
    }
  }
}

}  // extern "C"
