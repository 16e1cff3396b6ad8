import gymnasium
import numpy as np
import pytest
from flax import nnx
from scipy.special import softmax

import triax
from triax.networks import LSTM, Sequential
from triax.pictures import LEFT_DOWN_RIGHT_UP, draw_policy, draw_values, new_axes, tabulate

LAKE = gymnasium.make("FrozenLake-v1", map_name="4x4")
random = np.random.default_rng(0)


class Table(nnx.Module):
    """One row of numbers per state."""

    def __init__(self, table):
        self.table = nnx.Param(np.asarray(table, np.float32))

    def __call__(self, S, is_training):
        return S @ self.table[...]


class PolicyTable(Table):
    def __call__(self, S, is_training):
        return {"logits": super().__call__(S, is_training)}


class BinsTable(Table):
    def __call__(self, S, is_training):
        return {"logits": super().__call__(S, is_training)}


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_a_table_has_what_the_function_says_of_each_state_in_its_cell():
    numbers = random.normal(size=(16, 4))
    q = triax.Q(Table(numbers), LAKE, random_seed=0)
    np.testing.assert_allclose(tabulate(q, (4, 4)), numbers.reshape(4, 4, 4), rtol=1e-6)
    v = triax.V(Table(numbers[:, 0]), LAKE, random_seed=0)
    np.testing.assert_allclose(tabulate(v, (2, 8)), numbers[:, 0].reshape(2, 8), rtol=1e-6)
    pi = triax.Policy(PolicyTable(numbers), LAKE, random_seed=0)
    expected = softmax(numbers, axis=1).reshape(4, 4, 4)
    np.testing.assert_allclose(tabulate(pi, (4, 4)), expected, rtol=1e-5)
    greedy = tabulate(triax.EpsilonGreedy(q, epsilon=0.2), (4, 4))
    np.testing.assert_allclose(greedy.max(axis=-1), 0.8 + 0.05, rtol=1e-5)
    np.testing.assert_array_equal(greedy.argmax(axis=-1).ravel(), numbers.argmax(axis=1))


def test_of_a_distribution_it_has_the_mean():
    logits = random.normal(size=(16, 5))
    v = triax.StochasticV(BinsTable(logits), LAKE, value_range=(0.0, 4.0), num_bins=5, random_seed=0)
    table = tabulate(v, (4, 4))
    np.testing.assert_allclose(table, [[float(v.mean(4 * i + j)) for j in range(4)] for i in range(4)], rtol=1e-6)
    assert np.ptp(table) > 0.1


def test_what_has_no_table_is_refused():
    cartpole = gymnasium.make("CartPole-v1")
    v = triax.V(lambda rngs: Sequential([nnx.Linear(4, 1, rngs=rngs), lambda x: x[..., 0]]), cartpole, random_seed=0)
    with pytest.raises(TypeError, match=r"tabulate: V needs a Discrete observation space; it has Box"):
        tabulate(v, (4, 4))
    with pytest.raises(TypeError, match="tabulate: expected a V, a Q or a policy; got dict"):
        tabulate({}, (4, 4))
    q = triax.Q(Table(np.zeros((16, 4))), LAKE, random_seed=0)
    with pytest.raises(ValueError, match="tabulate: 4 x 5 cells need as many states; Q has 16"):
        tabulate(q, (4, 5))
    remembers = triax.Q(lambda rngs: LSTM(16, 4, rngs), LAKE, random_seed=0)
    with pytest.raises(TypeError, match="Discrete observation space and no memory"):
        tabulate(remembers, (4, 4))


def test_values_are_drawn_as_colours_and_as_numbers_in_their_cells():
    axes, values = new_axes(), random.normal(size=(2, 3))
    values[1, 2] = np.nan
    draw_values(axes, values, labels=np.array([[b"S", b"F", b"F"], [b"H", b"F", b"G"]]), title="v")
    np.testing.assert_array_equal(np.ma.filled(axes.images[0].get_array(), np.nan), values)
    drawn = {text.get_text(): text.get_position() for text in axes.texts if "." in text.get_text()}
    assert len(drawn) == 5
    for (row, column), value in np.ndenumerate(values):
        if np.isfinite(value):
            x, y = drawn[f"{value:.2f}"]
            assert (round(x), round(y)) == (column, row)
    assert texts(axes)[5:] == ["S", "F", "F", "H", "F", "G"]
    assert axes.get_title(loc="left") == "v"


def test_arrows_point_where_actions_go_and_are_as_long_as_they_are_likely():
    probabilities = random.dirichlet(np.ones(4), size=(3, 5))
    blank = np.zeros((3, 5), bool)
    blank[1, 2] = True
    axes = new_axes()
    draw_policy(axes, probabilities, blank=blank)
    assert len(axes.collections) == 4
    for action, ((down, right), arrows) in enumerate(zip(LEFT_DOWN_RIGHT_UP, axes.collections, strict=True)):
        found = {
            (int(y), int(x)): (v, u) for (x, y), u, v in zip(arrows.get_offsets(), arrows.U, arrows.V, strict=True)
        }
        likely = probabilities[..., action]
        assert set(found) == {c for c in np.ndindex(3, 5) if likely[c] > 0.02 and not blank[c]}
        for cell, (v, u) in found.items():
            np.testing.assert_allclose([v, u], 0.42 * likely[cell] * np.array([down, right]), atol=1e-12)
    assert axes.yaxis_inverted()  # row 0 is above


def test_an_action_that_stays_is_a_dot():
    axes = new_axes()
    draw_policy(axes, np.array([[[0.5, 0.5]]]), moves=[(0, 0), (1, 1)])
    dots, arrows = axes.collections
    assert dots.get_offsets().tolist() == [[0, 0]]
    np.testing.assert_allclose(np.hypot(arrows.U, arrows.V), 0.21)
    with pytest.raises(ValueError, match="moves must be as many as the 2 actions; got 4"):
        draw_policy(axes, np.array([[[0.5, 0.5]]]))
