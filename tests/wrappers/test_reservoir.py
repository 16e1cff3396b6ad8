import random

import numpy as np
from scipy import stats

from triax.wrappers.reservoir import Reservoir


def test_few_items_are_all_held_in_order():
    reservoir = Reservoir(5)
    for item in range(5):
        reservoir.add(item)
    assert reservoir.items == [0, 1, 2, 3, 4]
    reservoir.clear()
    assert reservoir.items == []


def test_every_item_is_held_with_equal_probability():
    reservoir, held = Reservoir(5), np.zeros(20)
    for _ in range(4000):
        reservoir.clear()
        for item in range(20):
            reservoir.add(item)
        held[reservoir.items] += 1
    assert held.sum() == 4000 * 5
    # Five of twenty without replacement: counts vary less than multinomial ones, so the test is lenient.
    assert stats.chisquare(held).pvalue > 1e-3


def test_the_global_generator_is_left_alone():
    random.seed(1)
    state = random.getstate()
    reservoir = Reservoir(1)
    for item in range(10):
        reservoir.add(item)
    assert random.getstate() == state
