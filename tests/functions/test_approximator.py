"""What all approximators share: weights, state, seeds, copies, averages, printing."""

import copy

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from gymnasium import spaces

import triax
from triax.reward_tracing import get_transition_batch
from triax.td_learning import QLearning, SimpleTD

from .networks import DISCRETE, assert_trees_equal, env_of, func_of, s

KEY = jax.random.PRNGKey(0)
S = np.stack([s, -s])


def counting(S, is_training):
    """A value with a float and an integer in its state."""
    total = hk.get_state("total", (), init=jnp.zeros)
    count = hk.get_state("count", (), jnp.int32, init=jnp.zeros)
    if is_training:
        hk.set_state("total", total + S.sum())
        hk.set_state("count", count + 1)
    return hk.Linear(1)(S)[:, 0]


def noisy_logits(S, is_training):
    return {"logits": hk.Linear(4)(S)}


def fresh_v(seed=0):
    return triax.V(counting, DISCRETE, random_seed=seed)


def fresh_q(seed=0):
    return triax.Q(func_of(triax.Q.example_data(DISCRETE).type2, seed=seed), DISCRETE, random_seed=seed)


def fresh_pi(seed=0):
    return triax.Policy(noisy_logits, DISCRETE, random_seed=seed)


@pytest.fixture
def v():
    return V_FUNCTION.copy()


@pytest.fixture
def pi():
    twin = PI.copy()
    twin.random_seed = 0
    return twin


@pytest.fixture(autouse=True, scope="module")
def _made_once():
    global V_FUNCTION, PI
    V_FUNCTION, PI = fresh_v(), fresh_pi()


def map_weights(f, function):
    return jax.tree.map(function, f.params)


# ------------------------------------------------------------------ weights


def test_assigned_weights_are_used_and_given_back(v):
    new = map_weights(v, lambda p: np.full(p.shape, 2.0, p.dtype))
    v.params = new
    assert_trees_equal(v.params, new)
    assert v(s) == pytest.approx(2 * s.sum() + 2, rel=1e-5)


def test_assigned_weights_are_copied(v):
    new = map_weights(v, np.array)
    v.params = new
    before = v(s)
    for leaf in jax.tree.leaves(new):
        leaf[...] = np.nan
    assert v(s) == before


@pytest.mark.parametrize(
    "change, said",
    [
        (lambda p: {"linear": {"w": p["linear"]["w"]}}, r"\['linear'\]\['b'\]: missing, expected float32\[1\]"),
        (lambda p: {**p, "more": 0.0}, r"\['more'\]: not expected"),
        (lambda p: jax.tree.map(lambda x: x[..., None], p), r"\['w'\]: expected float32\[3,1\], got float32\[3,1,1\]"),
        (lambda p: jax.tree.map(lambda x: x.astype(int), p), r"\['b'\]: expected float32\[1\], got int64\[1\]"),
        (lambda p: jax.tree.leaves(p), "not expected"),
        (lambda p: None, "missing"),
    ],
)
def test_weights_that_do_not_fit_are_refused_and_change_nothing(v, change, said):  # F47
    before = v(s)
    with pytest.raises(TypeError, match=r"(?s)V\.params: the new value does not fit.*" + said):
        v.params = change(map_weights(v, np.array))
    assert v(s) == before


def test_a_state_that_does_not_fit_is_refused(v):
    state = jax.tree.map(np.array, v.function_state)
    with pytest.raises(
        TypeError, match=r"(?s)V\.function_state: .*function_state\['~'\]\['count'\].*expected int32\[\]"
    ):
        v.function_state = {"~": {**state["~"], "count": np.zeros((), np.float32)}}
    assert_trees_equal(v.function_state, state)


def test_assigned_state_is_used(v):
    _, new = v.function(v.params, v.function_state, KEY, S, True)
    v.function_state = new
    assert_trees_equal(v.function_state, new)
    assert v.function_state["~"]["count"] == V_FUNCTION.function_state["~"]["count"] + 1


def test_weights_handed_out_stay_readable_after_training():  # donation
    q = fresh_q()
    rule = QLearning(q)
    batch = get_transition_batch(DISCRETE, batch_size=4, random_seed=0)
    held = [q.params]
    values = [jax.tree.map(np.array, held[0])]
    for _ in range(3):
        rule.update(batch)
        held.append(q.params)
        values.append(jax.tree.map(np.array, held[-1]))
    for tree, value in zip(held, values, strict=True):
        assert_trees_equal(tree, value)
    assert np.any(jax.tree.leaves(values[0])[1] != jax.tree.leaves(values[-1])[1])


def test_weights_taken_in_stay_readable_after_training():
    q = fresh_q()
    given = jax.tree.map(jnp.array, q.params)
    q.params = given
    rule = QLearning(q)
    for _ in range(2):
        rule.update(get_transition_batch(DISCRETE, batch_size=4, random_seed=0))
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(given))


def test_copies_and_targets_survive_training_of_their_source():  # pitfall 35
    q = fresh_q()
    target, before = q.copy(), q(s)
    soft = q.copy()
    soft.soft_update(q, 1.0)
    rule = QLearning(q, q_targ=target)
    for _ in range(2):
        rule.update(get_transition_batch(DISCRETE, batch_size=4, random_seed=0))
    np.testing.assert_array_equal(target(s), before)
    np.testing.assert_array_equal(soft(s), before)
    assert np.any(q(s) != before)


def test_state_survives_training_and_counts_on():
    v = fresh_v()
    held = v.function_state
    before = int(held["~"]["count"])
    rule = SimpleTD(v)
    for _ in range(3):
        rule.update(get_transition_batch(DISCRETE, batch_size=4, random_seed=0))
    assert int(held["~"]["count"]) == before
    assert int(v.function_state["~"]["count"]) == before + 3


# ------------------------------------------------------------------ seeds


def test_the_same_seed_gives_the_same_weights_and_samples():
    first, same, other = fresh_pi(3), fresh_pi(3), fresh_pi(4)
    assert_trees_equal(first.params, same.params)
    draws = [[f(s) for _ in range(12)] for f in (first, same, other)]
    assert draws[0] == draws[1] != draws[2]
    assert np.any(first.params["linear"]["w"] != other.params["linear"]["w"])


def test_assigning_the_seed_restarts_the_samples_and_keeps_the_weights(pi):
    params = map_weights(pi, np.array)
    pi.random_seed = 7
    draws = [pi(s) for _ in range(12)]
    pi.random_seed = 7
    assert draws == [pi(s) for _ in range(12)]
    assert pi.random_seed == 7
    assert_trees_equal(pi.params, params)


def test_each_read_of_rng_gives_another_key(pi):
    keys = {tuple(np.asarray(pi.rng).tolist()) for _ in range(5)}
    assert len(keys) == 5


def test_warnings_point_at_the_line_of_the_user(bare_process):  # no frames of type checks in that process
    names, files, lines = zip(*bare_process["warned"], strict=True)
    assert names == ("QLearning", "ClippedDoubleQLearning", "SoftPG", "SuccessorStateQ")
    assert set(files) == {"bare_script.py"} and list(lines) == bare_process["warned_from"]


def test_no_global_generator_is_touched(bare_process):  # F41; beartype draws from `random`, so not in this process
    assert bare_process["random_untouched"] and bare_process["numpy_untouched"]


def test_without_a_seed_each_function_is_another():  # F41
    draws = []
    for _ in range(2):
        np.random.seed(0)
        draws.append(triax.Policy(noisy_logits, DISCRETE).params["linear"]["w"])
    assert np.any(draws[0] != draws[1])


# ------------------------------------------------------------------ copies


COPY = {
    "copy": lambda f: f.copy(),
    "deep": lambda f: f.copy(deep=True),
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("how", COPY)
def test_a_copy_shares_no_weights_and_no_state(v, how):
    twin = COPY[how](v)
    assert type(twin) is triax.V
    assert twin(s) == v(s)
    pointers = [
        {leaf.unsafe_buffer_pointer() for leaf in jax.tree.leaves((f.params, f.function_state))} for f in (v, twin)
    ]
    assert not pointers[0] & pointers[1]
    before = v(s)
    twin.params = map_weights(twin, lambda p: p + 1)
    twin.function_state = jax.tree.map(lambda p: p + 1, twin.function_state)
    assert v(s) == before
    assert v.function_state["~"]["count"] + 1 == twin.function_state["~"]["count"]


@pytest.mark.parametrize("how", COPY)
def test_a_copy_draws_other_numbers_reproducibly(pi, how):  # F39
    twin = COPY[how](pi)
    draws = [[f(s) for _ in range(16)] for f in (pi, twin)]
    assert draws[0] != draws[1]
    pi.random_seed = 0
    twin = COPY[how](pi)
    assert draws == [[f(s) for _ in range(16)] for f in (pi, twin)]


def test_copies_of_copies_are_independent(pi):
    functions = [pi.copy(), pi.copy(), pi.copy().copy()]
    draws = {tuple(f(s) for _ in range(16)) for f in functions}
    assert len(draws) == 3


def test_a_deep_copy_of_several_keeps_what_they_share():
    q = fresh_q()
    q2, (pi, again) = copy.deepcopy((q, (triax.EpsilonGreedy(q), q)))
    assert again is q2 is pi.q
    assert q2 is not q


# ------------------------------------------------------------------ soft updates


def shifted(f, by):
    twin = f.copy()
    twin.params = map_weights(twin, lambda p: p + by)
    return twin


@pytest.mark.parametrize("tau", [0, 0.25, 1, np.float32(0.5)])
def test_a_soft_update_is_the_weighted_mean(v, tau):
    other = shifted(v, 4.0)
    expected = map_weights(v, lambda p: np.asarray(p) + 4.0 * float(tau))
    v.soft_update(other, tau)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), v.params, expected)


def test_a_soft_update_copies_the_state_and_keeps_its_dtypes(v):  # F40
    other = v.copy()
    state = {"~": {"total": np.float32(8.0), "count": np.int32(5)}}
    v.function_state = {"~": {"total": np.float32(0.0), "count": np.int32(2)}}
    other.function_state = state
    v.soft_update(other, 0.25)
    assert_trees_equal(v.function_state, {"~": {"total": np.float32(8.0), "count": np.int32(5)}})
    assert v.function_state["~"]["count"].dtype == np.int32


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_full_update_copies_even_over_nan(v, bad):  # F40
    other = v.copy()
    v.params = map_weights(v, lambda p: p * 0 + bad)
    v.soft_update(other, 1.0)
    assert_trees_equal(v.params, other.params)


def test_an_empty_update_leaves_nan_out(v):
    other, before = shifted(v, np.nan), v(s)
    v.soft_update(other, 0.0)
    assert v(s) == before


def test_a_soft_update_leaves_the_other_alone_and_shares_nothing(v):
    other = shifted(v, 1.0)
    before = other(s)
    v.soft_update(other, 1.0)
    other.params = map_weights(other, lambda p: p + 1)
    assert v(s) == pytest.approx(before)


@pytest.mark.parametrize("tau", [-0.1, 1.5, np.nan])
def test_a_share_outside_the_unit_interval_is_refused(v, tau):
    with pytest.raises(ValueError, match=r"V.soft_update: tau must be in \[0, 1\]; got"):
        v.soft_update(v.copy(), tau)


def test_a_soft_update_from_another_class_is_refused(v, pi):
    with pytest.raises(TypeError, match=r"V.soft_update: other must be a V; got Policy"):
        v.soft_update(pi, 0.5)


def test_a_soft_update_from_other_shapes_is_refused_and_changes_nothing(v):
    env = env_of(observation_space=spaces.Box(-1.0, 1.0, (1,), np.float32))
    other, before = triax.V(counting, env), v(s)
    with pytest.raises(TypeError, match=r"(?s)soft_update: .*\['w'\]: expected float32\[3,1\], got float32\[1,1\]"):
        v.soft_update(other, 0.5)
    assert v(s) == before


def test_a_soft_update_from_another_tree_is_refused(v):
    other = triax.V(lambda S, is_training: S.sum(-1), DISCRETE)
    with pytest.raises(TypeError, match=r"(?s)soft_update: .*\['w'\]: missing"):
        v.soft_update(other, 0.5)


# ------------------------------------------------------------------ the carry


@pytest.mark.parametrize("carry", [3, True, np.zeros(2), {"h": np.zeros(1)}])
def test_a_memoryless_function_takes_no_carry(v, carry):
    with pytest.raises(TypeError, match=r"V: func has no memory, so carry must be \(\) or left out; got"):
        v(s, carry)


def test_the_empty_carry_of_a_memoryless_function_comes_back(v):
    assert v.initial_carry() == ()
    value, carry = v(s, v.initial_carry())
    assert carry == () and value == v(s)
    assert not v.has_memory


@pytest.fixture(scope="module")
def delayed():
    return triax.V(func_of(triax.V.example_data(DISCRETE), "memory"), DISCRETE, random_seed=0)


@pytest.mark.parametrize("carry", [None, (), True, np.zeros(2)])
def test_a_function_with_memory_needs_its_carry(delayed, carry):
    with pytest.raises(
        TypeError, match=r"V: func has memory, so a call needs its carry, .*; got .*f.initial_carry\(\)"
    ):
        delayed(s, carry)


def test_a_carry_of_many_environments_is_refused_for_one_observation(delayed):
    with pytest.raises(ValueError, match=r"leading axis \(1,\); got \[\(4,\)\]"):
        delayed(s, delayed.initial_carry(4))


def test_the_initial_carry_has_the_batch_on_axis_0(delayed):
    assert delayed.has_memory
    assert {leaf.shape[0] for leaf in jax.tree.leaves(delayed.initial_carry(5))} == {5}


# ------------------------------------------------------------------ construction


def test_haiku_statistics_are_warm_and_integers_are_theirs():  # F44
    def normed(S, is_training):
        return hk.BatchNorm(True, True, 0.99)(S, is_training).sum(-1)

    env = env_of(observation_space=spaces.Box(0.0, 10.0, (3,), np.float32))
    v = triax.V(normed, env, random_seed=0)
    averages = v.function_state["batch_norm/~/mean_ema"]["average"]
    np.testing.assert_allclose(averages, 5.0, atol=1.5)
    assert abs(v(np.full(3, 5.0, np.float32))) < 2


def test_weak_types_are_made_strong_so_that_training_compiles_once():
    class Weak(nnx.Module):
        def __init__(self):
            self.scale, self.shift = nnx.Param(0.5), nnx.Param(jnp.asarray(1.0))

        def __call__(self, S, is_training):
            return S.sum(-1) * self.scale[...] + self.shift[...]

    v = triax.V(Weak(), DISCRETE)
    assert all(not leaf.weak_type and leaf.dtype == np.float32 for leaf in jax.tree.leaves(v.params))


def test_nothing_but_declared_variables_is_kept_of_a_call():
    class Sowing(nnx.Module):
        def __call__(self, S, is_training):
            self.seen = nnx.Intermediate(S)
            return S.sum(-1)

    v = triax.V(Sowing(), DISCRETE)
    _, state = v.function(v.params, v.function_state, KEY, S, True)
    assert state == v.function_state == {}


def test_is_training_may_be_named(v):
    output, _ = v.function(v.params, v.function_state, KEY, S, is_training=False)
    assert output.shape == (2,)


def test_an_approximator_works_without_jit():
    with jax.disable_jit():
        pi = fresh_pi()
        a, logp = pi(s, return_logp=True)
        assert a in range(4) and logp <= 0
        pi.soft_update(pi.copy(), 0.5)


# ------------------------------------------------------------------ printing


def test_a_function_prints_what_it_is_in_a_few_lines(v):
    assert repr(v) == (
        "V(4 parameters)\n"
        "  S: Box(-inf, inf, (3,), float32)\n"
        "  params: linear.b (1,), linear.w (3, 1)\n"
        "  function_state: ~.count (), ~.total ()"
    )


def test_inputs_form_and_memory_are_printed():
    q = triax.StochasticQ(
        func_of(triax.StochasticQ.example_data(DISCRETE, (-1, 1), 3).type2, "memory"), DISCRETE, (-1, 1), 3
    )
    head, *_ = str(q).splitlines()
    assert head == "StochasticQ(type 2, 48 parameters, with memory, 3 bins over (-1.0, 1.0))"
    assert "  A: Discrete(4)" in str(q)


def test_many_weights_are_counted_and_cut():
    def deep(S, is_training):
        return hk.nets.MLP([4, 4, 4, 4, 1])(S)[:, 0]

    text = str(triax.V(deep, DISCRETE))
    assert text.startswith("V(81 parameters)") and text.endswith("... and 4 more") and len(text) < 400


def test_a_derived_policy_prints_its_parts():
    assert str(triax.EpsilonGreedy(fresh_q(), epsilon=0.25)).splitlines()[:3] == [
        "EpsilonGreedy(epsilon=0.25)",
        "  q: Q(type 2, 16 parameters)",
        "    S: Box(-inf, inf, (3,), float32)",
    ]
