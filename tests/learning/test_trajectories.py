"""Rules on trajectories: what a slow loop over steps, with the memory of each episode, gives."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import triax
from triax.agents.off_policy import check_replay_options
from triax.functions.sequences import unroll
from triax.networks import Dense, Sequential, VariationalBottleneck
from triax.policy_objectives import PPOClip, VanillaPG
from triax.regularizers import EntropyRegularizer
from triax.reward_tracing import Trajectory, TransitionBatch
from triax.td_learning import ClippedDoubleQLearning, DoubleQLearning, ExpectedSarsa, QLearning, Sarsa, SimpleTD

from .trajectories import (
    ACTIONS,
    ENV,
    GAMMA,
    RNG,
    STATE,
    B,
    T,
    make_trajectory,
    memoryless_q,
    recurrent_policy,
    recurrent_q,
    recurrent_v,
    twice_recurrent_q,
)

NO_RESETS = jnp.zeros((1, 1), bool)


def loop(f, trajectory, params=None):
    """Outputs of ``f`` at each step and at what followed it, one environment and one step at a time."""
    weights = (f._params if params is None else params, f._function_state)
    step = jax.jit(lambda carry, s: unroll(f, weights, jax.random.PRNGKey(0), carry, NO_RESETS, (s[None, None],))[:2])
    now, then = np.zeros((T, B), object), np.zeros((T, B), object)
    for b in range(B):
        carry = f.initial_carry()
        for t in range(T):
            out, carry = step(carry, trajectory.S[t, b])
            now[t, b] = np.asarray(jax.tree.leaves(out)[0][0, 0])
            then[t, b] = np.asarray(jax.tree.leaves(step(carry, trajectory.S_next[t, b])[0])[0][0, 0])
            if trajectory.terminated[t, b] or trajectory.truncated[t, b]:
                carry = f.initial_carry()
    return (np.stack([np.stack(list(row)) for row in x]) for x in (now, then))


def taken(values, trajectory):
    return np.take_along_axis(values, trajectory.A[..., None], axis=-1)[..., 0]


def picked(values, choice):
    return np.take_along_axis(values, choice, axis=-1)[..., 0]


def bootstrap(trajectory, next_values):
    return trajectory.R + GAMMA * ~trajectory.terminated * next_values


MSE = {"loss_function": triax.value_losses.mse}


def test_simple_td_bootstraps_each_step_from_its_own_episode():
    v, v_targ = (triax.V(recurrent_v, ENV, random_seed=seed) for seed in (0, 1))
    trajectory = make_trajectory(carry=v.initial_carry(B))
    now, _ = loop(v, trajectory)
    _, then = loop(v_targ, trajectory)
    error = SimpleTD(v, v_targ, **MSE).td_error(trajectory)
    assert error.shape == (T, B)
    np.testing.assert_allclose(error, bootstrap(trajectory, then) - now, atol=1e-5)


@pytest.mark.parametrize("network", [recurrent_q, memoryless_q])
@pytest.mark.parametrize("rule", ["QLearning", "DoubleQLearning", "ExpectedSarsa", "ClippedDoubleQLearning"])
def test_q_rules_equal_a_loop_over_steps(rule, network):
    q, q1, q2 = (triax.Q(network, ENV, random_seed=seed) for seed in range(3))
    trajectory = make_trajectory(carry=q.initial_carry(B))
    now, online = loop(q, trajectory)
    _, next_1 = loop(q1, trajectory)
    _, next_2 = loop(q2, trajectory)
    best = {x: y.argmax(-1)[..., None] for x, y in (("q", online), ("1", next_1), ("2", next_2))}
    pi = triax.BoltzmannPolicy(q2, temperature=0.5)
    z = np.exp(next_2 / 0.5)
    rules = {
        "QLearning": (lambda: QLearning(q, q_targ=q1, **MSE), next_1.max(-1)),
        "DoubleQLearning": (lambda: DoubleQLearning(q, q_targ=q1, **MSE), picked(next_1, best["q"])),
        "ExpectedSarsa": (lambda: ExpectedSarsa(q, pi, q1, **MSE), (next_1 * z / z.sum(-1, keepdims=True)).sum(-1)),
        "ClippedDoubleQLearning": (
            lambda: ClippedDoubleQLearning(q, q_targ_list=[q1, q2], **MSE),
            np.min([picked(x, best[i]) for x in (next_1, next_2) for i in ("1", "2")], axis=0),
        ),
    }
    make, next_values = rules[rule]
    expected = bootstrap(trajectory, next_values) - taken(now, trajectory)
    np.testing.assert_allclose(make().td_error(trajectory), expected, atol=1e-5)


def test_sarsa_takes_the_action_of_the_next_step_and_leaves_out_steps_without_one():
    q = triax.Q(recurrent_q, ENV, random_seed=0)
    trajectory = make_trajectory(carry=q.initial_carry(B))
    now, then = loop(q, trajectory)
    next_actions = np.concatenate([trajectory.A[1:], trajectory.A[-1:]])[..., None]
    expected = bootstrap(trajectory, np.take_along_axis(then, next_actions, -1)[..., 0]) - taken(now, trajectory)
    expected[trajectory.truncated] = 0
    expected[-1] = 0
    np.testing.assert_allclose(Sarsa(q, **MSE).td_error(trajectory), expected, atol=1e-5)


def test_the_gradient_flows_through_time():
    q, q_targ = (triax.Q(recurrent_q, ENV, random_seed=seed) for seed in (0, 1))
    trajectory = make_trajectory(carry=q.initial_carry(B))
    done = trajectory.done
    resets = jnp.concatenate([jnp.zeros((1, B), bool), done[:-1]])
    _, then = loop(q_targ, trajectory)
    target = bootstrap(trajectory, then.max(-1))

    def loss(params):
        weights = params, q._function_state
        out = unroll(q, weights, jax.random.PRNGKey(0), trajectory.carry, resets, (trajectory.S,)).output
        predicted = jnp.take_along_axis(out, trajectory.A[..., None], axis=-1)[..., 0]
        return jnp.mean(0.5 * (target - predicted) ** 2)

    expected = jax.grad(loss)(q.params)
    grads, *_ = QLearning(q, q_targ=q_targ, **MSE).grads_and_metrics(trajectory)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), grads, expected)
    assert max(np.abs(leaf).max() for leaf in jax.tree.leaves(expected)) > 1e-3


def test_the_burn_in_brings_memory_up_to_date_and_is_not_learned_from():
    q = triax.Q(recurrent_q, ENV, random_seed=0)
    whole = make_trajectory(carry=q.initial_carry(B))
    rule = QLearning(q, **MSE)
    error = rule.td_error(whole)
    later = rule.td_error(Trajectory(**{**whole.__dict__, "burn_in": 3}))
    assert later.shape == (T - 3, B)
    np.testing.assert_allclose(later, error[3:], atol=1e-5)


@pytest.mark.parametrize("burn_in", [1.0, True])
def test_a_burn_in_that_is_no_int_is_refused(burn_in):
    q = triax.Q(recurrent_q, ENV, random_seed=0)
    steps = make_trajectory(carry=q.initial_carry(B))
    object.__setattr__(steps, "burn_in", burn_in)  # past the type checker of the tests
    with pytest.raises(TypeError, match=f"trajectory.burn_in must be an int; got {burn_in}"):
        QLearning(q, **MSE).td_error(steps)
    config = SimpleNamespace(
        n_step=1, batch_size=1, sequence_length=4, gamma=0.9, alpha=None, beta=0.4, burn_in=burn_in
    )
    with pytest.raises(TypeError, match=f"burn_in must be an int; got {burn_in}"):
        check_replay_options(config)


def test_an_episode_that_starts_with_the_trajectory_forgets_the_carry():
    q = triax.Q(recurrent_q, ENV, random_seed=0)
    stale = jax.tree.map(lambda leaf: leaf + 1, q.initial_carry(B))
    fresh = make_trajectory(carry=q.initial_carry(B))
    rule = QLearning(q, **MSE)
    expected = rule.td_error(fresh)
    forgot = rule.td_error(Trajectory(**{**fresh.__dict__, "carry": stale, "is_start": np.ones(B, bool)}))
    np.testing.assert_allclose(forgot, expected, atol=1e-5)
    assert np.abs(rule.td_error(Trajectory(**{**fresh.__dict__, "carry": stale})) - expected).max() > 1e-3


@pytest.mark.parametrize("Objective", [VanillaPG, PPOClip])
def test_policy_objectives_on_a_trajectory_equal_a_loop_over_steps(Objective):
    pi = triax.Policy(recurrent_policy, ENV, random_seed=0)
    trajectory = make_trajectory(carry=pi.initial_carry(B))
    Adv = RNG.normal(size=(T, B)).astype(np.float32)
    logits, _ = loop(pi, trajectory)
    log_p = np.take_along_axis(logits - np.log(np.exp(logits).sum(-1, keepdims=True)), trajectory.A[..., None], -1)
    ratio = np.exp(log_p[..., 0] + 0.7)
    surrogate = {"VanillaPG": Adv * log_p[..., 0], "PPOClip": np.minimum(ratio * Adv, ratio.clip(0.8, 1.2) * Adv)}
    _, _, metrics = Objective(pi).grads_and_metrics(trajectory, Adv)
    name = Objective.__name__
    np.testing.assert_allclose(metrics[f"{name}/loss"], -surrogate[name].mean(), rtol=1e-4)


def test_an_unchanged_recurrent_policy_has_ratio_one():  # pitfall 29
    pi = triax.Policy(recurrent_policy, ENV, random_seed=0)
    trajectory, carry = make_trajectory(carry=pi.initial_carry(B)), pi.initial_carry()
    logP = np.zeros((T, B), np.float32)
    for b in range(B):
        carry = pi.initial_carry()
        for t in range(T):
            dist_params, carry = pi.dist_params(trajectory.S[t, b], carry)
            log_p = dist_params["logits"] - np.log(np.exp(dist_params["logits"]).sum())
            logP[t, b] = log_p[trajectory.A[t, b]]
            if trajectory.done[t, b]:
                carry = pi.initial_carry()
    trajectory = Trajectory(**{**trajectory.__dict__, "logP": logP})
    _, _, metrics = PPOClip(pi).grads_and_metrics(trajectory, np.ones((T, B), np.float32))
    np.testing.assert_allclose(metrics["PPOClip/kl_div_old"], 0, atol=1e-5)
    np.testing.assert_allclose(metrics["PPOClip/loss"], -1, atol=1e-5)


def test_recurrent_actor_and_critic_learn_together_without_compiling_twice():
    pi, v = triax.Policy(recurrent_policy, ENV, random_seed=0), triax.V(recurrent_v, ENV, random_seed=0)
    simple_td = SimpleTD(v, optimizer=optax.adam(1e-2))
    ppo = PPOClip(pi, regularizer=EntropyRegularizer(pi, beta=0.01))
    losses = []
    for _ in range(30):
        trajectory = make_trajectory(carry=pi.initial_carry(B))
        critic = Trajectory(**{**trajectory.__dict__, "carry": v.initial_carry(B)})
        metrics, error = simple_td.update(critic, return_td_error=True)
        ppo.update(Trajectory(**{**trajectory.__dict__, "carries": {"reg": pi.initial_carry(B)}}), error)
        losses.append(float(metrics["SimpleTD/loss"]))
    assert np.isfinite(losses).all()
    assert simple_td._jitted["step"]._cache_size() == ppo._jitted["step"]._cache_size() == 1


def test_the_regularization_of_a_stateful_module_is_part_of_the_loss():
    def bottleneck(rngs):
        return Sequential([Dense(STATE, 6, rngs), VariationalBottleneck(3, rngs, kl_weight=0.7), Dense(3, 2, rngs)])

    q = triax.Q(bottleneck, ENV, random_seed=0)
    trajectory = make_trajectory(carry=q.initial_carry(B))
    grads, *_ = QLearning(q, **MSE).grads_and_metrics(Trajectory(**{**trajectory.__dict__, "W": np.zeros((T, B))}))
    assert max(np.abs(leaf).max() for leaf in jax.tree.leaves(grads)) > 1e-4


def test_a_flat_batch_for_a_function_with_memory_is_refused():
    q = triax.Q(recurrent_q, ENV, random_seed=0)
    batch = triax.utils.get_transition_batch(ENV, batch_size=4, random_seed=0)
    with pytest.raises(TypeError, match=r"memory.*Trajectory"):
        QLearning(q).update(batch)


def test_a_carry_that_does_not_fit_is_refused():
    q = triax.Q(recurrent_q, ENV, random_seed=0)
    with pytest.raises(TypeError, match="carry"):
        QLearning(q).update(make_trajectory(carry=()))


@pytest.mark.parametrize("rule", [QLearning, DoubleQLearning, Sarsa])
def test_a_rule_without_a_target_blames_the_function_in_training_for_a_missing_carry(rule):
    told = r"the Q in training has memory, so the trajectory needs its carry, \[LSTMCarry\(h=array, c=array\), \(\)\];"
    for call in (rule(triax.Q(recurrent_q, ENV)).update, rule(triax.Q(recurrent_q, ENV)).td_error):
        with pytest.raises(TypeError, match=told + r" it has no carry. Try .*carry=f.initial_carry\(3\)"):
            call(make_trajectory())


def test_a_target_of_ones_own_is_blamed_by_its_role_for_a_carry_that_does_not_fit():
    q, other = triax.Q(recurrent_q, ENV), triax.Q(twice_recurrent_q, ENV)
    with pytest.raises(TypeError, match=r"q_targ, a Q, has memory.*its carry is \[LSTMCarry.*carries=\{'q_targ'"):
        QLearning(q, q_targ=other).update(make_trajectory(q.initial_carry(B)))


def test_a_role_that_no_rule_has_is_refused_with_the_list_of_roles_before_anything_is_trained():
    q = triax.Q(memoryless_q, ENV, random_seed=0)
    before, rule = jax.tree.map(np.asarray, q.params), QLearning(q)
    message = (
        r"QLearning: trajectory.carries has the roles \['pi_trag'\], which no rule has; the roles are \['trained', .*"
        r"'q_targ', 'pi_targ', 'q', 'reg'\]"
    )
    for call in (rule.update, rule.td_error, rule.grads_and_metrics):
        with pytest.raises(ValueError, match=message):
            call(make_trajectory(carries={"pi_trag": ()}))
    jax.tree.map(np.testing.assert_array_equal, before, jax.tree.map(np.asarray, q.params))


@pytest.mark.parametrize("objective", [PPOClip, VanillaPG])
def test_policy_objectives_refuse_unknown_roles_too(objective):
    pi = triax.Policy(lambda rngs: Sequential([Dense(STATE, ACTIONS, rngs), lambda x: {"logits": x}]), ENV)
    with pytest.raises(ValueError, match=rf"{objective.__name__}: trajectory.carries has the roles \['regularizer'\]"):
        objective(pi).update(make_trajectory(carries={"regularizer": ()}), np.ones((T, B), np.float32))


def test_rules_share_a_trajectory_and_leave_roles_alone_that_only_the_other_has():
    pi = triax.Policy(recurrent_policy, ENV, random_seed=0)
    trajectory = make_trajectory(carry=pi.initial_carry(B), carries={"v_targ": (np.zeros((B, 1)),)})
    metrics = VanillaPG(pi).grads_and_metrics(trajectory, np.ones((T, B), np.float32))[2]
    assert np.isfinite(metrics["VanillaPG/loss"])


@pytest.mark.parametrize("field", ["S", "A", "R", "terminated", "S_next"])
def test_leaves_without_time_and_batch_are_refused(field):
    q = triax.Q(memoryless_q, ENV, random_seed=0)
    trajectory = make_trajectory()
    bad = Trajectory(**{**trajectory.__dict__, field: getattr(trajectory, field)[:-1]})
    with pytest.raises(ValueError, match=r"\[time, batch\]"):
        QLearning(q).update(bad)


def test_nan_in_a_trajectory_is_refused_and_nothing_is_trained():
    q = triax.Q(memoryless_q, ENV, random_seed=0)
    before = jax.tree.map(np.asarray, q.params)
    trajectory = make_trajectory()
    trajectory.R[0, 0] = np.nan
    with pytest.raises(ValueError, match=r"QLearning.*Rn"):
        QLearning(q).update(trajectory)
    jax.tree.map(np.testing.assert_array_equal, before, jax.tree.map(np.asarray, q.params))


def test_rows_of_a_memoryless_function_equal_a_flat_batch():
    q = triax.Q(memoryless_q, ENV, random_seed=0)
    t = make_trajectory()
    flat = [x.reshape(T * B, *x.shape[2:]) for x in (t.S, t.A, t.logP, t.R, GAMMA * ~t.terminated, t.S_next)]
    rule = QLearning(q)
    np.testing.assert_allclose(rule.td_error(t).ravel(), rule.td_error(TransitionBatch(*flat)), atol=1e-6)
