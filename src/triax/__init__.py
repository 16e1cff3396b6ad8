"""Reinforcement learning on JAX: concepts you compose, networks that remember, loops that compile."""

from triax import (
    agents,
    algorithms,
    distributed,
    envs,
    experience_replay,
    functions,
    learning,
    loops,
    losses,
    model_updaters,
    networks,
    pictures,
    policy_objectives,
    proba_dists,
    regularizers,
    reward_tracing,
    runs,
    spaces,
    td_learning,
    typing,
    utils,
    value_losses,
    value_transforms,
    wrappers,
)
from triax._version import __version__
from triax.core.debugging import debug_nans_if_asked
from triax.core.moved_names import refuse_moved
from triax.core.vectorize import unvectorize
from triax.envs import render_episode
from triax.functions import (
    BoltzmannPolicy,
    EpsilonGreedy,
    Policy,
    Q,
    RandomPolicy,
    RewardFunction,
    StochasticQ,
    StochasticRewardFunction,
    StochasticTransitionModel,
    StochasticV,
    SuccessorStateQ,
    TransitionModel,
    V,
)
from triax.spaces import safe_sample

debug_nans_if_asked()

__getattr__ = refuse_moved(
    __name__,
    {
        name: f"triax.{package.__name__.rpartition('.')[2]}.{name}"
        for package in (
            agents,
            algorithms,
            distributed,
            experience_replay,
            loops,
            model_updaters,
            networks,
            policy_objectives,
            proba_dists,
            regularizers,
            reward_tracing,
            td_learning,
            wrappers,
        )
        for name in package.__all__
    },
)

__all__ = [
    "BoltzmannPolicy",
    "EpsilonGreedy",
    "Policy",
    "Q",
    "RandomPolicy",
    "RewardFunction",
    "StochasticQ",
    "StochasticRewardFunction",
    "StochasticTransitionModel",
    "StochasticV",
    "SuccessorStateQ",
    "TransitionModel",
    "V",
    "__version__",
    "agents",
    "algorithms",
    "distributed",
    "envs",
    "experience_replay",
    "functions",
    "learning",
    "loops",
    "losses",
    "model_updaters",
    "networks",
    "pictures",
    "policy_objectives",
    "proba_dists",
    "regularizers",
    "render_episode",
    "reward_tracing",
    "runs",
    "safe_sample",
    "spaces",
    "td_learning",
    "typing",
    "unvectorize",
    "utils",
    "value_losses",
    "value_transforms",
    "wrappers",
]
