"""Function approximators: values, policies, models; the network is the user's."""

from triax.functions.approximator import Approximator
from triax.functions.example_data import ArgsType1, ArgsType2, ExampleData, Inputs, ModelTypes
from triax.functions.lift import Carry, Lifted, lift
from triax.functions.policy import Policy
from triax.functions.predicates import (
    is_policy,
    is_qfunction,
    is_reward_function,
    is_stochastic,
    is_transition_model,
    is_vfunction,
)
from triax.functions.q import Q, RewardFunction
from triax.functions.random_policy import RandomPolicy
from triax.functions.stochastic_q import StochasticQ, StochasticRewardFunction
from triax.functions.stochastic_transition_model import StochasticTransitionModel
from triax.functions.stochastic_v import StochasticV
from triax.functions.successor_state_q import SuccessorStateQ
from triax.functions.transition_model import TransitionModel
from triax.functions.v import V
from triax.functions.value_based_policies import BoltzmannPolicy, EpsilonGreedy

__all__ = [
    "Approximator",
    "ArgsType1",
    "ArgsType2",
    "BoltzmannPolicy",
    "Carry",
    "EpsilonGreedy",
    "ExampleData",
    "Inputs",
    "Lifted",
    "ModelTypes",
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
    "is_policy",
    "is_qfunction",
    "is_reward_function",
    "is_stochastic",
    "is_transition_model",
    "is_vfunction",
    "lift",
]
