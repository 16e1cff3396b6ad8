import jax
import jax.numpy as jnp
import numpy as np
import pytest

from triax.env_protocol import State, canonical, conform

FLOAT = jnp.zeros((), jnp.float32)


def dtypes(tree):
    return jax.tree.map(lambda leaf: (str(leaf.dtype), leaf.weak_type), tree)


def test_numbers_become_arrays_of_definite_dtype():
    first = State.first({"x": 1.0, "n": 3}, 7, reward=0, info={"flag": False}, metrics={"m": np.float32(2)})
    following = first.next({"x": 2.0, "n": 4}, 1, False, 8, info={"flag": True}, metrics={"m": 3.0})
    assert dtypes(first) == dtypes(following)
    assert not any(leaf.weak_type for leaf in jax.tree.leaves(following))
    assert dtypes(following.reward) == ("float32", False)
    assert following.obs["n"] == 4 and following.info["flag"] and following.metrics["m"] == 3


def test_a_second_step_compiles_nothing():  # nnx-ppo F42
    @jax.jit
    def step(state):
        return state.next(jnp.where(state.obs > 1, 1.0, 0.0), 1.0, jnp.where(state.obs > 1, 1.0, 0.0), 1)

    state = State.first(0.5, 0)
    for _ in range(3):
        state = step(state)
    assert step._cache_size() == 1


def test_what_is_both_terminated_and_truncated_is_terminated():
    following = State.first(0.0).next(1.0, 0.0, np.array(1.0), truncated=True)
    assert bool(following.terminated) and not bool(following.truncated) and bool(following.done)


def test_info_and_metrics_stay_unless_given():
    first = State.first(0.0, info={"a": 1}, metrics={"b": 2})
    following = first.next(1.0, 0.0, False)
    assert following.info == {"a": 1} and following.metrics == {"b": 2}


def test_the_final_observation_is_the_observation():
    following = State.first({"x": FLOAT}).next({"x": FLOAT + 3}, 0.0, True)
    np.testing.assert_array_equal(following.final_obs["x"], 3)


def test_a_step_that_adds_a_leaf_is_refused_by_name():
    with pytest.raises(ValueError, match=r"state\.info\['new'\]: not expected"):
        State.first(0.0).next(1.0, 0.0, False, info={"new": 1.0})


def test_a_step_of_another_shape_is_refused_by_name():
    with pytest.raises(ValueError, match=r"state\.obs: expected float32\[2\], got float32\[3\]"):
        State.first(jnp.zeros(2)).next(jnp.zeros(3), 0.0, False)


def test_a_float_that_would_be_cut_to_an_int_is_refused_by_name():
    first = State.first(0.0, metrics={"distance": 0})
    with pytest.raises(ValueError, match=r"metrics\['distance'\]: expected int32\[\], got float32\[\]"):
        first.next(1.0, 0.0, False, metrics={"distance": 0.37})


def test_an_int_fits_into_a_float_and_a_bool_into_an_int():
    first = State.first(0.0, metrics={"float": 0.0, "int": 0})
    following = first.next(1, 2, False, metrics={"float": 3, "int": True})
    assert dtypes(following) == dtypes(first)
    assert float(following.obs) == 1 and float(following.metrics["float"]) == 3 and int(following.metrics["int"]) == 1


def test_keys_pass_and_never_turn_into_numbers():
    first = State.first(0.0, jax.random.key(0))
    following = first.next(1.0, 0.0, False, jax.random.key(1))
    assert jnp.issubdtype(following.inner.dtype, jax.dtypes.prng_key)
    with pytest.raises(ValueError, match=r"state\.inner"):
        first.next(1.0, 0.0, False, jnp.zeros(()))


def test_done_cannot_be_set():
    with pytest.raises(TypeError, match=r"terminated=\.\.\. or truncated=\.\.\."):
        State.first(0.0).replace(done=True)


def test_replacing_leaves_the_old_state_alone():
    old = State.first(0.0)
    assert bool(old.replace(truncated=jnp.ones((), jnp.bool_)).done) and not bool(old.done)


def test_canonical_and_conform_keep_values():
    tree = {"a": 1.5, "b": np.arange(3), "c": jnp.float32(2)}
    for result in (canonical(tree), conform(canonical(tree), tree)):
        jax.tree.map(np.testing.assert_array_equal, result, tree)


def test_states_batch_under_vmap():
    states = jax.vmap(lambda x: State.first(x).next(x + 1, x, x > 1))(jnp.arange(4.0))
    np.testing.assert_array_equal(states.done, [False, False, True, True])
    np.testing.assert_array_equal(states.final_obs, [1, 2, 3, 4])


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        ({"obs": jnp.zeros(1)}, "Change reset or step, whichever has the wrong shape"),
        ({"reward": jnp.zeros(1)}, "Change reset or step, whichever has the wrong shape"),
        ({"info": {"new": 1}}, "Change reset or step, so that both return the same leaves"),
        ({"inner": 0.5}, "Try a wider dtype in reset, such as 0.0 instead of 0"),
    ],
)
def test_advice_on_states_that_differ_blames_reset_for_narrow_dtypes_alone(change, hint):
    step = {"obs": jnp.zeros(2), "reward": 0.0, "terminated": False, "inner": 1, **change}
    with pytest.raises(ValueError) as error:
        State.first(jnp.zeros(2), 0).next(**step)
    assert hint in str(error.value)
    assert ("0.0 instead" in str(error.value)) == (hint.startswith("Try"))
