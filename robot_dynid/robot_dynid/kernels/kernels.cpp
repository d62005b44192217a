// Python module of the numerical kernels: a submodule for each header, its kernels and constants.
//
// It is built once for any processor and once for newer instructions; see setup.py.

#include "python.hpp"

namespace robot_dynid {
#include "friction.hpp"
#include "low_pass.hpp"
#include "spline.hpp"
#include "triangle.hpp"

namespace wide {
constexpr Index LANES = 32;
#include "tile.hpp"
}  // namespace wide

namespace narrow {
constexpr Index LANES = 1;
#include "tile.hpp"
}  // namespace narrow

#include "adaptation.hpp"
#include "shooting.hpp"
#include "single_state.hpp"

#include "monitor.hpp"
}  // namespace robot_dynid

using namespace robot_dynid;
using namespace robot_dynid::wide;

namespace {

using A1 = View<double, 1>;
using A2 = View<double, 2>;
using A3 = View<double, 3>;
using A4 = View<double, 4>;
using I1 = View<Index, 1>;
using I2 = View<Index, 2>;
using B1 = View<bool, 1>;
template <class... Parts>
using Tuple = std::tuple<Parts...>;
using Two = Tuple<A2, A2>;
using Three = Tuple<A2, A2, A2>;
using Tree = Tuple<A2, I1, A1>;
using Rotors = Tuple<A2, I1, A2, A2>;
using Links = Tuple<A2, Rotors>;
using Friction = Tuple<A2, A2, A2, A2, A2>;
using Gears = std::optional<Tuple<A2, A2, A2, A2, A3, A2, A2>>;
using Sliding = Tuple<A2, I1, A2, A1>;
using Slow = Tuple<A2, A3, A3, A2>;

#define KERNEL(space, name, ...)                                            \
    {#name,                                                                 \
     reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(            \
         call<[](auto... given) { space::name(given...); }, __VA_ARGS__>)), \
     METH_FASTCALL, nullptr}
// a part of a kernel, which its test looks at; the first number of ``out`` becomes its result
#define PART(space, name, ...)                                                                   \
    {#name,                                                                                      \
     reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(                                 \
         call<[](A1 out, auto... given) { out(0) = space::name(given...); }, A1, __VA_ARGS__>)), \
     METH_FASTCALL, nullptr}
#define ROLLOUT(space)                                                                          \
    KERNEL(space, rollout, Tuple<A2, I1, A2, Rotors>, A1, Tuple<A2, A2, A2, A2, A2, Gears>, A2, \
           Two, A3, Tuple<double, Index>, Tuple<A3, A3, A2>, Tuple<I1, I1, I1, I1>)
#define END {nullptr, nullptr, 0, nullptr}

PyMethodDef in_adaptation[] = {
    KERNEL(adaptation, follow_coefficients, A2, A2, A2, A1, A2, A2),
    KERNEL(adaptation, follow_warmth, A2, A2, A1, A1, A1, A2),
    KERNEL(adaptation, forget, A2, A1, A1, double),
    PART(adaptation, corrected, Slow, Tuple<A2, A3, A2>, Index, A1, double, double),
    PART(adaptation, uncertain, Slow, Tuple<A2, A3, A2>, Index, A1),
    KERNEL(adaptation, take, Slow, Tuple<A2, A3, A2>, Index, A1, double, double),
    END};
PyMethodDef in_derivatives[] = {
    KERNEL(derivatives, inverse_derivatives, Tree, Links, A3, Friction, Three, Tuple<A3, A3, A3>),
    KERNEL(derivatives, solved_derivatives, Tuple<A3, A3, A3>, A1), END};
PyMethodDef in_forward_dynamics[] = {
    KERNEL(forward_dynamics, forward_dynamics, Tree, Links, Friction, Three, A2, A1),
    KERNEL(forward_dynamics, mass_matrix, A2, I1, A1, A2, A2, A3), END};
PyMethodDef in_friction[] = {
    KERNEL(friction, fill_columns, Two, Tuple<A1, A1, A1, A1, A1>, I1, A2),
    KERNEL(friction, fill_sliding, A2, A2, A2, A2),
    KERNEL(friction, sliding_torque, Three, A2, A2, A2), END};
PyMethodDef in_gears[] = {
    KERNEL(gears, bent_along, A2, A2, A2, double, A3),
    KERNEL(gears, hysteresis_along, A2, A2, A2, B1, A1, Tuple<A1, A1, A1>, A3), END};
PyMethodDef in_inverse_dynamics[] = {
    KERNEL(inverse_dynamics, inverse_dynamics, Tree, Links, Friction, Three, A2), END};
PyMethodDef in_kinematics[] = {KERNEL(kinematics, link_poses, I1, A2, A2, A4, A3), END};
PyMethodDef in_low_pass[] = {KERNEL(low_pass, zero_phase, A2, Index, A2, A2), END};
PyMethodDef in_monitor[] = {
    KERNEL(monitor, follow, Tuple<Tree, A2, Rotors, Tuple<A2, A2, A2, A2>, A2, Slow>,
           Tuple<A2, A1>, Tuple<A2, A1, Tuple<A2, A3, A2>>, Tuple<A3, A1>, A3),
    END};
PyMethodDef in_newton_euler[] = {KERNEL(newton_euler, inverse_dynamics, A2, I1, A1, A2, Three, A2),
                                 END};
PyMethodDef in_regressor[] = {
    KERNEL(regressor, fill_regressor, Tree, Tuple<I2, Tuple<I1, I1, A2, A2, A2>, I2, A1>,
           Tuple<Three, A2>, Tuple<Index, Index>, Tuple<I2, A1>),
    END};
PyMethodDef in_regressor_gradient[] = {
    KERNEL(regressor_gradient, rigid_pullback, A2, I1, A1, I2, Three, Tuple<A3, A2, A2, A2>), END};
PyMethodDef in_rollout[] = {ROLLOUT(rollout), END};
PyMethodDef in_rotors[] = {KERNEL(rotors, rotor_effort, Tree, Rotors, Three, A2),
                           KERNEL(rotors, rotor_inertia, Tree, Rotors, A2, A3), END};
PyMethodDef in_shooting[] = {
    KERNEL(shooting, solve_stage, Sliding, Tuple<A3, A2>, Three, double, Tuple<A2, A2, A2, A3>),
    KERNEL(shooting, stage_gradient, Sliding, Three, Tuple<A3, A3, A2, A3>, Tuple<A3, A4, A1>,
           Tuple<I1, I1, Index, I1>, Tuple<Index, double>, Tuple<A4, A4, A4, A4>),
    END};
PyMethodDef in_single_state[] = {
    KERNEL(single_state, forward_dynamics, Tree, Links, Friction, Three, A2, A1),
    KERNEL(single_state, inverse_dynamics, Tree, Links, Friction, Three, A2),
    KERNEL(single_state, momentum, Tree, Links, Two, Two), ROLLOUT(single_state), END};
PyMethodDef in_sliding_friction[] = {
    PART(sliding_friction, settle, A3, A2, Index, Tuple<A2, A1>, A1), END};
PyMethodDef in_spline[] = {KERNEL(spline, cubic_spline, A1, A2, A1, A2), END};
PyMethodDef in_triangle[] = {KERNEL(triangle, add_equations, A2, I1, A2, I1, A3),
                             KERNEL(triangle, add_rows, A2, A2),
                             KERNEL(triangle, solve_chosen, A3, I2, A3, A2), END};

PyObject* number(double value) { return PyFloat_FromDouble(value); }
PyObject* number(Index value) { return PyLong_FromLongLong(value); }
PyObject* number(const double (&table)[3][3]) {
    PyObject* rows = PyTuple_New(3);
    for (int i = 0; i < 3; ++i) {
        PyTuple_SET_ITEM(rows, i, Py_BuildValue("(ddd)", table[i][0], table[i][1], table[i][2]));
    }
    return rows;
}

struct Constant {
    const char* name;
    PyObject* (*value)();
};
#define CONSTANT_OF(space, name) {#name, [] { return number(space::name); }}

/// Add a submodule with kernels and constants; return whether that could be done.
bool add(PyObject* module, const char* name, PyMethodDef* kernels,
         std::initializer_list<Constant> constants = {}) {
    const std::string full = std::string(PyModule_GetName(module)) + "." + name;
    PyObject* space = PyModule_New(full.c_str());
    if (space == nullptr || PyModule_AddFunctions(space, kernels) != 0) return false;
    for (const Constant& constant : constants) {
        if (PyModule_AddObject(space, constant.name, constant.value()) != 0) return false;
    }
    return PyModule_AddObject(module, name, space) == 0;
}

bool add_all(PyObject* module) {
#define OF(name) CONSTANT_OF(adaptation, name)
    bool done =
        add(module, "adaptation", in_adaptation, {OF(POWER), OF(RISE), OF(FALLS), OF(HEAD)});
    done = done && add(module, "derivatives", in_derivatives);
    done = done && add(module, "forward_dynamics", in_forward_dynamics,
                       {CONSTANT_OF(forward_dynamics, UNSETTLED)});
#undef OF
#define OF(name) CONSTANT_OF(friction, name)
    done = done && add(module, "friction", in_friction,
                       {OF(ROW),     OF(KIND),    OF(SCALE),   OF(WEIGHT),   OF(LOAD),
                        OF(HOLDS),   OF(SIDE),    OF(ABOVE),   OF(LOWEST),   OF(HIGHEST),
                        OF(FADE),    OF(WIDTH),   OF(SECONDS), OF(LEAST),    OF(REFERENCE),
                        OF(COLDEST), OF(HOTTEST), OF(COLUMNS), OF(CONSTANT), OF(POWER),
                        OF(RAMP),    OF(TANH),    OF(STOP),    OF(DAHL),     OF(SLIDING)});
#undef OF
#define OF(name) CONSTANT_OF(gears, name)
    done = done && add(module, "gears", in_gears,
                       {OF(OWNER), OF(AMPLITUDE), OF(GEAR_COLUMNS), OF(STATE_COLUMNS)});
#undef OF
    done = done && add(module, "inverse_dynamics", in_inverse_dynamics);
    done = done && add(module, "kinematics", in_kinematics);
    done = done && add(module, "low_pass", in_low_pass);
#define OF(name) CONSTANT_OF(monitor, name)
    done = done && add(module, "monitor", in_monitor,
                       {OF(PREDICTED), OF(RESIDUAL), OF(EXTERNAL), OF(CLAIMED), OF(THRESHOLD),
                        OF(CONTACT), OF(FRICTION), OF(DRY), OF(VISCOUS_SCALE), OF(DRY_SCALE),
                        OF(RESULT_ROWS), OF(MEMORY_ROWS), OF(MOVING), OF(HOLDING)});
#undef OF
    done =
        done && add(module, "newton_euler", in_newton_euler,
                    {CONSTANT_OF(newton_euler, SPRING), {"LANES", [] { return number(LANES); }}});
#define OF(name) CONSTANT_OF(regressor, name)
    done = done && add(module, "regressor", in_regressor,
                       {OF(POSITION), OF(VELOCITY), OF(ACCELERATION), OF(ONE), OF(HISTORY)});
#undef OF
    done = done && add(module, "regressor_gradient", in_regressor_gradient);
#define OF(name) CONSTANT_OF(rollout, name)
    done = done &&
           add(module, "rollout", in_rollout,
               {OF(STAGES), OF(EXPLICIT), OF(IMPLICIT), OF(SPRING), OF(INDEFINITE), OF(OVERFLOW)});
#undef OF
    done = done && add(module, "rotors", in_rotors);
    done = done && add(module, "shooting", in_shooting);
    done = done && add(module, "single_state", in_single_state, {CONSTANT_OF(single_state, FEW)});
    done = done && add(module, "sliding_friction", in_sliding_friction);
    done = done && add(module, "spline", in_spline);
    return done && add(module, "triangle", in_triangle, {CONSTANT_OF(triangle, ROWS)});
}

/// Return whether this processor has the instructions of x86-64-v3.
PyObject* has_newer(PyObject*, PyObject*) {
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_cpu_init();
    return PyBool_FromLong(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                           __builtin_cpu_supports("bmi2"));
#else
    Py_RETURN_FALSE;
#endif
}

PyMethodDef of_module[] = {{"has_newer", has_newer, METH_NOARGS, nullptr}, END};
PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "robot_dynid.kernels",
                          nullptr,
                          -1,
                          of_module,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace

#define INIT(name) PyInit_##name
#define INIT_OF(name) INIT(name)
PyMODINIT_FUNC INIT_OF(MODULE)() {
    PyObject* module = PyModule_Create(&definition);
    return module != nullptr && add_all(module) ? module : nullptr;
}
