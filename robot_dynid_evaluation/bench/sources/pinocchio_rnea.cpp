// Pinocchio's RNEA and ABA, state by state, so many times as is asked for.
#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/rnea.hpp>
#include <pinocchio/parsers/urdf.hpp>

using Vector = Eigen::Map<const Eigen::VectorXd>;
struct Robot {pinocchio::Model model; pinocchio::Data data;};

extern "C" void * robot_of(const char * urdf, const double * gravity)
{
  pinocchio::Model model;
  pinocchio::urdf::buildModel(urdf, model);
  model.gravity.linear() = Eigen::Vector3d(gravity);
  return new Robot{model, pinocchio::Data(model)};
}

extern "C" void free_robot(void * robot) {delete static_cast<Robot *>(robot);}

extern "C" int coordinates(void * robot) {return static_cast<Robot *>(robot)->model.nq;}

extern "C" void rnea(
  void * robot, int repeats, int count, const double * q, const double * v, const double * a,
  double * out)
{
  auto & [model, data] = *static_cast<Robot *>(robot);
  const int n = model.nv;
  for (int r = 0; r < repeats; ++r) {
    for (int k = 0; k < count * n; k += n) {
      Eigen::Map<Eigen::VectorXd>(out + k, n) = pinocchio::rnea(
        model, data, Vector(q + k, n), Vector(v + k, n), Vector(a + k, n));
    }
  }
}

extern "C" void aba(
  void * robot, int repeats, int count, const double * q, const double * v, const double * tau,
  double * out)
{
  auto & [model, data] = *static_cast<Robot *>(robot);
  const int n = model.nv;
  for (int r = 0; r < repeats; ++r) {
    for (int k = 0; k < count * n; k += n) {
      Eigen::Map<Eigen::VectorXd>(out + k, n) = pinocchio::aba(
        model, data, Vector(q + k, n), Vector(v + k, n), Vector(tau + k, n));
    }
  }
}
