"""Numbers and names that users set are checked at once; what is refused leaves the old value."""

import numpy as np
import pytest

import triax
from linear_functions import ACTIONS, DISCRETE, STATE, OfPair, make_policy, make_q, make_v, normal
from triax.policy_objectives import PPOClip, VanillaPG
from triax.regularizers import EntropyRegularizer, KLDivRegularizer, NStepEntropyRegularizer
from triax.td_learning import QLearning, SimpleTD, SoftQLearning

W = normal(STATE, ACTIONS)


def successor_state_q():
    pair = normal(STATE + ACTIONS)
    parts = (
        make_v(normal(STATE)),
        triax.TransitionModel(OfPair(normal(STATE + ACTIONS, STATE)), DISCRETE, random_seed=0),
        triax.RewardFunction(OfPair(pair), DISCRETE, random_seed=0),
    )
    return triax.SuccessorStateQ(*parts)


COEFFICIENTS = [
    (lambda: SoftQLearning(make_q(W)), "temperature", 1.0, (0, -1.0, np.nan, np.inf, 1e-50)),
    (lambda: PPOClip(make_policy(W)), "epsilon", 0.2, (-0.1, np.nan, np.inf)),
    (lambda: EntropyRegularizer(make_policy(W)), "beta", 0.001, (np.nan, -np.inf)),
    (lambda: KLDivRegularizer(make_policy(W)), "beta", 0.001, (np.nan, 1e39)),
    (lambda: NStepEntropyRegularizer(make_policy(W), n=[0]), "beta", 0.001, (np.nan,)),
    (lambda: NStepEntropyRegularizer(make_policy(W), n=[0]), "gamma", 0.99, (1.1, -0.1, np.nan)),
    (successor_state_q, "gamma", 0.9, (1.1, -0.1, np.nan)),
    (lambda: triax.EpsilonGreedy(make_q(W)), "epsilon", 0.1, (1.1, -0.1, np.nan)),
    (lambda: triax.BoltzmannPolicy(make_q(W)), "temperature", 0.02, (0, np.nan, np.inf)),
]


@pytest.mark.parametrize(("make", "name", "default", "wrong"), COEFFICIENTS)
def test_a_coefficient_out_of_range_is_refused_by_name_and_the_old_one_stays(make, name, default, wrong):
    owner = make()
    who = type(owner).__name__
    for value in wrong:
        with pytest.raises(ValueError, match=f"{who}: {name} must be .*; got"):
            setattr(owner, name, value)
    for value in (None, "0.5", True, [0.5]):
        with pytest.raises(TypeError, match=f"{who}: {name} must be a number; got"):
            setattr(owner, name, value)
    assert getattr(owner, name) == default
    setattr(owner, name, np.float32(0.25))
    assert getattr(owner, name) == 0.25


@pytest.mark.parametrize(
    "make",
    [
        lambda: SoftQLearning(make_q(W), temperature=0.0),
        lambda: PPOClip(make_policy(W), epsilon=-1.0),
        lambda: EntropyRegularizer(make_policy(W), beta=np.nan),
        lambda: NStepEntropyRegularizer(make_policy(W), n=[0], gamma=2.0),
        lambda: KLDivRegularizer(make_policy(W), priors={"logits": np.array([[0, np.nan, 0, 0]])}),
    ],
)
def test_the_constructor_refuses_them_too(make):
    with pytest.raises(ValueError, match=r"temperature|epsilon|beta|gamma|priors"):
        make()


@pytest.mark.parametrize(
    ("make", "wrong", "right"),
    [
        (lambda: triax.BoltzmannPolicy(make_q(W)), "epsilon", "temperature"),
        (lambda: triax.EpsilonGreedy(make_q(W)), "temperature", "epsilon"),
        (lambda: make_q(W), "parms", "params"),
        (lambda: PPOClip(make_policy(W)), "temperature", "epsilon"),
        (lambda: EntropyRegularizer(make_policy(W)), "betta", "beta"),
    ],
)
def test_a_mistyped_attribute_is_refused_and_the_right_one_named(make, wrong, right):
    owner = make()
    with pytest.raises(AttributeError, match=f"{type(owner).__name__} has no attribute '{wrong}'.*{right}"):
        setattr(owner, wrong, 0.5)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (
            lambda: SoftQLearning(make_q(W), temperature=0.5),
            "SoftQLearning(Q with 12 parameters, optimizer=ScaleByAdam, steps=0, temperature=0.5, loss_function=huber)",
        ),
        (
            lambda: SimpleTD(make_v(normal(STATE)), policy_regularizer=EntropyRegularizer(make_policy(W), beta=0.01)),
            "SimpleTD(V with 3 parameters, optimizer=ScaleByAdam, steps=0, loss_function=huber,"
            " policy_regularizer=EntropyRegularizer(Policy, beta=0.01))",
        ),
        (
            lambda: PPOClip(make_policy(W)),
            "PPOClip(Policy with 12 parameters, optimizer=ScaleByAdam, steps=0, epsilon=0.2)",
        ),
        (
            lambda: NStepEntropyRegularizer(make_policy(W), n=[0, 2]),
            "NStepEntropyRegularizer(Policy, n=(0, 2), beta=0.001, gamma=0.99)",
        ),
    ],
)
def test_rules_and_regularizers_print_in_one_line(made, expected):
    assert repr(made()) == expected


def test_subclasses_of_users_may_have_attributes_of_their_own():
    class Mine(QLearning):
        def __init__(self, q):
            super().__init__(q)
            self.note = "mine"

    rule = Mine(make_q(W))
    rule.note = "still"
    with pytest.raises(AttributeError, match="Mine has no attribute 'notes'"):
        rule.notes = 1
    VanillaPG(make_policy(W))._private = 1
