"""Running statistics learn what each learning step saw: every sample once, in all rules, batches and trajectories."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

import triax
from linear_functions import ACTIONS, DISCRETE, REALS, S_NEXT, STATE, A, B, S, as_logits, as_normal, batch, real_batch
from triax.core.errors import NonFiniteError
from triax.losses.value_losses import mse
from triax.model_updaters import ModelUpdater
from triax.networks import LSTM, Dense, Map, Normalizer, Sequential
from triax.policy_objectives import DeterministicPG, PPOClip, SoftPG, VanillaPG
from triax.regularizers import EntropyRegularizer
from triax.reward_tracing import Trajectory
from triax.td_learning import (
    ClippedDoubleQLearning,
    DoubleQLearning,
    ExpectedSarsa,
    QLearning,
    Sarsa,
    SimpleTD,
    SoftQLearning,
)

SGD = optax.sgd(0.1)
T = 6


def normalized(size, *rest):
    """A network of the state behind a normalizer."""
    return Sequential([Normalizer(STATE), Dense(STATE, size, nnx.Rngs(0)), *rest])


def first(x):
    return x[..., 0]


def make_v(**options):
    return triax.V(normalized(1, first), DISCRETE, random_seed=0, **options)


def make_q(*memory):
    net = Sequential([Normalizer(STATE), *memory, Dense(STATE, ACTIONS, nnx.Rngs(0))])
    return triax.Q(net, DISCRETE, random_seed=0)


def make_real_q():
    """Of state and action; the statistics are those of the state."""

    def join(x):
        return jnp.concatenate([x["S"], x["A"]], axis=-1)

    parts = Map({"S": Normalizer(STATE), "A": lambda x: x})
    return triax.Q(Sequential([parts, join, Dense(STATE + 2, 1, nnx.Rngs(0)), first]), REALS, random_seed=0)


def make_policy(env=DISCRETE):
    size, head = (ACTIONS, as_logits) if env is DISCRETE else (2, as_normal)
    return triax.Policy(normalized(size, head), env, random_seed=0)


def make_stochastic_q():
    net = normalized(ACTIONS * 4, lambda x: {"logits": x.reshape(len(x), ACTIONS, 4)})
    return triax.StochasticQ(net, DISCRETE, value_range=(-1, 1), num_bins=4, random_seed=0)


def moments(f):
    """``(count, mean, variance)`` of the one normalizer inside."""
    leaves = {
        jax.tree_util.keystr(path): np.asarray(leaf)
        for path, leaf in jax.tree_util.tree_leaves_with_path(f.function_state)
    }

    def total(field):
        return sum(leaf for name, leaf in leaves.items() if f"'{field}'" in name or f"'{field}_rest'" in name)

    return total("counter"), total("mean"), total("m2") / max(total("counter"), 1)


def assert_saw(f, *samples):
    """Its statistics are those of all these samples, ``[..., STATE]``, each once."""
    rows = np.concatenate([np.reshape(x, (-1, STATE)) for x in samples])
    count, mean, variance = moments(f)
    assert count == len(rows)
    np.testing.assert_allclose(mean, rows.mean(0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(variance, rows.var(0), rtol=1e-4)


def updating_q(rule, *args, **options):
    q = make_q()
    return q, rule(q, *args, optimizer=SGD, **options).update


def updating_objective(objective, env=DISCRETE, *args, **options):
    pi = make_policy(env)
    made = objective(pi, *args, optimizer=SGD, **options)
    return pi, lambda transitions: made.update(transitions, np.ones(B, np.float32))


def updating_v():
    v = make_v()
    return v, SimpleTD(v, optimizer=SGD).update


def updating_stochastic_q():
    q = make_stochastic_q()
    return q, QLearning(q, q_targ=q.copy(), optimizer=SGD).update


def updating_model():
    r = triax.RewardFunction(normalized(ACTIONS), DISCRETE, random_seed=0)
    return r, ModelUpdater(r, SGD).update


def updating_regularized():
    pi = make_policy()
    made = VanillaPG(pi, SGD, regularizer=EntropyRegularizer(pi))
    return pi, lambda transitions: made.update(transitions, np.ones(B, np.float32))


RULES = {
    "QLearning": lambda: updating_q(QLearning, q_targ=make_q()),
    "DoubleQLearning on itself": lambda: updating_q(DoubleQLearning),
    "Sarsa": lambda: updating_q(Sarsa),
    "ExpectedSarsa": lambda: updating_q(ExpectedSarsa, make_policy()),
    "SoftQLearning": lambda: updating_q(SoftQLearning),
    "ClippedDoubleQLearning": lambda: updating_q(ClippedDoubleQLearning, q_targ_list=[make_q(), make_q()]),
    "QLearning of a StochasticQ": updating_stochastic_q,
    "SimpleTD": updating_v,
    "VanillaPG": lambda: updating_objective(VanillaPG),
    "VanillaPG with a regularizer of itself": updating_regularized,
    "PPOClip": lambda: updating_objective(PPOClip),
    "ModelUpdater": updating_model,
}


@pytest.mark.parametrize("make", RULES.values(), ids=RULES)
def test_each_update_counts_each_state_of_the_batch_once(make):
    f, update = make()
    update(batch(logP=np.full(B, -1.0)))
    assert_saw(f, S)
    update(batch(S=S_NEXT, logP=np.full(B, -1.0)))
    assert_saw(f, S, S_NEXT)


@pytest.mark.parametrize("objective", [DeterministicPG, SoftPG])
def test_of_a_policy_and_its_critic_only_the_one_in_training_learns(objective):
    q, pi = make_real_q(), make_policy(REALS)
    critics = [q] if objective is SoftPG else q
    objective(pi, critics, SGD).update(real_batch())
    assert_saw(pi, S)
    assert moments(q)[0] == 0
    QLearning(q, pi_targ=pi, optimizer=SGD).update(real_batch(S=S_NEXT))
    assert_saw(q, S_NEXT)
    assert_saw(pi, S)


def test_the_step_itself_still_normalizes_by_the_statistics_before_it():
    v = make_v()
    weight = np.asarray(jax.tree.leaves(v.params)[-1])
    expected = (S / 10) @ weight  # before any data
    rule = SimpleTD(v, optimizer=optax.sgd(0.0), loss_function=mse)
    # All errors alike: with G = 0 the loss is the mean square of the predictions.
    metrics = rule.update(batch(Rn=np.zeros(B), In=np.zeros(B), W=np.ones(B)))
    np.testing.assert_allclose(metrics["SimpleTD/loss"], 0.5 * np.mean(expected**2), rtol=1e-4)
    normal = (S[0] - S.mean(0)) / S.std(0)
    np.testing.assert_allclose(v(S[0]), (normal @ weight).item(), rtol=1e-4)


def test_targets_acting_and_errors_learn_no_statistics():
    q, q_targ = make_q(), make_q()
    rule = QLearning(q, q_targ=q_targ, optimizer=SGD)
    rule.td_error(batch())
    rule.plain_td_error(batch())
    q(S[0])
    pi = make_policy()
    pi(S[0])
    pi.mode(S[0])
    assert moments(q)[0] == moments(pi)[0] == 0
    rule.update(batch())
    assert moments(q_targ)[0] == 0 and moments(q)[0] == B


def test_gradients_computed_elsewhere_bring_their_statistics_along():
    q = make_q()
    rule = QLearning(q, optimizer=SGD)
    grads, state, *_ = rule.grads_and_metrics(batch())
    assert moments(q)[0] == 0
    rule.apply_grads(grads, state)
    assert_saw(q, S)


def test_a_step_that_is_left_out_leaves_the_statistics_as_they_were():
    q = make_q()
    rule = QLearning(q, optimizer=SGD, loss_function=mse)
    rule.update(batch())
    before = jax.tree.map(np.array, q.function_state)
    rule.update(batch(Rn=np.full(B, 1e30, np.float32)))
    with pytest.raises(NonFiniteError):
        rule.raise_if_not_finite()
    jax.tree.map(np.testing.assert_array_equal, q.function_state, before)


# ------------------------------------------------------------------ trajectories


def trajectory(f, **options):
    rng = np.random.default_rng(3)
    states = rng.normal(size=(T + 1, B, STATE)).astype(np.float32) * 3 + 1
    done = np.zeros((T, B), bool)
    done[2, 1] = True
    return Trajectory(
        S=states[:T],
        A=np.stack([A] * T),
        logP=np.full((T, B), -1.0, np.float32),
        R=rng.normal(size=(T, B)).astype(np.float32),
        terminated=done,
        truncated=np.zeros_like(done),
        S_next=states[1:],
        carry=f.initial_carry(B),
        gamma=0.9,
        **options,
    )


@pytest.mark.parametrize("memory", [(), (LSTM(STATE, STATE, nnx.Rngs(1)),)], ids=["memoryless", "with memory"])
def test_each_step_of_a_trajectory_counts_once(memory):
    q = make_q(*memory)
    rule = QLearning(q, optimizer=SGD)
    steps = trajectory(q)
    rule.update(steps)
    assert_saw(q, steps.S)


def test_steps_of_the_burn_in_count_in_no_update():  # they are learned from in another sequence
    q = make_q(LSTM(STATE, STATE, nnx.Rngs(1)))
    steps = trajectory(q, burn_in=2)
    QLearning(q, optimizer=SGD).update(steps)
    assert_saw(q, steps.S[2:])


# ------------------------------------------------------------------ copies


@pytest.mark.parametrize("tau", [1.0, 0.01])
def test_a_soft_update_copies_statistics_which_mean_something_only_together(tau):
    q = make_q()
    target = q.copy()
    QLearning(q, optimizer=SGD).update(batch(S=S + 1e3))
    target.soft_update(q, tau)
    jax.tree.map(np.testing.assert_array_equal, target.function_state, q.function_state)
    count, mean, variance = moments(target)
    assert count == B
    np.testing.assert_allclose(mean, (S + 1e3).mean(0), rtol=1e-6)
    np.testing.assert_allclose(variance, (S + np.float32(1e3)).var(0), rtol=1e-3)


def test_an_empty_soft_update_copies_nothing():
    q = make_q()
    target = q.copy()
    QLearning(q, optimizer=SGD).update(batch())
    target.soft_update(q, 0.0)
    assert moments(target)[0] == 0
