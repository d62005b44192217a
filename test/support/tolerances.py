"""The one table of tolerances: each bound stands here with its reason."""

from typing import Final

# Two implementations of the same closed formula in double precision: about 1e-15 per operation,
# some thousand operations per torque, relative to the largest torque of the set. Measured: 5e-13.
SAME_FORMULA: Final = 4e-12

# Solution of linear equations by two methods: rounding times the condition number of the matrix,
# which this factor multiplies. Measured: 1.4e-17.
SOLVED: Final = 1e-16

# Central difference with a step of 1e-5 of quantities near 1 whose third derivatives reach 100:
# truncation 1e-10 * 100 / 6, rounding 1e-15 / 1e-5. Measured: 8e-9.
DIFFERENCE: Final = 5e-8

# Sine and cosine of angles up to 1e4 rad against those of NumPy: a few units in the last place of
# 1. A reduction by a quarter turn in one double would be off by 6367 * 6e-17 = 4e-13.
LARGE_ANGLE: Final = 1e-15

# Relative distance of identified and true base parameters of the simulated arm with its default
# noise: what the project promises. Measured: at most 0.008 over 20 seeds and 10 motions.
PARAMETER_ERROR: Final = 0.02

# Share of 95 % intervals that hold the truth. Estimates of one fit, and fits of one motion, are
# correlated, so 69 parameters times 20 seeds count like about 150 independent trials: a deviation
# of sqrt(0.95 * 0.05 / 150) = 1.8 %, here three of them down. Above 0.999 intervals are idle.
# Measured: 0.966 for one motion, 0.964 over motions.
COVERAGE: Final = (0.90, 0.999)

# Root mean square of error / stated deviation; one where the deviations are right. Measured 0.95.
DEVIATION_RATIO: Final = (0.6, 1.4)

# Order of a finite difference from two step sizes: the next term of the series shifts it.
DERIVATIVE: Final = 0.1

# A motion of up to 3 rad/s sampled at 2 ms and low-passed at 20 Hz: the pass band of the filter is
# flat to 1e-6 there; differences and splines are of fourth order. Measured: 1.3e-4, where rows are
# missing.
RESAMPLED: Final = 3e-4

# Position, velocity, acceleration of the same motion at the ends: the filter swings in for one
# over its cut-off, of which half is dropped. Accelerations reach 10.
ENDS: Final = (1e-4, 5e-3, 0.1)

# Lag between channels from 10 s with 1e-3 rad/s of noise: measured 2.7e-6 s; the estimate is first
# order in the lag.
LAG: Final = 2e-5

# Least squares by QR of chunks and by LAPACK on the tall matrix: rounding times the condition
# number of a few thousand (columns of size 0.1 and 100). Measured: 2e-12.
LEAST_SQUARES: Final = 1e-11

# Covariances by small factors and by refits. Measured: 9e-13.
COVARIANCE: Final = 8e-12

# Parameters from noise-free efforts: rounding times the condition number of the unscaled
# regressor, below 1e4. Measured: 2.5e-10, by conic programs.
RECOVERED: Final = 2e-9

# Half a second of rollout by steps of 1 ms against an adaptive integrator of tolerance 1e-10; the
# velocity may err ten times as much. Measured: 5e-8.
ROLLOUT: Final = 1e-7

# Parameters of a coupled wrist from 30 s with 1 % of noise: three joint deviations or less.
COUPLED: Final = 0.05

# Errors in percent against those printed to one decimal: half a digit, and as much again for what
# the rounding of another processor moves.
ONE_DECIMAL: Final = 0.1

# Friction coefficients against those of the source of the data, who used another filter.
REFERENCE_FRICTION: Final = 0.1

# Table II of Lin 1991 has four decimals: half a unit of the last one.
PRINTED: Final = 0.5e-4

# Parameters found stage by stage without noise: coefficients below 1e-4 of the combinations that a
# stage finds are dropped, so that locked joints need not rest exactly. Measured: at most 7e-6.
STAGED: Final = 2e-5

# Sine of the angle between two row spaces: rounding times the condition number of the regressor,
# 1e4 in the lengths of the robot, times that of reading off pivots. Measured: at most 5e-11, and
# 1.5e-13 for the robots that are always tried.
SAME_SPACE: Final = 1e-10

# Final state after two seconds of smooth effort, steps of 1 ms, against MuJoCo by Runge-Kutta
# steps of 0.25 ms: what the project promises.
PLANT_MOTION: Final = 1e-3

# Order of convergence from halved steps: the next term of the series shifts it.
LATE_ORDER: Final = 0.15

# Energy of a free arm without rotors over ten seconds by steps of 1 ms, relative to the largest
# kinetic energy; joints reach 30 rad/s. Measured: 1.2e-4, a loss.
ENERGY_DRIFT: Final = 3e-4

# Condition numbers of reproduced regressors, known to four digits, relative.
KNOWN_CONDITION: Final = 1e-3

# Viscous friction of joint 1 from one cycle of noisy effort: three deviations of 0.47 of 157.56.
VISCOUS_FROM_ONE_CYCLE: Final = 9e-3

# Coefficients of a minimal set from two regressors, in the lengths of the robot and by the largest
# of their row: what is below 1e-9 of it is dropped, in one of the two perhaps.
COEFFICIENT: Final = 2e-9

# Torque of an exported URDF in Pinocchio and MuJoCo, relative to the largest: the project promises
# 1e-9. Measured: 3e-15.
READ_BY_OTHERS: Final = 2.5e-14

# Positions [rad] of rollouts by the kernel and by the stepped loop in NumPy, which end the search
# of the friction of a stage when its tangents have settled. Measured: 2e-14, with motors that turn
# two joints 5e-14; 4e-5 where a stage ends beside the ramp it should be on.
STEPPED: Final = 5e-13

# Error of the model identified one joint at a time over that of nominal inertials with friction
# from the same recordings, worst joint of the UR10e: measured 1.012 at the fifth joint.
STAGED_OVER_CONTROL: Final = 1.03

# Optimum of one conic problem from two formulations: the solver closes the gap to 1e-8 of the
# objective, which is about one. Measured: 1e-10.
SAME_OPTIMUM: Final = 1e-9

# What an interior-point method leaves of constraints and of its point at a gap of 1e-8.
SOLVER: Final = 1e-6

# Parameters of the optimum where the objective is flat: the root of a gap of 1e-8, and less where
# the prior alone holds them. Measured: 2.5e-6.
SAME_ROBOT: Final = 2e-5

# Payload without noise from the difference of two efforts: the low-pass does not commute with the
# products of velocities. Measured: 8e-7.
PAYLOAD_EXACT: Final = 6e-6

# Mass of a payload from noisy recordings: what the project promises.
PAYLOAD_MASS: Final = 0.01

# The same against a perfect model of the arm, with friction of another day: the Coulomb ramp of
# the new friction passes the filter. Measured: 2e-4.
PAYLOAD_MODEL: Final = 1e-3

# Torque of a payload found without noise, in another motion, relative to its largest, for random
# arms whose wrists may turn fast. Measured: at most 7e-5, and 1.5e-6
# for the arms that are always tried.
PAYLOAD_TORQUE: Final = 2e-4

# Drive gains without noise: the low-pass does not commute with the ramp of Coulomb friction and
# the products of velocities. Measured: 1e-3.
GAIN_EXACT: Final = 5e-3

# Drive gains of the UR10e against those of its controller: what the project promises.
GAIN_MEASURED: Final = 0.03

# Objective of a feasible fit, link by link with many polishing sweeps, over the simultaneous one:
# sweeps converge linearly and end at a gain of 1e-7. Measured: 2e-7.
POLISHED: Final = 2e-6

# Held-out error of a feasible fit over that of unconstrained least squares, every joint: what the
# project promises.
HELD_OUT_RISE: Final = 1.02

# Derivatives of a path at another pace against central differences of 1e-4 s, relative to the
# largest. Measured: 2e-7.
PACE_DERIVATIVES: Final = 1e-6

# Estimates by another package from the same equations: rounding, and iterations that end at 1e-12.
# Measured: 2e-13.
SAME_ESTIMATE: Final = 1e-12

# Derivatives of a trigonometric polynomial by its spectrum: rounding times the second power of
# the highest frequency (4e5 rad^2/s^2); and what is left of the ends of a filter after 8 s.
# Measured: 7e-12.
EXACT_PERIOD: Final = 5e-11

# Deviation of noise from 5 x 1600 samples: 0.8 %, here four of them; and what a few percent of
# interpolated samples take away.
NOISE_LEVEL: Final = 0.05

# coal and MuJoCo stop their iterations (GJK) at 1e-6 m; ours takes off 1e-5 m to be sure.
GJK: Final = 2e-5
PEER_DISTANCE: Final = 1e-4

# External torque [N m, or relative to the largest] of a perfect model from steps of 1 ms: the
# trapezium over a step errs by its square times the rates of the drive. Measured: at most 1.9e-4.
OBSERVED: Final = 1e-3

# Central difference of distances with a step of 1e-3 rad: noise of GJK 1e-6 / 1e-3, curvature of
# bodies of 4 cm at arms of a metre, at most 1e-3 rad * 1 m^2 / 0.04 m / 2.
# Measured: 2.4e-5.
DISTANCE_GRADIENT: Final = 2e-4

# Mean deviation of base parameters over ten seeds, relative: each is known to 1 / sqrt(18), and
# the ten or so that are independent together to 8 %, here three of them.
PREDICTED: Final = 0.25

# Held-out error of another estimator over that of weighted least squares, worst joint of the UR10e
# in three files: measured at most 1.003.
SAME_HELD_OUT: Final = 1.008

# Shapes of a friction law by separable search against a search of all parameters at once: both
# end where the residual is flat to 1e-6 of it.
AGAINST_FULL_SEARCH: Final = 0.02

# Sum of the amplitudes of presliding in 60 s of motion with noise: viscous friction takes up part.
PRESLIDING_AMPLITUDE: Final = 0.05

# Size and speed of a breakaway of 1.5 N m that fades within 0.05 rad/s, so it is seen at reversals
# only, under noise of 0.3 N m: off by 16 % at most in six joints.
BREAKAWAY: Final = 0.25

# Conditional mean and variance of a Gaussian mixture by Cholesky factors, by inverse matrices and
# by numerical integration of the joint density. Measured: 3e-14.
CONDITIONAL: Final = 2e-13

# Radial basis functions by logarithms and literally, with weights of a few N m. Measured: 1.3e-15.
RADIAL: Final = 1e-14

# Simulated harmonic drives: sag after 0.5 s of holding [rad] (the softest vibration has died out
# to that), resonance against the eigenvalue (Runge-Kutta's phase error at 0.2 rad per step), share
# of the kinetic energy that steps of 0.25 ms lose or find in one second of free motion.
# Measured: 2e-9, 4e-6, 5e-6.
DRIVE_STATICS, DRIVE_RESONANCE, DRIVE_ENERGY = 1e-8, 2e-5, 2e-5

# Deflection [rad] of a made-up gear without encoder noise, filtered as the other channels
# are. Measured: 5e-15.
DEFLECTION: Final = 3e-14

# The same after an offset was estimated from 20 s with 0.2 N m of noise on a gear of 2e4 N m/rad:
# 1e-5 / sqrt(4000) = 1.6e-7, thirty of them.
OFFSET: Final = 5e-6

# Friction from sweeps with 0.05 N m of noise over six speeds: some 1e-3 N m, of 1 N m and more.
SWEPT_FRICTION: Final = 0.02

# Weighted squared error of friction and links in turn, 300 rounds from no friction at all, against
# both at once. It converges linearly, slowest where offset and gravity are alike: measured 0.005.
IN_TURN: Final = 0.01

# A tenth of a second of an elastic 2R at 1 ms against an implicit adaptive integrator: error of
# the deflection over its range, by stiffness (of lower order where the step does not resolve the
# vibration), and of positions [rad]. Measured: half of these or less.
ELASTIC_TWIST: Final = {3e2: 1e-5, 2e4: 1e-3, 1e6: 2e-3, 1e7: 5e-3}
ELASTIC_MOTION: Final = 5e-6

# Power against five-point differences of the energy of a vibrating arm at 0.25 ms: its fastest
# vibration turns by 0.1 rad per step, fourth power of that over 30. Measured: 3e-8.
ENERGY_RATE: Final = 2e-7

# Efforts of a motor behind a gear of so many N m/rad, whose deflection is a difference of angles
# near 3: rounding 4e-16 times the stiffness, over efforts of 100 N m. Measured: a fifth of these.
STIFF_GEARS: Final = {1e4: 1e-13, 1e8: 1e-9, 1e10: 1e-7}

# Offset of two encoders of 5e-6 rad [rad], from 8 s with dry friction, whose ramp is a model only:
# a torque of some 0.02 N m. Measured: 4e-6.
ENCODER_OFFSET: Final = 1e-5

# Share that the steps of encoders take off a stiffness, known from their variance as if they were
# white, which slow motion makes them not: measured 0.96 to 1.36 of the stated deviation.
ATTENUATION: Final = 0.5

# Damping, hysteresis and kinematic error of a gear with all three, relative. With stop operators
# alone, which Dahl's law is no sum of: 7 to 34 %, 2 to 42 %, 0 to 5 %; D without the effects 3 to
# 12 times. With Dahl's states less, but D of a gear that hardly bends up to 15 %.
GEAR_DAMPING, GEAR_LOOP, GEAR_WAVE = 0.4, 0.5, 0.08

# The same damping where hysteresis is Bouc and Wen's, which no state of the model is.
# Measured: 0 to 16 %; without the random effects beside the fit up to 244 %.
FOREIGN_DAMPING: Final = 0.4

# Damping beside kinematic error alone, whose law is the model's: three deviations of 1 %.
# Measured: 0 to 1 %; folded waves 50 %, a lag made of them 3 to 8 %.
SWIFT_DAMPING: Final = 0.03

# Deviations of gears with random amplitudes beside them over those without: of damping, less what
# cut-offs change, and of kinematic error and hysteresis. Measured: 0.8 to 1.8, 0.89 to 1.20.
WIDER_DEVIATION: Final = 2.0
EQUAL_DEVIATION: Final = 0.25

# Errors of six stiffnesses and dampings over their deviations, root mean square, and one over it:
# 0.4 to 1.7 is the range of such a mean in 98 % of cases (chi-squared). Measured: 0.75.
LEAST_ERROR: Final = 0.45

# Rotor, carried inertia, stiffness, damping of a gear from the response of its motor, relative:
# effort is sampled as the mean of two periods, which takes 1 % off it at 45 Hz. Measured: at most
# 0.9 %, 0.5 %, 1.1 %, 7 %.
RESONANCE: Final = {'J': 0.015, 'M': 0.015, 'K': 0.02, 'D': 0.1}

# Root mean square of white noise over that of its law: 5,500 samples scatter by 1/sqrt(2*5500)
# = 1 %; four of them.
WHITE_NOISE: Final = 0.04

# Filtered signals of a cut recording beside those of the whole one, relative to their deviation:
# two periods of the cut-off from the cut, 0.3 % is left of what the filter takes for the motion
# beyond it (the absolute sum of its response from there on). Measured: at most 0.085 %.
CUT_RECORDING: Final = 3e-3
# Torque by the base parameters of slightly tilted axes, relative, every joint: singular values
# below 1e-4 are left out, of a regressor whose columns reach 10. Measured: at most 6e-5.
REPRESENTED: Final = 1e-4
# Efforts of parameters that went through the reduction to base parameters, relative to the
# largest: its matrix solves linear equations, which costs some digits. Measured over kinds of
# robots and friction laws: 5e-14.
REDUCED: Final = 4e-13

# The same for robots whose URDF states right angles with nine digits, which are 2e-10 rad off:
# what that adds to the regressor is left out. Measured: 1e-10.
DESCRIBED: Final = 3e-10

# Accelerations of a rollout from its first 1e-7 s, relative to the largest: rounding of the
# velocity, 1e-16 / 1e-7, and the change of the acceleration within the step. Measured: 1e-6.
BEGINNING: Final = 1e-5
# Second differences of friction beyond the trained speed, 20 times that, relative to the largest:
# rounding, and what tanh lacks of one at ninety widths (nothing). Measured: 8e-16.
CONTINUED: Final = 5e-15

# Relative error of a planar arm at ten times the speed it was trained at, whose effort has noise
# of 10 %: the rest is what the slow motion says of the links. Measured: 0.16 and 0.20 by seed, and
# 1.66 and 0.87 while laws with parameters that the data leaves open were taken.
EXTRAPOLATED: Final = 0.3
# Quantiles in tables of textbooks have three decimals: half a unit of the last one.
TABULATED: Final = 0.5e-3

# Peaks of planned efforts: taken at the design's own instants, here at 2000 others.
PLANNED_EFFORT: Final = 0.01
# Share of 95 % intervals that hold the mean of parameters which drift between recordings, by the
# number of those: two do not determine that scatter well. Measured: 0.903 and 0.957, from single
# seconds 0.81 and 0.83.
COVERAGE_OF_DRIFT: Final = {2: 0.88, 4: 0.92}

# Share of 95 % intervals that hold friction which differs between recordings, by their number: the
# spread is that of six axes, of two recordings by six numbers. Measured over 40 runs: 0.929 and
# 0.969; without a component for it 0.893 and 0.950. Links: 0.985 and 0.989.
COVERAGE_OF_SCALES: Final = {2: 0.90, 4: 0.955}

# Share of the base parameters of a UR10e that two disjoint sets of recordings agree in, within
# their 95 % intervals, laws of friction given: 0.95 would be right.
AGREEING: Final = (0.93, 0.98)

# A spread between recordings, root mean square over 30 runs of six axes and two recordings or
# more: a share known by 180 numbers is off by 1 / sqrt(360) = 5 % by chance; what the links take
# of it adds to that. Measured: 0.84 to 0.97 of the truth.
BETWEEN: Final = 0.25

# A spread that is found where there is none, by chance: beside 0.02 to 0.12 of the tests.
NO_SPREAD: Final = 0.015

# Fall of friction by warming, found of the arm of known truth: its deviation is 5 to 10 % of it.
KNOWN_DROP: Final = 0.25

# Shares of 95 % intervals that hold the truth in 100 runs: three deviations below 0.95 (0.885).
# Measured: 0.940, 0.963, 0.970, 0.970, 0.982, 0.973. Of the stiffness 0.917 in the first 60 of
# these runs, by chance: its errors are 1.00 of their deviation (RMS) over all of them.
COVERAGE_OF_RUNS: Final = {
    'stiffness': 0.885, 'delay': 0.885, 'viscous drop': 0.885, 'dry drop': 0.885, 'links': 0.885,
    'friction that stays': 0.885}

# Width of intervals of white residuals over that of a known deviation: the t quantile of seven
# degrees of freedom is 1.21 times that of the normal distribution; whole recordings add to it only
# where they scatter more. Measured: 1.17, with two recordings 1.40, with four 1.34.
WIDTH_FOR_WHITE: Final = 1.5

# A deviation from a step of its own size: what depends on the square of it, 0.05 at most, where
# the body that can exist is at its limit.
SECOND_ORDER: Final = 0.05

# Share of 95 % intervals of lags that hold the truth, or the lag of the other half of a recording:
# with 25 and 12 of them, three standard deviations below 0.95. Measured: see test_effort_lag.py.
COVERAGE_OF_LAGS: Final = 0.8

# Parameters from a recording in parts against those from one piece, in their own deviations: the
# samples are the same but for the phase of the thinning, which draws other noise of the same
# filtered effort. Measured: 0.02 for wls, irls and feasible, 0.19 for iv, whose instruments are
# smoothed far below the cut-off and see more of the borders.
IN_PARTS: Final = 0.4

# Growth [MB] of the peak memory from 2 to 8 parts of 20 thousand rows of three joints: in one
# piece some 100 for every 100 thousand rows. Measured: 13 to 12 parts, samples that are kept.
PEAK_GROWTH: Final = 40.0

# Memory while friction laws are chosen over that of the candidate columns of all seven axes:
# columns of one axis, factors and what is filtered at a time. Measured: 0.9; one copy of all
# columns is one more.
COLUMNS_IN_MEMORY: Final = 1.4

# Accelerations of MuJoCo from a written file: two implementations of the same formula, its solver
# of dry friction, and inertias that it turns to their principal axes. Measured: 7e-14.
MUJOCO_ACCELERATION: Final = 4e-13

# The same of Drake, where it is installed; not measured since.
DRAKE_ACCELERATION: Final = 1e-10
# Five-point difference with a step of 1e-3 of quantities near 1 whose fifth derivatives reach 1e3:
# truncation 1e-12 * 1e3 / 30, rounding 1e-15 * 1e2 / 1e-3. A hundred times that with steps of 1e-4
# across friction that bends within 0.01 rad/s: truncation 1e-16 * 1e11 / 30.
FIVE_POINTS: Final = 1e-9
# Efforts, inertias and friction of generated C code against ours, relative to the largest of the
# set: the project promises 1e-12. Measured: 1.2e-14, along a motion with friction.
WRITTEN_OUT: Final = 1e-13
# Derivative of the cost of a simulation against a central difference with a step of 1e-6 of the
# parameters: rounding 1e-15 / 1e-6 of a cost near 5, whose derivative is 0.05 or more; ramps of
# friction are crossed within the step by few intervals. Measured: at most 5e-9.
COST_GRADIENT_STEP, COST_GRADIENT = 1e-6, 4e-8

# Simulated intervals of half a second in steps of 5 ms along the truth [rad, rad/s]: third order,
# and cubic interpolation of the effort at 10 ms. Measured: 3e-6.
SHOT: Final = 1e-5

# Phases of torque ripple against the truth, in their own deviations: four of a normal
# distribution, as a test looks at a dozen of them.
RIPPLE_INTERVALS: Final = 4.0

# Error of the true model over the floor that half of the rows show: 30 s below 10 Hz hold 600
# independent numbers, known to 1 / sqrt(2 * 600) = 3 % each, both of them.
NOISE_FLOOR: Final = 0.15

# Standard deviation of a fleet from the median of 60 scatters of 12 sessions each: the median of
# that many chi-squares with 11 degrees is known to 7 %, the deviation to half of it and less by
# what sessions tell themselves; here four of these.
SCATTER_FOUND: Final = 0.15

# Share of probabilities below a bound in terms of the bound, where nothing changed: 1, or less of
# conservative tests; at a bound of 0.01 of 2000, 20 are known to 22 %, here two of these.
SHARE_BY_CHANCE: Final = 1.45

# Exponential of the textbook's Stribeck curve against the six terms that it is made of, as a share
# of the static friction: measured 0.0007 to 0.0032 for exponents of 1 to 2.
FITTED_EXPONENTIAL: Final = 0.004
