"""Draws inside compiled programs are those of ``jax.random``, bit for bit, of whatever keys, without its loops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triax.core import random
from triax.core.threefry import UNROLLED, threefry

LOGITS = jnp.array([[0.0, 1.0, -1.0], [2.0, 0.0, 0.5]])
DRAWS = {
    "split": lambda r, key: r.split(key, 5),
    "split, two axes": lambda r, key: r.split(key, (2, 3)),
    "fold_in": lambda r, key: r.fold_in(key, 123_456),
    "bits": lambda r, key: r.bits(key, (7, 3)),
    "bytes": lambda r, key: r.bits(key, (7,), jnp.uint8),
    "short bits": lambda r, key: r.bits(key, (7,), jnp.uint16),
    "nothing": lambda r, key: r.bits(key, (0, 4)),
    "categorical": lambda r, key: r.categorical(key, LOGITS),
    "gumbel": lambda r, key: r.gumbel(key, (5,)),
    "normal": lambda r, key: r.normal(key, (4, 3)),
    "a half normal": lambda r, key: r.normal(key, (4, 3), jnp.float16),
    "permutation": lambda r, key: r.permutation(key, 17),
    "randint": lambda r, key: r.randint(key, (9,), -3, 1000),
    "uniform": lambda r, key: r.uniform(key, (), minval=-1.0, maxval=2.0),
}
KEYS = {
    "typed": lambda seed: jax.random.key(seed),
    "raw": lambda seed: jax.random.PRNGKey(seed),
    "rbg": lambda seed: jax.random.key(seed, impl="rbg"),
}


def numbers(x):
    return np.asarray(jax.random.key_data(x) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else x)


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("name", DRAWS)
def test_a_draw_in_a_compiled_program_is_that_of_jax(name, kind):
    key = KEYS[kind](2**31 + 7)
    found = jax.jit(lambda key: DRAWS[name](random, key))(key)
    expected = jax.jit(lambda key: DRAWS[name](jax.random, key))(key)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(numbers(found), numbers(expected))


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), data=st.integers(0, 2**32 - 1), size=st.integers(1, 40))
def test_chains_of_keys_are_those_of_jax(seed, data, size):
    def chain(r, key, data):
        keys = r.split(r.fold_in(key, data), 3)
        return jax.vmap(lambda key: r.bits(r.fold_in(key, 1), (size,)))(keys)

    key, data = jax.random.key(seed), np.uint32(data)
    found = jax.jit(lambda key, data: chain(random, key, data))(key, data)
    np.testing.assert_array_equal(found, chain(jax.random, key, data))


@pytest.mark.parametrize("seed", [0, 1, 2**31 + 5, 2**32 - 1])
def test_a_seed_gives_the_key_that_jax_makes_of_it(seed):
    np.testing.assert_array_equal(numbers(jax.random.key(seed, impl=UNROLLED)), numbers(jax.random.key(seed)))


def test_wide_numbers_and_seeds_are_those_of_jax():
    with jax.enable_x64(True):
        key = jax.random.key(2**40 + 1)
        np.testing.assert_array_equal(numbers(jax.random.key(2**40 + 1, impl=UNROLLED)), numbers(key))
        for draw in (lambda r, key: r.bits(key, (5,), jnp.uint64), lambda r, key: r.normal(key, (5,), jnp.float64)):
            found = jax.jit(lambda key, draw=draw: draw(random, key))(key)
            np.testing.assert_array_equal(found, draw(jax.random, key))


def test_the_cipher_gives_the_published_answers():  # of Random123, kat_vectors, threefry2x32 20
    for key, counter, answer in (
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ):
        found = threefry(jnp.array(key, jnp.uint32), tuple(jnp.array(counter, jnp.uint32)))
        assert tuple(int(x) for x in found) == answer


def test_no_loop_is_left_in_a_compiled_program():
    def program(r):
        return jax.jit(lambda key: r.normal(r.split(key, 3)[1], (4,))).lower(jax.random.key(0)).as_text()

    assert "while" in program(jax.random) or "call" in program(jax.random)
    assert "while" not in program(random)


def test_a_program_that_keeps_its_keys_compiles_once():
    def step(key):
        key, rng = random.split(key)
        return key, random.uniform(rng)

    keys, draws = jax.lax.scan(lambda key, _: step(key), jax.random.key(0), length=5)
    expected = jax.random.key(0)
    for draw in draws:
        expected, rng = jax.random.split(expected)
        assert draw == jax.random.uniform(rng)
    assert keys == expected


def test_a_program_under_the_older_way_of_counting_draws_as_jax_does():
    with jax.threefry_partitionable(False):
        key = jax.random.key(3)
        found = jax.jit(lambda key: random.normal(random.split(key, 3)[2], (5,)))(key)
        np.testing.assert_array_equal(found, jax.random.normal(jax.random.split(key, 3)[2], (5,)))
