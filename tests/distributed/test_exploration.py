import numpy as np
import pytest

from triax.distributed import epsilon_ladder


def test_the_ladder_is_that_of_the_paper():
    np.testing.assert_allclose(epsilon_ladder(3), [0.4, 0.4**4.5, 0.4**8])
    np.testing.assert_allclose(epsilon_ladder(360)[[0, -1]], [0.4, 0.00065536], rtol=1e-6)


def test_steps_of_the_ladder_have_one_ratio():
    ratios = epsilon_ladder(10)[1:] / epsilon_ladder(10)[:-1]
    np.testing.assert_allclose(ratios, ratios[0])
    assert ratios[0] < 1


def test_one_worker_alone_has_the_base():
    assert epsilon_ladder(1, base=0.3).tolist() == [0.3]


@pytest.mark.parametrize("options", [{"num_workers": 0}, {"num_workers": 2, "base": 1.5}])
def test_numbers_out_of_range_are_refused(options):
    with pytest.raises(ValueError, match="epsilon_ladder"):
        epsilon_ladder(**options)
