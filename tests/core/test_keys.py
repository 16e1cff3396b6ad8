import jax
import numpy as np
import pytest

from triax.core.keys import KeyStream, as_typed_key, make_generator, make_key, seed_or_entropy


def test_keys_drawn_in_any_way_are_those_of_fold_in_with_a_running_number():
    stream, key = KeyStream(make_key(3)), make_key(3)
    drawn = [stream.key(), jax.random.fold_in(*stream.draw()), stream.key()]
    np.testing.assert_array_equal(drawn, [jax.random.fold_in(key, count) for count in (1, 2, 3)])


def test_after_the_last_number_the_stream_goes_on_with_new_keys():
    stream = KeyStream(make_key(0))
    first, stream._count = stream.key(), 2**32 - 2
    keys = np.stack([first, *(stream.key() for _ in range(3))])
    assert len(np.unique(keys, axis=0)) == 4


def test_a_stream_put_where_another_is_gives_the_same_keys_from_there_on():
    stream, other = KeyStream(make_key(3)), KeyStream(make_key(4))
    stream.key()
    other.position = stream.position
    np.testing.assert_array_equal([other.key(), other.key()], [stream.key(), stream.key()])


@pytest.mark.parametrize("seed", [1.5, True, np.bool_(True), "1", [1], np.array([1])])
def test_a_seed_that_is_no_integer_is_refused(seed):
    for take in (seed_or_entropy, make_key, make_generator):
        with pytest.raises(TypeError, match="random_seed must be an int or None; got"):
            take(seed)


@pytest.mark.parametrize("seed", [-1, 2**32, 99999999999999999999])
def test_a_seed_of_which_a_key_would_lose_bits_is_refused(seed):
    for take in (seed_or_entropy, make_key, make_generator):
        with pytest.raises(ValueError, match=r"random_seed must be in \[0, 2\^32\); got"):
            take(seed)


def test_integers_of_any_kind_are_seeds_and_none_is_fresh_entropy():
    assert seed_or_entropy(np.int64(2**32 - 1)) == 2**32 - 1
    assert make_generator(3).random() == np.random.default_rng(3).random()
    assert seed_or_entropy(None) != seed_or_entropy(None)


def test_typed_keys_are_of_the_default_implementation_and_those_of_it_are_as_they_were():
    typed = jax.random.key(3)
    for key in (typed, jax.random.PRNGKey(3)):
        np.testing.assert_array_equal(jax.random.key_data(as_typed_key(key)), jax.random.key_data(typed))
    others = [jax.jit(as_typed_key)(jax.random.key(seed, impl="rbg")) for seed in (3, 4)]
    assert {key.dtype for key in others} == {typed.dtype}
    assert not np.array_equal(*map(jax.random.key_data, others))
