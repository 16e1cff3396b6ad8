import jax
import numpy as np

from triax.core.keys import KeyStream, make_key


def test_keys_drawn_in_any_way_are_those_of_fold_in_with_a_running_number():
    stream, key = KeyStream(make_key(3)), make_key(3)
    drawn = [stream.key(), jax.random.fold_in(*stream.draw()), stream.key()]
    np.testing.assert_array_equal(drawn, [jax.random.fold_in(key, count) for count in (1, 2, 3)])


def test_after_the_last_number_the_stream_goes_on_with_new_keys():
    stream = KeyStream(make_key(0))
    first, stream._count = stream.key(), 2**32 - 2
    keys = np.stack([first, *(stream.key() for _ in range(3))])
    assert len(np.unique(keys, axis=0)) == 4
