import functools
import inspect

import gymnasium
import jaxtyping
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import triax
from triax.wrappers import MetaPolicyEnv


class Echo(gymnasium.Env):
    """Observations count the steps; remembers the actions."""

    observation_space = gymnasium.spaces.Box(0, 1e6, (1,))
    action_space = gymnasium.spaces.Discrete(5)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t, self.given, self.arguments = 0, [], (seed, options)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.t += 1
        self.given.append(action)
        return np.full(1, self.t, np.float32), 1.0, False, self.t == 9, {"own": 2}


def plain(s):
    return int(s[0])


def telling(s, return_logp=False):
    return (4, -0.5) if return_logp else 4


class Object:
    """A policy object, as ``triax.Policy``."""

    def __call__(self, s, *, return_logp=False):
        return (3, -1.5) if return_logp else 3


def started(*arms):
    env = MetaPolicyEnv(Echo(), *arms)
    env.reset()
    return env


def test_the_arm_picks_the_action_for_the_last_observation():
    env = started(plain, telling)
    for a_meta in (0, 0, 1, 0):
        env.step(a_meta)
    assert env.unwrapped.given == [0, 1, 4, 3]


@pytest.mark.parametrize(
    ("arm", "a", "logp"),
    [
        (plain, 0, 0.0),
        (telling, 4, -0.5),
        (Object(), 3, -1.5),
        (Object().__call__, 3, -1.5),
        (functools.partial(telling), 4, -0.5),
        (lambda s: 2, 2, 0.0),
    ],
)
def test_any_callable_can_be_an_arm_and_tells_what_it_can(arm, a, logp):  # F81
    *_, info = started(arm).step(0)
    assert info == {"own": 2, "a": a, "logp": logp}


def test_a_built_in_without_a_signature_is_called_plainly():  # F81
    with pytest.raises(ValueError, match="no signature"):
        inspect.signature(max)
    *_, info = started(max).step(0)
    assert (info["a"], info["logp"]) == (0, 0.0)


def test_random_policies_are_arms():  # F81
    env = MetaPolicyEnv(Echo(), triax.RandomPolicy(Echo(), random_seed=0))
    env.reset()
    *_, info = env.step(0)
    assert info["a"] in Echo.action_space
    np.testing.assert_allclose(info["logp"], -np.log(5), rtol=1e-6)


def test_the_action_space_counts_the_arms():
    assert started(plain, telling, Object()).action_space == gymnasium.spaces.Discrete(3)


def test_seed_and_options_reach_the_environment():  # F81
    env = MetaPolicyEnv(Echo(), plain)
    env.reset(seed=4, options={"x": 1})
    assert env.unwrapped.arguments == (4, {"x": 1})


@pytest.mark.filterwarnings("ignore:.*WARN")  # the checker would rather see no wrapper
def test_the_wrapped_environment_follows_gymnasiums_interface():
    check_env(MetaPolicyEnv(Echo(), plain, telling), skip_render_check=True)


@pytest.mark.parametrize("a_meta", [2, -1, 0.0, "0", None])
def test_what_is_no_arm_is_refused_by_its_value(a_meta):
    env = started(plain, telling)
    with pytest.raises(ValueError, match="an int from 0 to 1; got"):
        env.step(a_meta)
    assert not env.unwrapped.given


def test_stepping_before_the_first_reset_is_an_error():
    with pytest.raises(gymnasium.error.ResetNeeded, match=r"Try reset\(\) first"):
        MetaPolicyEnv(Echo(), plain).step(0)


def test_arms_are_needed_and_must_be_callable(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(TypeError, match="at least one arm"):
        MetaPolicyEnv(Echo())
    with pytest.raises(TypeError, match=r"must be callable, a = arm.*; got 7"):
        MetaPolicyEnv(Echo(), plain, 7)
