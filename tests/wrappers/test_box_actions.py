import gymnasium
import jaxtyping
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from scipy import special, stats

from triax.wrappers import BoxActionsToDiscrete, BoxActionsToReals


@pytest.fixture
def unchecked(monkeypatch):
    """Without beartype, as users run: shows the library's own errors for wrong types."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


class Echo(gymnasium.Env):
    """Ends after 100 steps; remembers what it was given, and says so in ``info``."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,))

    def __init__(self, action_space):
        self.action_space = action_space
        self.given, self.resets = [], []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.resets.append((seed, options))
        return np.zeros(2, np.float32), {}

    def step(self, action):
        assert action in self.action_space
        self.given.append(action)
        return np.zeros(2, np.float32), 0.0, False, len(self.given) % 100 == 0, {"own": 1}


LOW, HIGH = np.array([[-1.0, 0.0, 2.0]], np.float32), np.array([[1.0, 10.0, 2.5]], np.float32)
BOX = gymnasium.spaces.Box(LOW, HIGH, dtype=np.float32)
ONE = gymnasium.spaces.Box(-2, 2, (1,))
BOTH = [BoxActionsToReals, lambda env: BoxActionsToDiscrete(env, 4, random_seed=0)]


@pytest.mark.filterwarnings("ignore:.*WARN")  # the checker would rather see no wrapper
@pytest.mark.parametrize("wrap", BOTH)
@pytest.mark.parametrize("space", [BOX, ONE, gymnasium.spaces.Box(0, 1, ())])
def test_the_wrapped_environment_follows_gymnasiums_interface(wrap, space):
    check_env(wrap(Echo(space)), skip_render_check=True)


def test_reals_are_squashed_into_the_box():
    env = BoxActionsToReals(Echo(BOX))
    a = np.array([0.3, -2.0, 5.0])
    *_, info = env.step(a)
    np.testing.assert_allclose(env.unwrapped.given[0], LOW + (HIGH - LOW) * special.expit(a), rtol=1e-6)
    assert info["own"] == 1 and info["a_orig"][0] is env.unwrapped.given[0]


def test_the_space_of_reals_has_no_bounds():  # F82
    assert BoxActionsToReals(Echo(BOX)).action_space == gymnasium.spaces.Box(-np.inf, np.inf, (3,))


@pytest.mark.parametrize("size", [1e3, 1e30, np.inf])
def test_huge_reals_reach_the_bounds_exactly(size):
    env = BoxActionsToReals(Echo(BOX))
    env.step(np.full(3, size))
    env.step(np.full(3, -size))
    np.testing.assert_array_equal(env.unwrapped.given, [HIGH, LOW])


def test_executed_actions_are_inside_the_chosen_bins_and_uniform():
    env = BoxActionsToDiscrete(Echo(BOX), (2, 5, 3), random_seed=0)
    bins = np.array([1, 3, 0])
    width = (HIGH - LOW)[0] / [2, 5, 3]
    shares = []
    for _ in range(500):
        env.step(bins)
        shares.append((env.unwrapped.given[-1][0] - LOW[0]) / width - bins)
    shares = np.array(shares)
    assert shares.min() > -1e-5 and shares.max() < 1 + 1e-5
    for share in shares.T:
        assert stats.kstest(share, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(shares.T)[np.triu_indices(3, 1)]).max() < 0.15


@pytest.mark.parametrize(
    ("space", "num_bins", "expected"),
    [
        (ONE, 7, gymnasium.spaces.Discrete(7)),
        (ONE, (7,), gymnasium.spaces.Discrete(7)),
        (BOX, 4, gymnasium.spaces.MultiDiscrete([4, 4, 4])),
        (BOX, (2, 5, 3), gymnasium.spaces.MultiDiscrete([2, 5, 3])),
    ],
)
def test_the_space_of_bins_is_discrete_or_multi_discrete(space, num_bins, expected):
    assert BoxActionsToDiscrete(Echo(space), num_bins).action_space == expected


def test_one_seed_gives_one_sequence_of_draws():
    def draws(random_seed=None, reset_seed=None):
        env = BoxActionsToDiscrete(Echo(ONE), 2, random_seed)
        env.reset(seed=reset_seed)
        for _ in range(3):
            env.step(1)
        return np.ravel(env.unwrapped.given).tolist()

    assert draws(random_seed=1) == draws(random_seed=1) != draws(random_seed=2)
    assert draws(reset_seed=5) == draws(random_seed=1, reset_seed=5) != draws(reset_seed=6)
    assert draws() != draws()


@pytest.mark.parametrize("wrap", BOTH)
def test_the_wrapped_environment_can_be_made_again_from_its_spec(wrap):
    env = wrap(gymnasium.make("MountainCarContinuous-v0"))
    again = gymnasium.make(env.spec)
    assert type(again) is type(env) and again.action_space == env.action_space


@pytest.mark.parametrize("wrap", BOTH)
def test_seed_and_options_reach_the_environment(wrap):
    env = wrap(Echo(ONE))
    env.reset(seed=3, options={"x": 1})
    assert env.unwrapped.resets == [(3, {"x": 1})]


def test_wrappers_inside_list_their_action_first():
    inner = BoxActionsToReals(Echo(ONE))
    bounded = gymnasium.wrappers.TransformAction(inner, lambda a: a, gymnasium.spaces.Box(-1, 1, (1,)))
    outer = BoxActionsToDiscrete(bounded, 3, random_seed=0)
    outer.reset()
    for _ in range(2):
        *_, info = outer.step(0)
        assert len(info["a_orig"]) == 2
        np.testing.assert_allclose(info["a_orig"][0], 4 * special.expit(info["a_orig"][1]) - 2, rtol=1e-6)


@pytest.mark.parametrize("wrap", BOTH)
@pytest.mark.parametrize("space", [gymnasium.spaces.Discrete(3), gymnasium.spaces.Box(0, 9, (2,), np.int32)])
def test_what_is_no_box_of_floats_is_refused(wrap, space):
    with pytest.raises(NotImplementedError, match=r"must be a Box of floats; got (Discrete|Box)"):
        wrap(Echo(space))


@pytest.mark.parametrize("wrap", BOTH)
@pytest.mark.parametrize("bounds", [(-np.inf, np.inf), (0, np.inf), (-np.inf, 0)])
def test_a_box_without_bounds_is_refused(wrap, bounds):  # F82
    with pytest.raises(ValueError, match=r"must be bounded; got low .*inf"):
        wrap(Echo(gymnasium.spaces.Box(*bounds, (2,))))


@pytest.mark.parametrize("a", [np.zeros(2), np.zeros((1, 3)), 0.0, [0.0, np.nan, 0.0]])
def test_reals_that_do_not_fit_are_refused_by_their_value(a):  # F82
    env = BoxActionsToReals(Echo(BOX))
    with pytest.raises(ValueError, match=r"BoxActionsToReals: an action must be .* real numbers; got"):
        env.step(a)
    assert not env.unwrapped.given


@pytest.mark.parametrize(
    ("space", "a"), [(ONE, 4), (ONE, -1), (ONE, 1.0), (ONE, [1]), (BOX, [0, 0]), (BOX, [0, 0, 4]), (BOX, 1)]
)
def test_bins_outside_the_space_are_refused_by_their_value(space, a, unchecked):  # F82
    env = BoxActionsToDiscrete(Echo(space), 4)
    with pytest.raises(ValueError, match=r"BoxActionsToDiscrete: an action must be in .*Discrete.*; got"):
        env.step(a)
    assert not env.unwrapped.given


@pytest.mark.parametrize("num_bins", [0, -3, True, 2.5, "3", (2, 0, 1), (2, 2.0, 1), None])
def test_numbers_of_bins_that_are_no_positive_ints_are_refused(num_bins, unchecked):
    with pytest.raises(TypeError, match="num_bins must be a positive int, or a tuple of 3 such; got"):
        BoxActionsToDiscrete(Echo(BOX), num_bins)


def test_a_wrong_count_of_numbers_of_bins_is_refused():
    with pytest.raises(ValueError, match=r"one entry per dimension of the action, 3; got 2: \(2, 2\)"):
        BoxActionsToDiscrete(Echo(BOX), (2, 2))


class Mirror(gymnasium.Env):
    """Shows the action that it gets."""

    def __init__(self, box):
        self.action_space = self.observation_space = box

    def reset(self, *, seed=None, options=None):
        return self.observation_space.low, {}

    def step(self, action):
        return action, 0.0, False, False, {}


@pytest.mark.parametrize("wrap", [BoxActionsToReals, lambda env: BoxActionsToDiscrete(env, 2, random_seed=0)])
def test_a_box_without_axes_gets_an_array(wrap):
    env = wrap(Mirror(gymnasium.spaces.Box(-1.0, 1.0, (), np.float32)))
    action = env.step(env.action_space.sample())[0]
    assert isinstance(action, np.ndarray) and action.shape == () and action.dtype == np.float32


def test_the_widest_bounds_of_float64_do_not_overflow():
    env = BoxActionsToReals(Mirror(gymnasium.spaces.Box(-1e308, 1e308, (3,), np.float64)))
    action = env.step(np.array([-np.inf, 0.0, np.inf]))[0]
    np.testing.assert_array_equal(action, [-1e308, 0.0, 1e308])
