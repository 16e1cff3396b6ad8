"""What is passed where an environment is due, wherever one is."""

import gymnasium
import jax
import jaxtyping
import pytest
from flax import nnx

import triax
from jax_envs import CartPole
from triax.agents import DQN, PPOAgent, QLearningAgent, SACAgent, TD3Agent
from triax.algorithms import train_ppo
from triax.envs import AutoReset, adapt, generate_gif
from triax.loops import DeviceOnPolicy, VectorOnPolicy, evaluate_agent
from triax.loops.gymnasium import evaluate, run_gymnasium
from triax.networks import make_mlp_actor_critic
from triax.reward_tracing import get_transition_batch
from triax.wrappers import (
    BoxActionsToDiscrete,
    BoxActionsToReals,
    EpisodeWrapper,
    FrameStacking,
    MetaPolicyEnv,
    TrainMonitor,
)


class E(gymnasium.Env):
    """A class whose spaces can be read without an instance."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,))
    action_space = gymnasium.spaces.Discrete(2)


def func(S, is_training):
    return S


NET = make_mlp_actor_critic(4, 2, [4], [4], nnx.Rngs(0))
PPO = PPOAgent(NET)
KEY = jax.random.key(0)
PLACES = {
    "V": lambda env: triax.V(func, env),
    "Q": lambda env: triax.Q(func, env),
    "Policy": lambda env: triax.Policy(func, env),
    "StochasticV": lambda env: triax.StochasticV(func, env, value_range=(0, 1)),
    "TransitionModel": lambda env: triax.TransitionModel(func, env),
    "RandomPolicy": triax.RandomPolicy,
    "get_transition_batch": get_transition_batch,
    "QLearningAgent": QLearningAgent,
    "SACAgent": SACAgent,
    "TD3Agent": TD3Agent,
    "DQN": DQN,
    "AutoReset|adapt": AutoReset,
    "adapt": adapt,
    "EpisodeWrapper": lambda env: EpisodeWrapper(env, 5),
    "DeviceOnPolicy|adapt": lambda env: DeviceOnPolicy(env, PPO),
    "VectorOnPolicy": lambda env: VectorOnPolicy(env, PPO),
    "train_ppo|adapt": lambda env: train_ppo(env, NET),
    "evaluate_agent": lambda env: evaluate_agent(PPO, PPO.init(KEY), env, num_episodes=1, key=KEY),
    "evaluate": lambda env: evaluate(func, env, num_episodes=1),
    "run_gymnasium": lambda env: run_gymnasium(DQN(E()), env, 1),
    "generate_gif": lambda env: generate_gif(env, "/nowhere/x.gif"),
    "TrainMonitor": TrainMonitor,
    "FrameStacking": lambda env: FrameStacking(env, 2),
    "MetaPolicyEnv": lambda env: MetaPolicyEnv(env, func),
    "BoxActionsToReals": BoxActionsToReals,
    "BoxActionsToDiscrete": lambda env: BoxActionsToDiscrete(env, 3),
}


@pytest.fixture(autouse=True)
def unchecked(monkeypatch):
    """Without beartype, as users run: shows the library's own errors for wrong types."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.mark.parametrize("who", PLACES)
def test_the_class_of_an_environment_is_refused_with_the_call_that_makes_one(who):
    with pytest.raises(TypeError, match=rf"^({who}): env must be .*env is a class. Try E\(\)"):
        PLACES[who](E)


@pytest.mark.parametrize("who", PLACES)
def test_the_name_of_an_environment_is_refused_with_the_call_that_makes_one(who):
    with pytest.raises(TypeError, match=rf"^({who}): env must be .*got its name. Try gymnasium.make\('CartPole-v1'\)"):
        PLACES[who]("CartPole-v1")


def test_what_is_no_environment_is_refused_by_wrappers_with_its_type():
    with pytest.raises(TypeError, match=r"TrainMonitor: env must be a gymnasium.Env; got CartPole. Try gymnasium.make"):
        TrainMonitor(CartPole())


def test_ppo_in_a_gymnasium_environment_is_sent_to_the_loop_that_runs_it():
    with pytest.raises(TypeError, match=r"Gymnasium environment.*Try .*VectorOnPolicy\(env, PPOAgent\(networks, conf"):
        train_ppo(gymnasium.make("CartPole-v1"), NET)
