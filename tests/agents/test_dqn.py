"""The DQN agent learns, explores as told, and restores its weights."""

import json
from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete

from triax.agents import DQN, DQNConfig
from triax.loops import evaluate, run_gymnasium

SMALL = {"hidden": (16,), "learning_starts": 50, "batch_size": 16, "epsilon_steps": 500}


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, marks=pytest.mark.slow),
        pytest.param({"double": False}, marks=pytest.mark.slow),
        pytest.param({"prioritized": True, "n_step": 3}, marks=pytest.mark.slow),
    ],
)
def test_finds_the_way_on_a_frozen_lake_that_is_not_slippery(options):
    env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    config = DQNConfig(**SMALL | {"epsilon_final": 0.4, "tau": 0.05, "learning_rate": 5e-3, "gamma": 0.9} | options)
    agent = DQN(env, config, total_steps=4000, seed=0)
    run_gymnasium(agent, env, 4000, seed=0)
    assert evaluate(agent.act_greedily, env, num_episodes=1, seed=0) == [1.0]


def test_exploration_falls_as_the_config_says():
    env = gymnasium.make("CartPole-v1")
    agent = DQN(env, DQNConfig(**SMALL, epsilon_start=0.8, epsilon_final=0.2), seed=0)
    seen = {}
    for step in (0, 250, 500, 900):
        agent.step = step
        agent.act(np.zeros(4, np.float32))
        seen[step] = agent.pi.epsilon
    assert seen == pytest.approx({0: 0.8, 250: 0.5, 500: 0.2, 900: 0.2})


def test_greedy_actions_do_not_depend_on_exploration():
    env = gymnasium.make("CartPole-v1")
    agent = DQN(env, DQNConfig(**SMALL), seed=1)
    agent.pi.epsilon = 1.0
    s = np.array([0.1, -0.2, 0.05, 0.3], np.float32)
    assert {agent.act_greedily(s) for _ in range(20)} == {int(agent.q(s).argmax())}


def test_learning_begins_after_the_warm_up_and_keeps_its_rhythm():
    env = gymnasium.make("CartPole-v1")
    agent = DQN(env, DQNConfig(**SMALL | {"learning_starts": 100}, update_every=4), seed=0)
    updates = []
    run_gymnasium(agent, env, 120, seed=0, hooks=[lambda p: updates.append(p.step) if p.metrics else None])
    assert updates == [100, 104, 108, 112, 116, 120]


def test_weights_come_back():
    env = gymnasium.make("CartPole-v1")
    first, second = (DQN(env, DQNConfig(**SMALL), seed=seed) for seed in (0, 1))
    s = np.array([0.1, -0.2, 0.05, 0.3], np.float32)
    assert not np.allclose(first.q(s), second.q(s))
    second.set_weights(first.weights())
    np.testing.assert_array_equal(first.q(s), second.q(s))


class Images(gymnasium.Env):
    """Composite observations with an image that replay shares, of dtypes that the spaces do not tell."""

    observation_space = Dict({"image": Box(0, 255, (64, 65), np.uint8), "at": Box(-9, 9, (2,), np.float32)})
    action_space = Discrete(3, start=-1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = np.zeros(2)  # float64
        return self.observe(), {}

    def observe(self):
        image = np.full((64, 65), int(self.at[0] * 16) % 256, np.uint8)
        return {"image": image, "at": self.at}

    def step(self, a):
        self.at = self.at + [int(a) / 4, self.np_random.normal()]
        return self.observe(), float(-abs(self.at[0])), self.np_random.random() < 0.1, False, {}


def states(agent, env, total_steps, start=(0, 0)):
    """Steps, episodes and state at each episode's end."""
    saved = []

    def save(progressed):
        if progressed.episode_ended:
            saved.append(((progressed.step, progressed.episodes), agent.state_dict()))

    run_gymnasium(agent, env, total_steps, seed=3, hooks=[save], start=start)
    return saved


def assert_same_state(first, second):
    assert first["scalars"] == second["scalars"]
    assert first["arrays"].keys() == second["arrays"].keys()
    for path, array in first["arrays"].items():
        assert np.asarray(array).tobytes() == np.asarray(second["arrays"][path]).tobytes(), path


BUSY = {"prioritized": True, "n_step": 3, "double": False, "buffer_size": 120}


@pytest.mark.parametrize(
    ("make_env", "options"),
    [(partial(gymnasium.make, "CartPole-v1"), {}), (partial(gymnasium.make, "CartPole-v1"), BUSY), (Images, {})],
)
def test_an_agent_that_loads_a_state_goes_on_bit_for_bit(make_env, options):
    config = DQNConfig(**{**SMALL, "epsilon_steps": 200} | options)
    unbroken, resumed = (DQN(make_env(), config, total_steps=300, seed=3) for _ in range(2))
    saved = states(unbroken, make_env(), 220)
    start, state = next(pair for pair in saved if pair[0][0] > 120)
    on_disk = {path: np.array(array) for path, array in state["arrays"].items()}
    resumed.load_state_dict({"scalars": json.loads(json.dumps(state["scalars"])), "arrays": on_disk})
    last_start, last = states(resumed, make_env(), 220, start)[-1]
    assert last_start == saved[-1][0] > start
    assert_same_state(last, saved[-1][1])
    assert unbroken.step == resumed.step == 220
    assert unbroken.buffer._ring.num_frames == resumed.buffer._ring.num_frames


def test_evaluating_and_saving_do_not_alter_training():
    config = DQNConfig(**SMALL)
    make_env = partial(gymnasium.make, "CartPole-v1")
    weights = []
    for evaluates in (False, True):
        agent = DQN(make_env(), config, seed=0)

        def evaluate_and_save(progressed, agent=agent, evaluates=evaluates):
            if evaluates:
                agent.act_greedily(np.zeros(4, np.float32))
            if evaluates and progressed.episode_ended:
                agent.state_dict()

        run_gymnasium(agent, make_env(), 80, seed=0, hooks=[evaluate_and_save])
        weights.append(agent.q(np.ones(4, np.float32)))
    np.testing.assert_array_equal(*weights)


def test_the_state_of_another_architecture_is_refused_by_leaf_and_changes_nothing():
    env = gymnasium.make("CartPole-v1")
    _, state = states(DQN(env, DQNConfig(**SMALL), seed=3), env, 45)[-1]
    other = DQN(env, DQNConfig(**SMALL | {"hidden": (8,)}), seed=0)
    s = np.zeros(4, np.float32)
    before = other.q(s)
    with pytest.raises(ValueError, match=r"DQN\['q/params.*kernel.*expected float32\[4,8\], got float32\[4,16\]"):
        other.load_state_dict(state)
    assert other.step == len(other.buffer) == 0
    np.testing.assert_array_equal(other.q(s), before)


def test_a_state_is_not_given_while_an_episode_runs():
    env = gymnasium.make("CartPole-v1")
    agent = DQN(env, DQNConfig(**SMALL, n_step=3), seed=0)
    run_gymnasium(agent, env, 1, seed=0)
    with pytest.raises(ValueError, match="where an episode has ended; 1 steps"):
        agent.state_dict()


def test_continuous_actions_are_refused():
    with pytest.raises(TypeError, match="Discrete"):
        DQN(gymnasium.make("Pendulum-v1"))


@pytest.mark.slow
def test_solves_cart_pole():
    env = gymnasium.make("CartPole-v1")
    agent = DQN(env, total_steps=60_000, seed=0)
    best = 0.0

    def solved(progressed):
        nonlocal best
        if progressed.step % 2_500 == 0:
            best = max(best, evaluate(agent.act_greedily, gymnasium.make("CartPole-v1"), num_episodes=10).mean())
        return best >= 475

    run_gymnasium(agent, env, 60_000, seed=0, hooks=[solved])
    assert best >= 475
