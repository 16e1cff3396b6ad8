"""Modules taken apart and put together again, as pure functions of their numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from triax.core.modules import SplitModule, strong_copy

KEY = jax.random.PRNGKey(0)
x = jnp.linspace(-1.0, 1.0, 12).reshape(4, 3)


class Net(nnx.Module):
    def __init__(self, rngs):
        self.layers = nnx.List([nnx.Linear(3, 3, rngs=rngs), nnx.Linear(3, 3, rngs=rngs)])
        self.norm = nnx.BatchNorm(3, rngs=rngs)
        self.dropout = nnx.Dropout(0.5, rngs=rngs)

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.dropout(self.norm(x))


@pytest.fixture(scope="module")
def net():
    return Net(nnx.Rngs(0))


@pytest.fixture(scope="module")
def parts(net):
    return SplitModule.of(net)


def run(parts, params, variables, rng, *, is_training):
    module = parts[0].merge(params, variables, rng, is_training=is_training)
    return module(x), parts[0].variables_of(module)


def test_params_and_variables_are_nested_dicts_of_arrays(parts):
    _, params, variables = parts
    assert params["layers"][1]["kernel"].shape == (3, 3)
    assert set(variables["norm"]) == {"mean", "var"}


def test_a_merged_module_computes_what_the_module_does(net, parts):
    net.eval()
    expected = net(x)
    output, _ = run(*[parts], *parts[1:], KEY, is_training=False)
    np.testing.assert_allclose(output, expected, rtol=1e-6)


def test_merging_works_inside_jit_and_returns_new_statistics(parts):
    def step(params, variables, rng):
        return run(parts, params, variables, rng, is_training=True)

    _, variables = jax.jit(step)(*parts[1:], KEY)
    hidden = x
    for layer in (parts[1]["layers"][0], parts[1]["layers"][1]):
        hidden = hidden @ layer["kernel"] + layer["bias"]
    np.testing.assert_allclose(variables["norm"]["mean"], 0.01 * hidden.mean(0), rtol=1e-3, atol=1e-6)
    assert jax.tree.structure(variables) == jax.tree.structure(parts[2])


def test_the_key_decides_the_noise(parts):
    first, same, other = (run(parts, *parts[1:], jax.random.key(k), is_training=True)[0] for k in (0, 0, 1))
    np.testing.assert_array_equal(first, same)
    assert np.any(first != other)


def test_raw_and_typed_keys_give_the_same(parts):
    raw, typed = (run(parts, *parts[1:], key(3), is_training=True)[0] for key in (jax.random.PRNGKey, jax.random.key))
    np.testing.assert_array_equal(raw, typed)


def test_streams_of_several_layers_differ():
    class Two(nnx.Module):
        def __init__(self, rngs):
            self.a, self.b = nnx.Dropout(0.5, rngs=rngs), nnx.Dropout(0.5, rngs=rngs)

        def __call__(self, x):
            return self.a(x), self.b(x)

    split, params, variables = SplitModule.of(Two(nnx.Rngs(0)))
    a, b = split.merge(params, variables, KEY, is_training=True)(jnp.ones((8, 8)))
    assert np.any(a != b)


def test_a_missing_key_is_an_error(parts):
    with pytest.raises(ValueError, match="needs a key: got rng=None"):
        parts[0].merge(*parts[1:], None, is_training=True)


def test_a_module_without_streams_needs_no_key():
    split, params, variables = SplitModule.of(nnx.Linear(3, 2, rngs=nnx.Rngs(0)))
    split.merge(params, variables, None, is_training=False)


def test_the_arrays_are_copies(net, parts):
    _, params, _ = SplitModule.of(net)
    own = net.layers[0].kernel[...].unsafe_buffer_pointer()
    assert params["layers"][0]["kernel"].unsafe_buffer_pointer() != own


def test_gradients_flow_into_params(parts):
    def loss(params):
        return jnp.sum(jnp.square(run(parts, params, parts[2], KEY, is_training=False)[0]))

    gradient = jax.grad(loss)(parts[1])
    kernel = ("layers", 0, "kernel")
    shifted = jax.tree.map(jnp.array, parts[1])
    shifted["layers"][0]["kernel"] = shifted["layers"][0]["kernel"].at[1, 2].add(1e-2)
    below = jax.tree.map(jnp.array, parts[1])
    below["layers"][0]["kernel"] = below["layers"][0]["kernel"].at[1, 2].add(-1e-2)
    numeric = (loss(shifted) - loss(below)) / 2e-2
    assert gradient[kernel[0]][kernel[1]][kernel[2]][1, 2] == pytest.approx(float(numeric), rel=1e-2)


def test_variables_born_in_a_call_are_left_out():
    class Sowing(nnx.Module):
        def __init__(self):
            self.count = nnx.Variable(jnp.zeros((), jnp.int32))

        def __call__(self, x):
            self.count[...] += 1
            self.seen = nnx.Intermediate(x)
            return x

    split, params, variables = SplitModule.of(Sowing())
    module = split.merge(params, variables, None, is_training=True)
    module(x)
    assert split.variables_of(module) == {"count": 1}


def test_weak_types_and_numbers_become_strong_arrays():
    tree = {"number": 0.5, "count": 3, "weak": jnp.asarray(1.0), "array": np.zeros(2), "key": jax.random.key(0)}
    strong = strong_copy(tree)
    assert not any(strong[name].weak_type for name in ("number", "count", "weak", "array"))
    assert {name: str(leaf.dtype) for name, leaf in strong.items()} == {
        "number": "float32",
        "count": "int32",
        "weak": "float32",
        "array": "float32",
        "key": "key<fry>",
    }
