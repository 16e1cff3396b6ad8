"""The four kinds of ``func``: what is accepted, what is refused, and that a pure function comes out."""

import sys
from functools import partial

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import triax
from triax.functions import lift
from triax.networks import Delay, Dense, Sequential

from .networks import DISCRETE, KINDS, REALS, assert_trees_equal, func_of, s

S = np.stack([s, -s])
KEY = jax.random.PRNGKey(0)
STATE_ONLY = (("S",),)


def lifted(func, accepts=STATE_ONLY, owner="V"):
    return lift(func, owner=owner, accepts=accepts, key=KEY)


def value(func, accepts=STATE_ONLY, *inputs):
    """The output of ``func`` for ``inputs``, by default ``S``."""
    f = lifted(func, accepts)
    params, state = f.init(KEY, *(inputs or (S,)), True)
    return np.asarray(f.forward(params, state, KEY, (), *(inputs or (S,)), False)[0])


class Sum(nnx.Module):
    def __init__(self, scale=1.0, *, rngs):
        self.scale = nnx.Param(scale)

    def __call__(self, S, is_training):
        return S.sum(-1) * self.scale[...]


class SumObject:
    def __call__(self, S, is_training):
        return S.sum(-1)


class SumMethods:
    def value(self, S, is_training):
        return S.sum(-1)


def sum_of(S, is_training):
    return S.sum(-1)


def scaled_sum(S, scale, is_training):
    return S.sum(-1) * scale


def sum_with_option(S, scale=2.0, is_training=True):
    return S.sum(-1) * scale


def make(scale: float, key: nnx.Rngs):
    return Sum(scale, rngs=key)


ACCEPTED = {  # F45
    "function": (sum_of, 1),
    "lambda": (lambda S, is_training: S.sum(-1), 1),
    "callable object": (SumObject(), 1),
    "method": (SumMethods().value, 1),
    "partial by keyword in the middle": (partial(scaled_sum, scale=3.0), 3),
    "partial by position": (partial(lambda scale, S, is_training: scale * S.sum(-1), 3.0), 3),
    "parameters with defaults": (sum_with_option, 2),
    "an action with a default": (lambda S, A=None, is_training=False: S.sum(-1), 1),
    "positional-only": (lambda S, is_training, /: S.sum(-1), 1),
    "module": (Sum(2.0, rngs=None), 2),
    "factory": (lambda rngs: Sum(2.0, rngs=rngs), 2),
    "factory, positional-only": (lambda rngs, /: Sum(2.0, rngs=rngs), 2),
    "factory by annotation": (partial(make, 4.0), 4),
    "class": (Sum, 1),
    "partial of a class": (partial(Sum, 5.0), 5),
    "partial of a class by keyword": (partial(Sum, scale=5.0), 5),
    "StatefulModule": (Sequential([lambda x: x.sum(-1)]), 1),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_functions_partials_objects_modules_and_factories_are_accepted(name):
    func, scale = ACCEPTED[name]
    np.testing.assert_allclose(value(func), scale * S.sum(-1), rtol=1e-6)


class WrongNames(nnx.Module):
    def __call__(self, x, is_training):
        return x


REFUSED = {
    "other names": (lambda x, training: x, r"must be func\(S, is_training\); got \(x, training\)"),
    "other order": (lambda is_training, S: S, r"got \(is_training, S\)"),
    "too few": (lambda S: S, r"got \(S\)"),
    "too many": (lambda S, is_training, extra: S, r"got \(S, is_training, extra\)"),
    "an action": (lambda S, A, is_training: S, r"gets no action: drop A"),
    "module": (WrongNames(), r"got \(x, is_training\)"),
    "class": (nnx.Linear, r"It is a class: pass an instance, or a factory"),
    "no signature": (max, "must have named parameters"),
    "not callable": (None, "must be a function, a flax.nnx.Module or a factory of one; got NoneType"),
    "array": (np.zeros(3), "got ndarray"),
    "factory of something else": (lambda rngs: 3, "takes nnx.Rngs, so it must return a flax.nnx.Module; got int"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_things_are_refused_with_what_was_expected_and_found(name):
    func, said = REFUSED[name]
    with pytest.raises(TypeError, match=f"V: func.*{said}|V: the parameters of func.*{said}"):
        lifted(func)


def test_type_2_needs_discrete_actions():
    with pytest.raises(TypeError, match=r"must be func\(S, A, is_training\); .*type 2\) needs a Discrete action space"):
        triax.Q(sum_of, REALS)


def test_both_signatures_are_named_where_both_are_possible():
    with pytest.raises(TypeError, match=r"Q: .*func\(S, A, is_training\) or func\(S, is_training\); got \(x\)"):
        triax.Q(lambda x: x, DISCRETE)


def test_errors_inside_func_pass_unchanged():
    def broken(S, is_training):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        triax.V(broken, DISCRETE)


def test_a_missing_haiku_is_an_error_that_names_func_and_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "haiku", None)
    for kind in (ImportError, ValueError):
        with pytest.raises(kind, match=r"V: a plain function as func needs the package 'dm-haiku'.*triax\[haiku\]"):
            triax.V(sum_of, DISCRETE)


def test_modules_need_no_haiku(monkeypatch):
    monkeypatch.setitem(sys.modules, "haiku", None)
    v = triax.V(Sum(2.0, rngs=None), DISCRETE)
    assert v(s) == pytest.approx(2 * s.sum())


def test_lists_of_modules_are_not_silently_dropped():  # pitfall 36
    class Listed(nnx.Module):
        def __init__(self, rngs):
            self.layers = [nnx.Linear(3, 1, rngs=rngs)]

        def __call__(self, S, is_training):
            return self.layers[0](S)[:, 0]

    with pytest.raises(ValueError, match=r"nnx\.data"):
        triax.V(Listed, DISCRETE)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_computes_the_same_affine_function_of_its_weights(kind):
    v = triax.V(func_of(triax.V.example_data(DISCRETE), kind), DISCRETE, random_seed=0)
    b, w = jax.tree.leaves(v.params)
    assert v(s) == pytest.approx((s @ w + b).item(), rel=1e-5)


@pytest.mark.parametrize("kind", ["haiku", "factory"])
def test_the_seed_decides_the_weights(kind):
    func = func_of(triax.V.example_data(DISCRETE), kind)
    first, same, other = (triax.V(func, DISCRETE, random_seed=seed) for seed in (3, 3, 4))
    assert_trees_equal(first.params, same.params)
    assert first(s) != other(s)


def test_a_module_stays_the_users_own():
    module = func_of(triax.V.example_data(DISCRETE), "module")
    before = np.array(module.layer.kernel[...])
    v = triax.V(module, DISCRETE)
    v.params = jax.tree.map(lambda p: p + 1, v.params)
    np.testing.assert_array_equal(module.layer.kernel[...], before)


# ------------------------------------------------------------------ randomness and running statistics


class Noisy(nnx.Module):
    """Dropout and BatchNorm, for inputs of one."""

    def __init__(self, rngs):
        self.norm = nnx.BatchNorm(3, rngs=rngs)
        self.dropout = nnx.Dropout(0.5, rngs=rngs)

    def __call__(self, S, is_training):
        return self.dropout(self.norm(S)).sum(-1)


def noisy_haiku(S, is_training):
    x = hk.BatchNorm(True, True, 0.9)(S, is_training)
    if is_training:
        x = hk.dropout(hk.next_rng_key(), 0.5, x)
    return x.sum(-1)


@pytest.fixture(scope="module", params=["nnx", "haiku"])
def noisy(request):
    return triax.V({"nnx": Noisy, "haiku": noisy_haiku}[request.param], DISCRETE, random_seed=0)


def test_training_mode_draws_noise_from_the_key(noisy):
    batch = np.tile(s, (16, 1)) + np.arange(16)[:, None]
    weights = noisy.params, noisy.function_state
    one, same, other = (noisy.function(*weights, jax.random.key(k), batch, True)[0] for k in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    assert np.any(one != other)


def test_training_mode_gives_new_statistics_and_keeps_their_tree(noisy):
    batch = np.random.default_rng(0).normal(5.0, 2.0, (64, 3)).astype(np.float32)
    state = noisy.function_state
    _, new = noisy.function(noisy.params, state, KEY, batch, True)
    assert jax.tree.structure(new) == jax.tree.structure(state)
    assert any(np.any(a != b) for a, b in zip(jax.tree.leaves(new), jax.tree.leaves(state), strict=True))


def test_evaluation_is_deterministic_and_drops_the_state(noisy):  # section 3.2
    state = jax.tree.map(np.array, noisy.function_state)
    first, second = noisy(s), noisy(s)
    assert first == second
    assert_trees_equal(noisy.function_state, state)


def test_batch_norm_is_usable_right_after_construction(noisy):  # F44
    # 64 standard-normal examples, or mean 0 and variance 1 to begin with: the norm is near the identity
    assert noisy(s) == pytest.approx(s.sum(), abs=1.0)


def test_raw_and_typed_keys_give_the_same(noisy):
    weights = noisy.params, noisy.function_state
    outputs = [noisy.function(*weights, key, S, True)[0] for key in (jax.random.PRNGKey(5), jax.random.key(5))]
    np.testing.assert_array_equal(*outputs)


def test_a_module_with_noise_says_that_it_needs_a_key():
    v = triax.V(Noisy, DISCRETE)
    with pytest.raises(ValueError, match="needs a key: got rng=None"):
        v.function(v.params, v.function_state, None, S, True)


def test_noise_in_evaluation_mode_is_the_users_own_and_follows_the_seed():
    def noisy_always(S, is_training):
        return S.sum(-1) + jax.random.normal(hk.next_rng_key(), (len(S),))

    first, same, other = (triax.V(noisy_always, DISCRETE, random_seed=seed) for seed in (0, 0, 1))
    values = [first(s), first(s)]
    assert values[0] != values[1]
    assert values == [same(s), same(s)]
    assert values[0] != other(s)


# ------------------------------------------------------------------ the carry


def test_a_memoryless_stateful_module_has_no_carry():
    f = lifted(Sequential([Dense(3, 2, nnx.Rngs(0)), lambda x: x.sum(-1)]))
    params, state = f.init(KEY, S, True)
    assert f.initial_carry(params, state, KEY, 2) == ()
    assert f.forward(params, state, KEY, (), S, False)[1] == ()


def test_the_carry_of_a_stateful_module_is_threaded_and_reset():
    f = lifted(Sequential([Delay(np.zeros(3, np.float32), 1), lambda x: x.sum(-1)]))
    params, state = f.init(KEY, S, True)
    start = f.initial_carry(params, state, KEY, 2)
    first, carry, _ = f.forward(params, state, KEY, start, S, False)
    second, carry, _ = f.forward(params, state, KEY, carry, 0 * S, False)
    np.testing.assert_array_equal(first, [0, 0])
    np.testing.assert_allclose(second, S.sum(-1), rtol=1e-6)
    assert_trees_equal(f.reset_carry(params, state, KEY, f.forward(params, state, KEY, carry, S, False)[1]), start)


def test_a_stateful_module_gets_state_and_action_as_a_dict():
    example = triax.Q.example_data(REALS).type1
    q = triax.Q(func_of(example, "stateful"), REALS, random_seed=0)
    a = np.array([1.0, 0.5], np.float32)
    bias, kernel = jax.tree.leaves(q.params)
    assert q(s, a) == pytest.approx((np.concatenate([a, s]) @ kernel + bias).item(), rel=1e-5)


def test_modules_work_in_flax_tree_mode(bare_process):  # pitfall 39
    assert bare_process["graph_mode"] is False
    assert bare_process["values"] == [3] and bare_process["is_action"]


def test_a_shared_layer_is_one_set_of_weights():
    class Shared(nnx.Module):
        def __init__(self, rngs):
            self.a = self.b = nnx.Linear(3, 3, rngs=rngs)

        def __call__(self, S, is_training):
            return self.b(self.a(S)).sum(-1)

    v = triax.V(Shared, DISCRETE, random_seed=0)
    bias, kernel = jax.tree.leaves(v.params)
    assert v(s) == pytest.approx(jnp.sum((s @ kernel + bias) @ kernel + bias).item(), rel=1e-5)
