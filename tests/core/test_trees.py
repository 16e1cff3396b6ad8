import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from hypothesis import given, settings
from hypothesis import strategies as st

from triax.core.trees import (
    batch_to_single,
    chunks_pow2,
    copy_arrays,
    merge_dicts,
    single_to_batch,
    stack_trees,
    sync_shared_params,
    tree_ravel,
)

SINGLE = {"x": np.arange(3.0), "n": np.float32(2), "j": (jnp.ones((2, 2)), 5)}


def test_a_batch_of_one_holds_the_single_item():
    batch = single_to_batch(SINGLE)
    assert [leaf.shape for leaf in jax.tree.leaves(batch)] == [(1, 2, 2), (1,), (1,), (1, 3)]
    jax.tree.map(np.testing.assert_array_equal, batch_to_single(batch), SINGLE)


def test_numpy_stays_on_the_host_and_jax_on_the_device():
    batch = single_to_batch(SINGLE)
    assert isinstance(batch["x"], np.ndarray) and isinstance(batch["j"][0], jax.Array)
    (stacked,) = stack_trees([SINGLE, SINGLE])
    assert isinstance(stacked["x"], np.ndarray) and isinstance(stacked["j"][0], jax.Array)


def test_an_index_picks_from_the_batch():
    batch = {"a": np.arange(6).reshape(3, 2)}
    np.testing.assert_array_equal(batch_to_single(batch, index=-1)["a"], [4, 5])


def test_stacks_each_argument_by_itself():
    first, second = stack_trees([{"a": 1}, {"a": 2}], [(np.ones(2),), (np.zeros(2),)])
    np.testing.assert_array_equal(first["a"], [1, 2])
    np.testing.assert_array_equal(second[0], [[1, 1], [0, 0]])


@pytest.mark.parametrize("sequence", [[], [{"a": 1}, {"b": 1}], [np.ones(2), np.ones(3)]])
def test_trees_that_differ_are_not_stacked(sequence):
    with pytest.raises(ValueError, match="stack_trees"):
        stack_trees(sequence)


def test_ravel_puts_all_entries_into_one_vector():
    tree = {"b": jnp.arange(4.0).reshape(2, 2), "a": (jnp.array(9.0), np.array([8.0]))}
    np.testing.assert_array_equal(tree_ravel(tree), [9, 8, 0, 1, 2, 3])
    assert tree_ravel({}).shape == (0,)


def test_copies_share_no_buffer_and_keep_their_kind():  # pitfall 35
    tree = {"a": jnp.arange(3.0), "k": jax.random.key(0), "h": jnp.ones(2, jnp.bfloat16), "n": np.arange(3)}
    tree["weak"] = jnp.asarray(1.0)
    copy = copy_arrays(tree)
    assert copy["a"].unsafe_buffer_pointer() != tree["a"].unsafe_buffer_pointer()
    assert isinstance(copy["n"], jax.Array) and copy["weak"].weak_type and not copy["a"].weak_type
    assert {k: v.dtype for k, v in copy.items()} == {k: jnp.asarray(v).dtype for k, v in tree.items()}
    jax.block_until_ready(jax.jit(lambda t: t * 2, donate_argnums=0)(tree["a"]))
    np.testing.assert_array_equal(copy["a"], [0, 1, 2])


def test_merged_dicts_name_what_they_share():
    with pytest.warns(UserWarning, match=r"\['a'\]"):
        assert merge_dicts({"a": 1, "b": 2}, {"a": 3}, {"c": 4}) == {"a": 3, "b": 2, "c": 4}


@pytest.mark.parametrize(("size", "expected"), [(0, []), (1, [1]), (8, [8]), (13, [8, 4, 1])])
def test_chunks_are_powers_of_two_and_together_the_batch(size, expected):
    batch = {"S": np.arange(2 * size).reshape(size, 2), "W": np.arange(size)}
    chunks = list(chunks_pow2(batch))
    assert [len(chunk["W"]) for chunk in chunks] == expected
    if chunks:
        np.testing.assert_array_equal(np.concatenate([chunk["S"] for chunk in chunks]), batch["S"])


@given(
    owners=st.lists(st.sets(st.sampled_from("abc"), min_size=1), min_size=2, max_size=4),
    seed=st.integers(0, 1000),
)
@settings(max_examples=15, deadline=None)
def test_shared_keys_become_the_weighted_mean(owners, seed):
    rng = np.random.default_rng(seed)
    params = [{key: {"w": rng.normal(size=2).astype(np.float32)} for key in keys} for keys in owners]
    weights = rng.uniform(0.1, 2, len(params))
    synced = sync_shared_params(*params, weights=list(weights))
    for k, own in enumerate(params):
        assert synced[k].keys() == own.keys()
        for key in own:
            having = [j for j in range(len(params)) if key in params[j]]
            mean = sum(weights[j] * params[j][key]["w"] for j in having) / sum(weights[j] for j in having)
            np.testing.assert_allclose(
                synced[k][key]["w"], mean if len(having) > 1 else own[key]["w"], rtol=1e-5, atol=1e-6
            )


def test_parameters_of_flax_modules_are_synced_by_module():
    def params(seed, head):
        rngs = nnx.Rngs(seed)
        modules = {"body": nnx.Linear(2, 3, rngs=rngs), head: nnx.Linear(3, 1, rngs=rngs)}
        return {name: nnx.to_pure_dict(nnx.state(module)) for name, module in modules.items()}

    pi, v = params(0, "pi"), params(1, "v")
    new_pi, new_v = sync_shared_params(pi, v)
    expected = (pi["body"]["kernel"] + v["body"]["kernel"]) / 2
    np.testing.assert_allclose(new_pi["body"]["kernel"], expected, rtol=1e-6)
    np.testing.assert_array_equal(new_v["body"]["kernel"], new_pi["body"]["kernel"])
    assert new_v["v"] is v["v"] and new_pi["pi"] is pi["pi"]
    # either may be donated without harm to the other (pitfall 35)
    pointers = [p["body"]["kernel"].unsafe_buffer_pointer() for p in (new_pi, new_v)]
    assert pointers[0] != pointers[1]


def test_syncing_keeps_dtypes_and_integers():
    a = {"m": {"w": jnp.ones(2, jnp.bfloat16), "n": jnp.array(1)}}
    b = {"m": {"w": jnp.zeros(2, jnp.bfloat16), "n": jnp.array(7)}}
    first, second = sync_shared_params(a, b)
    assert first["m"]["w"].dtype == jnp.bfloat16 and (first["m"]["w"] == 0.5).all()
    assert (int(first["m"]["n"]), int(second["m"]["n"])) == (1, 7)


def test_fewer_than_two_dicts_come_back_unchanged():
    params = {"a": {"w": np.ones(1)}}
    assert sync_shared_params() == ()
    assert sync_shared_params(params)[0] is params


def test_what_cannot_be_synced_is_refused():
    a, b = {"m": {"w": jnp.ones(2)}}, {"m": {"w": jnp.ones(3)}}
    with pytest.raises(ValueError, match="number per dict, 2; got 1"):
        sync_shared_params(a, a, weights=[1.0])
    with pytest.raises(ValueError, match="positive sum"):
        sync_shared_params(a, a, weights=[0.0, 0.0])
    with pytest.raises(ValueError, match=r"params\['m'\]\['w'\]: expected float32\[2\], got float32\[3\]"):
        sync_shared_params(a, b)
