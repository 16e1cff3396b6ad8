"""Type 1 and type 2 into each other, for pytrees, against plain loops."""

import jax
import jax.numpy as jnp
import numpy as np

from triax.functions.model_types import as_type1, as_type2, pick_action

RNG = np.random.default_rng(0)
B, N = 3, 4
OUTPUT = {"a": jnp.asarray(RNG.normal(size=(B, N))), "b": jnp.asarray(RNG.normal(size=(B, N, 2, 5)))}


def test_a_one_hot_picks_an_action_in_every_leaf():
    A = np.array([2, 0, 3])
    picked = pick_action(OUTPUT, jax.nn.one_hot(A, N))
    for name, leaf in OUTPUT.items():
        np.testing.assert_array_equal(picked[name], np.stack([row[a] for row, a in zip(leaf, A, strict=True)]))


def test_weights_give_the_weighted_mean():  # section 3.3
    weights = jnp.asarray(RNG.dirichlet(np.ones(N), size=B), jnp.float32)
    picked = pick_action(OUTPUT, weights)
    for name, leaf in OUTPUT.items():
        expected = [sum(weights[b, i] * leaf[b, i] for i in range(N)) for b in range(B)]
        np.testing.assert_allclose(picked[name], expected, rtol=1e-5)


def test_infinite_values_of_other_actions_do_not_matter():
    values = jnp.array([[1.0, -jnp.inf, jnp.nan, 2.0]])
    assert pick_action(values, jax.nn.one_hot(jnp.array([3]), N)).tolist() == [2.0]
    gradient = jax.grad(lambda v: pick_action(v, jax.nn.one_hot(jnp.array([3]), N))[0])(values)
    np.testing.assert_array_equal(gradient, [[0, 0, 0, 1]])


def forward_type1(params, state, rng, carry, S, A, is_training):
    return {"sum": S.sum(-1) * params + A["x"], "outer": S[:, :, None] * A["x"][:, None, None]}, carry, state


def test_type_2_of_type_1_meets_every_state_with_every_action():
    actions = {"x": jnp.arange(1.0, 5.0)}
    S = RNG.normal(size=(B, 2)).astype(np.float32)
    output, carry, state = as_type2(forward_type1, actions)(2.0, "state", None, (), S, False)
    assert (carry, state) == ((), "state")
    for b in range(B):
        for i in range(N):
            one, *_ = forward_type1(2.0, None, None, (), S[b : b + 1], {"x": actions["x"][i : i + 1]}, False)
            jax.tree.map(lambda x, y, b=b, i=i: np.testing.assert_allclose(x[b, i], y[0], rtol=1e-5), output, one)


def test_type_1_of_type_2_of_type_1_is_the_same_function():
    actions = {"x": jnp.arange(1.0, 5.0)}
    S, picked = RNG.normal(size=(B, 2)).astype(np.float32), np.array([1, 3, 0])
    both = as_type1(as_type2(forward_type1, actions))
    output, *_ = both(2.0, None, None, (), S, jax.nn.one_hot(picked, N), False)
    expected, *_ = forward_type1(2.0, None, None, (), S, {"x": actions["x"][picked]}, False)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-5), output, expected)
