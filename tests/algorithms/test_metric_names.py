"""Every name that trainings in Python hand to ``log_fn``, and agents to loops, is on the page about them."""

import re

import jax
import jax.numpy as jnp
import pytest
from flax import nnx
from gymnasium.spaces import Box, Discrete

from pages import ROOT
from triax.agents import QLearningAgent, QLearningConfig, SACAgent, SACConfig, TD3Agent, TD3Config
from triax.algorithms import (
    DistillationConfig,
    DistillationTrainConfig,
    EvalConfig,
    LoggingLevel,
    PPOConfig,
    TrainConfig,
    VideoConfig,
    train_distillation,
    train_ppo,
)
from triax.envs import State
from triax.loops import OffPolicyConfig
from triax.loops.episodes import Episodes
from triax.loops.off_policy_core import OffPolicyCore
from triax.networks import make_mlp_actor_critic

STATISTIC = r"/(mean|std|p[\d.]+)$"


def documented():
    """Patterns of the names in code style on the page; ``/name`` goes on in the family of the name before it.

    Statistics of a name are not told apart.
    """
    names = []
    for name in re.findall(r"`([^`\s]+)`", (ROOT / "docs" / "metrics.md").read_text()):
        names.append(names[-1].rpartition("/")[0] + name if name.startswith("/") else name)
    bare = {re.sub(STATISTIC, "", name) for name in names} - {"RULE"}
    return [re.escape(name).replace(r"\.\.\.", ".+").replace("RULE", r"\w+") for name in bare]


def undocumented(names):
    bare, patterns = {re.sub(STATISTIC, "", name) for name in names}, documented()
    return sorted(name for name in bare if not any(re.fullmatch(pattern, name) for pattern in patterns))


class Drift:
    """A point that stays where it is for ten steps."""

    observation_space = Box(-1.0, 1.0, (1,))

    def __init__(self, action_space):
        self.action_space = action_space

    def reset(self, rng):
        place = jax.random.uniform(rng, (1,))
        return State.first(place, inner=0, metrics={"distance": jnp.zeros(())})

    def step(self, state, action):
        ends, metrics = state.inner >= 9, {"distance": jnp.zeros(())}
        return state.next(state.obs, 0.0, False, inner=state.inner + 1, truncated=ends, metrics=metrics)

    def render(self, states, height, width):
        return jnp.zeros((3, 4, 4, 3))


BOX, DISCRETE = Drift(Box(-1.0, 1.0, (1,))), Drift(Discrete(2))
AGENTS = {
    "q": lambda: QLearningAgent(DISCRETE, QLearningConfig(hidden=(4,), alpha=0.5)),
    "sac": lambda: SACAgent(BOX, SACConfig(hidden=(4,))),
    "discrete sac": lambda: SACAgent(DISCRETE, SACConfig(hidden=(4,))),
    "td3": lambda: TD3Agent(BOX, TD3Config(hidden=(4,))),
}


@pytest.mark.parametrize("name", AGENTS)
def test_what_agents_measure_in_updates_is_documented(name):
    core = OffPolicyCore(AGENTS[name](), OffPolicyConfig(warm_up=10, capacity=100))
    state = jax.eval_shape(lambda key: core.begin(key, jnp.zeros((1, 1))), jax.random.key(0))
    assert undocumented(jax.eval_shape(core.updates, state)[1]) == []


def test_what_loops_measure_of_episodes_is_documented():
    assert undocumented(Episodes.begin(1).report()[0]) == []


def test_a_name_that_is_not_on_the_page_is_found():
    assert undocumented(["loss", "lossy", "net/x/mean", "nets/x/std"]) == ["lossy", "nets/x"]


@pytest.mark.slow
def test_all_that_trainings_log_is_documented():
    level, names = LoggingLevel.ALL | LoggingLevel.ROLLOUT_OBS, set()
    tiny = {"n_envs": 2, "rollout_length": 4, "n_minibatches": 1, "n_epochs": 1, "total_steps": 32}
    tiny |= {"logging_level": level, "logging_percentiles": (2.5,)}
    evaluation = EvalConfig(every_steps=8, n_envs=2, max_episode_length=10, logging_level=level)
    networks, student = (make_mlp_actor_critic(1, 1, [4], [4], nnx.Rngs(seed)) for seed in (0, 1))

    def log(metrics, steps):
        names.update(metrics)

    video = VideoConfig(enabled=True, every_steps=8, episode_length=3)
    config = TrainConfig(ppo=PPOConfig(**tiny, target_kl=0.1), eval=evaluation, video=video)
    train_ppo(BOX, networks, config, log_fn=log, video_fn=lambda video: None)
    for loss in ("kl", "mode"):
        distillation = DistillationConfig(**tiny, loss=loss)
        config = DistillationTrainConfig(distillation=distillation, eval=evaluation)
        train_distillation(BOX, networks, student, config, log_fn=log)
    assert {"stopped", "losses/total/p2.5", "losses/distillation_nll/mean", "eval/lifespan/mean", "return"} <= names
    assert undocumented(names) == []
