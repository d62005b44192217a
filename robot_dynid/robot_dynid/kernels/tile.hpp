// The recursions over tiles of LANES samples: included once for each width of a tile.

#include "newton_euler.hpp"
#include "kinematics.hpp"
#include "rotors.hpp"
#include "sliding_friction.hpp"
#include "forward_dynamics.hpp"
#include "inverse_dynamics.hpp"
#include "regressor.hpp"
#include "regressor_gradient.hpp"
#include "derivatives.hpp"
#include "gears.hpp"
#include "implicit_friction.hpp"
#include "rollout.hpp"
