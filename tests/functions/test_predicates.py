"""What kind of function an object is."""

import numpy as np
import pytest

import triax
from triax.functions import (
    is_policy,
    is_qfunction,
    is_reward_function,
    is_stochastic,
    is_transition_model,
    is_vfunction,
)

PREDICATES = {  # section 15.4
    is_vfunction: {"V", "StochasticV"},
    is_qfunction: {"Q", "StochasticQ", "SuccessorStateQ", "RewardFunction", "StochasticRewardFunction"},
    is_policy: {"Policy", "EpsilonGreedy", "BoltzmannPolicy", "RandomPolicy"},
    is_reward_function: {"RewardFunction", "StochasticRewardFunction"},
    is_transition_model: {"TransitionModel", "StochasticTransitionModel"},
    is_stochastic: {
        "Policy",
        "StochasticV",
        "StochasticQ",
        "StochasticRewardFunction",
        "StochasticTransitionModel",
    },
}
CLASSES = sorted(set().union(*PREDICATES.values()))


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("predicate", PREDICATES, ids=lambda f: f.__name__)
def test_each_class_is_what_the_contract_says(predicate, name):
    instance = object.__new__(getattr(triax, name))
    assert predicate(instance) is (name in PREDICATES[predicate])


def test_subclasses_are_what_their_base_is():
    class Mine(triax.Q):
        pass

    assert is_qfunction(object.__new__(Mine))


@pytest.mark.parametrize("other", [None, 3, "v", np.zeros(2), triax.V, lambda s: s])
@pytest.mark.parametrize("predicate", PREDICATES, ids=lambda f: f.__name__)
def test_other_objects_are_nothing(predicate, other):
    assert predicate(other) is False
