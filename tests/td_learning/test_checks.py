"""What rules refuse, with which error and which words, and what they warn of."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import triax
from linear_functions import (
    ACTIONS,
    BINS,
    DISCRETE,
    STATE,
    OfPair,
    OfState,
    Tree,
    as_logits,
    make_binned_q,
    make_binned_v,
    make_policy,
    make_q,
    make_quantile_q,
    make_real_policy,
    make_real_q,
    make_v,
    normal,
)
from triax.losses.value_losses import huber, mse
from triax.losses.value_transforms import LogTransform
from triax.regularizers import EntropyRegularizer
from triax.td_learning import (
    ClippedDoubleQLearning,
    DoubleQLearning,
    ExpectedSarsa,
    QLearning,
    Sarsa,
    SimpleTD,
    SoftClippedDoubleQLearning,
    SoftQLearning,
)


@pytest.fixture(scope="module")
def f():
    """One function of each kind."""
    w = normal(STATE, ACTIONS)
    model = triax.TransitionModel(OfPair(normal(STATE + ACTIONS, STATE)), DISCRETE)
    reward = triax.RewardFunction(OfPair(normal(STATE + ACTIONS)), DISCRETE)
    v = make_v(normal(STATE))
    return SimpleNamespace(
        v=v,
        stochastic_v=make_binned_v(normal(STATE, BINS)),
        q=make_q(w),
        pi=make_policy(w),
        binned=make_binned_q(normal(STATE, ACTIONS * BINS)),
        quantile=make_quantile_q(normal(STATE, ACTIONS * BINS)),
        real_q=make_real_q(normal(STATE + 2)),
        real_pi=make_real_policy(normal(STATE, 2)),
        look_ahead=triax.SuccessorStateQ(v, model, reward),
        model=model,
    )


def refuses(error, message, make):
    with pytest.raises(error, match=message):
        make()


# ------------------------------------------------------------------ kinds


@pytest.mark.parametrize("Rule", [Sarsa, QLearning, DoubleQLearning, SoftQLearning])
def test_functions_of_another_kind_are_refused(f, Rule):
    name = Rule.__name__
    refuses(TypeError, rf"{name}: q must be a q-function; got V\.", lambda: Rule(f.v))
    refuses(TypeError, rf"{name}: q must be a q-function; got Policy\.", lambda: Rule(f.pi))
    refuses(TypeError, rf"{name}: q_targ must be a q-function; got V\.", lambda: Rule(f.q, q_targ=f.v))
    refuses(TypeError, rf"{name}: q_targ must be a q-function; got list\.", lambda: Rule(f.q, q_targ=[f.q]))  # F67


def test_state_values_are_refused_where_others_come(f):
    refuses(TypeError, r"SimpleTD: v must be a V or StochasticV; got Q\.", lambda: SimpleTD(f.q))
    refuses(TypeError, r"SimpleTD: v_targ must be a V or StochasticV; got Q\.", lambda: SimpleTD(f.v, f.q))
    refuses(TypeError, r"SimpleTD: v_targ must be a V or StochasticV; got list\.", lambda: SimpleTD(f.v, [f.v]))  # F67


def test_a_look_ahead_cannot_be_trained(f):
    refuses(TypeError, "QLearning: a SuccessorStateQ has no weights of its own", lambda: QLearning(f.look_ahead))


def test_a_distribution_and_a_number_do_not_mix(f):
    both = "both must be deterministic, or both distributional"
    refuses(TypeError, rf"QLearning: q_targ is a Q, .*{both}", lambda: QLearning(f.binned, q_targ=f.q))
    refuses(TypeError, rf"QLearning: q_targ is a StochasticQ, .*{both}", lambda: QLearning(f.q, q_targ=f.binned))
    refuses(TypeError, both, lambda: SimpleTD(f.v, f.stochastic_v))


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"value_range": (-1.0, 1.0)}, r"its value_range is \(-1\.0, 1\.0\) instead of \(-3\.0, 3\.0\)"),
        ({"value_transform": LogTransform()}, "its value_transform is LogTransform"),
        ({"num_bins": 4}, "logits"),
        ({"value_range": None}, "EmpiricalQuantileDist instead of DiscretizedIntervalDist"),
    ],
)
def test_distributions_that_mean_something_else_by_their_parameters_are_refused(f, options, what):
    options = {"value_range": (-3.0, 3.0), "num_bins": BINS} | options
    bins = options["num_bins"]
    outputs = {"logits": (ACTIONS, bins)}
    if options["value_range"] is None:
        outputs = {"values": (ACTIONS, bins), "quantile_fractions": (ACTIONS, bins)}
    func = Tree(OfState(normal(STATE, ACTIONS * bins)), lambda x: {k: x.reshape(-1, *s) for k, s in outputs.items()})
    other = triax.StochasticQ(func, DISCRETE, **options)
    message = rf"(?s)QLearning: the distribution of q_targ differs.*{what}"
    refuses(TypeError, message, lambda: QLearning(f.binned, q_targ=other))


def test_functions_in_other_spaces_are_refused(f):
    small = SimpleNamespace(observation_space=Box(0, 1, (STATE,)), action_space=DISCRETE.action_space)
    other = triax.Q(OfState(normal(STATE, ACTIONS)), small)
    refuses(TypeError, "QLearning: q_targ must have the observation_space of", lambda: QLearning(f.q, q_targ=other))
    refuses(
        TypeError,
        "ExpectedSarsa: pi_targ must have the observation_space of",
        lambda: ExpectedSarsa(f.q, triax.EpsilonGreedy(other)),
    )
    fewer = SimpleNamespace(observation_space=DISCRETE.observation_space, action_space=Discrete(2))
    pi = triax.Policy(Tree(OfState(normal(STATE, 2)), as_logits), fewer)
    refuses(TypeError, "ExpectedSarsa: pi_targ must have the action_space of", lambda: ExpectedSarsa(f.q, pi))
    refuses(
        TypeError,
        r"QLearning: policy_regularizer\.f must have the action_space of",
        lambda: QLearning(f.q, policy_regularizer=EntropyRegularizer(pi)),
    )


# ------------------------------------------------------------------ the table of section 9.4


def test_expectations_and_soft_maxima_need_discrete_actions(f):
    refuses(NotImplementedError, "ExpectedSarsa needs a Discrete", lambda: ExpectedSarsa(f.real_q, f.real_pi))
    refuses(NotImplementedError, "SoftQLearning needs a Discrete", lambda: SoftQLearning(f.real_q))


def test_expected_sarsa_needs_a_policy(f):
    refuses(TypeError, "ExpectedSarsa: pi_targ must be a Policy.*got NoneType", lambda: ExpectedSarsa(f.q, None))
    refuses(TypeError, "ExpectedSarsa: pi_targ must be a Policy.*got Q", lambda: ExpectedSarsa(f.q, f.q))


@pytest.mark.parametrize("kind", ["binned", "quantile"])
def test_soft_q_learning_needs_a_deterministic_function(f, kind):
    refuses(NotImplementedError, "SoftQLearning .*StochasticQ", lambda: SoftQLearning(getattr(f, kind)))


@pytest.mark.parametrize("Rule", [QLearning, DoubleQLearning])
def test_real_actions_need_a_policy_to_pick_them(f, Rule):
    refuses(TypeError, rf"{Rule.__name__}: pi_targ is needed", lambda: Rule(f.real_q))
    refuses(TypeError, rf"{Rule.__name__}: pi_targ must be a Policy", lambda: Rule(f.real_q, f.real_q))


@pytest.mark.parametrize("Rule", [QLearning, DoubleQLearning])
def test_a_policy_that_is_not_asked_is_said_to_be_ignored(f, Rule):
    with pytest.warns(UserWarning, match=rf"{Rule.__name__}: pi_targ is ignored"):
        rule = Rule(f.q, f.pi)
    assert rule.pi_targ is None


def test_policies_that_are_not_asked_are_said_to_be_ignored(f):
    with pytest.warns(UserWarning, match="ClippedDoubleQLearning: pi_targ_list is ignored"):
        rule = ClippedDoubleQLearning(f.q, [f.pi], [f.q, f.q])
    assert rule.pi_targ_list == []


CLIPPED = [ClippedDoubleQLearning, SoftClippedDoubleQLearning]


@pytest.mark.parametrize("Rule", CLIPPED)
@pytest.mark.parametrize(
    ("targets", "error", "message"),
    [
        (lambda f: None, TypeError, "q_targ_list must be a list or tuple; got NoneType"),
        (lambda f: f.real_q, TypeError, "q_targ_list must be a list or tuple; got Q"),
        (lambda f: [f.real_q, f.v], TypeError, "q_targ_list must be q-functions; got V"),
        (lambda f: [f.real_q, None], TypeError, "q_targ_list must be q-functions; got NoneType"),
        (lambda f: [], ValueError, "q_targ_list must not be empty"),
        (lambda f: (f.real_q,), ValueError, "at least two pairs"),
    ],
)
def test_clipped_rules_check_their_functions(f, Rule, targets, error, message):
    refuses(error, rf"{Rule.__name__}: .*{message}", lambda: Rule(f.real_q, [f.real_pi], targets(f)))


@pytest.mark.parametrize("Rule", CLIPPED)
@pytest.mark.parametrize(
    ("policies", "error", "message"),
    [
        (lambda f: None, TypeError, "pi_targ_list must be a list or tuple; got NoneType"),
        (lambda f: f.real_pi, TypeError, "pi_targ_list must be a list or tuple; got Policy"),
        (lambda f: [f.real_q], TypeError, "pi_targ_list must be a Policy.*got Q"),
        (lambda f: [], ValueError, "pi_targ_list must not be empty"),
    ],
)
def test_clipped_rules_check_their_policies(f, Rule, policies, error, message):
    refuses(error, rf"{Rule.__name__}: {message}", lambda: Rule(f.real_q, policies(f), [f.real_q, f.real_q]))


@pytest.mark.parametrize("Rule", CLIPPED)
def test_two_pairs_are_enough(f, Rule):
    assert len(Rule(f.real_q, [f.real_pi, f.real_pi], [f.real_q]).q_targ_list) == 1
    assert len(Rule(f.real_q, (f.real_pi,), (f.real_q, f.real_q)).q_targ_list) == 2


@pytest.mark.parametrize("Rule", CLIPPED)
def test_with_discrete_actions_two_functions_are_needed(f, Rule):
    refuses(ValueError, rf"{Rule.__name__}: q_targ_list must hold at least two", lambda: Rule(f.q, None, [f.q]))


def test_the_soft_clipped_rule_needs_policies_with_discrete_actions_too(f):  # F60
    refuses(
        TypeError,
        "SoftClippedDoubleQLearning: pi_targ_list must be a list",
        lambda: SoftClippedDoubleQLearning(f.q, None, [f.q, f.q]),
    )


# ------------------------------------------------------------------ losses, regularizers


@pytest.mark.parametrize("kind", ["binned", "quantile"])
def test_distributions_take_no_other_loss(f, kind):  # F61
    message = "QLearning: a distributional function has a loss of its own"
    q = getattr(f, kind)
    refuses(TypeError, message, lambda: QLearning(q, loss_function=mse))
    rule = QLearning(q)
    assert rule.loss_function is huber
    with pytest.raises(TypeError, match=message):
        rule.loss_function = mse
    assert rule.loss_function is huber


def test_a_loss_must_be_a_function(f):
    rule = QLearning(f.q)
    with pytest.raises(TypeError):
        rule.loss_function = 3
    refuses(TypeError, "", lambda: QLearning(f.q, loss_function=3))


def test_a_regularizer_must_be_one_of_a_policy(f):
    refuses(TypeError, "", lambda: QLearning(f.q, policy_regularizer=f.pi))
    refuses(
        TypeError,
        "SimpleTD: policy_regularizer must be one of a policy; its f is a StochasticV",
        lambda: SimpleTD(f.v, policy_regularizer=EntropyRegularizer(f.stochastic_v)),
    )


def test_what_fits_is_taken_without_a_warning(f):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        QLearning(f.q, q_targ=f.look_ahead)
        QLearning(f.real_q, f.real_pi)
        SoftClippedDoubleQLearning(f.q, [f.pi], [f.q, f.look_ahead], policy_regularizer=EntropyRegularizer(f.pi))
    assert np.isfinite(f.q(np.zeros(STATE, np.float32))).all()
