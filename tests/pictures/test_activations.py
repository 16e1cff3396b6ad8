import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from triax.networks import LSTM, Dense, Sequential, extract_activations, with_recording
from triax.pictures import draw_activations, new_axes, plot_activations

random = np.random.default_rng(0)


def test_each_unit_is_a_row_over_time():
    activity = random.normal(size=(7, 2, 3))
    axes = new_axes()
    draw_activations(axes, activity, title="cortex")
    drawn = axes.images[0]
    np.testing.assert_array_equal(drawn.get_array(), activity.reshape(7, 6).T)
    assert drawn.get_clim() == (-np.abs(activity).max(), np.abs(activity).max())  # 0 is in the middle of the colours
    assert (axes.get_title(loc="left"), axes.get_xlabel(), axes.get_ylabel()) == ("cortex", "step", "unit")


def test_silence_is_drawn():
    axes = new_axes()
    draw_activations(axes, np.zeros((4, 2)))
    assert axes.images[0].get_clim() == (-1, 1)


def test_lines_stand_before_the_steps_that_begin_episodes():
    axes = new_axes()
    draw_activations(axes, np.zeros((6, 2)), resets=np.array([1, 0, 0, 1, 0, 0], bool))
    assert [line.get_xdata()[0] for line in axes.lines] == [-0.5, 2.5]


def test_a_recorded_network_has_a_picture_of_each_layer():
    rngs = nnx.Rngs(0)
    network = with_recording(Sequential([Dense(3, 5, rngs), LSTM(5, 4, rngs)]))
    xs = jnp.asarray(random.normal(size=(6, 2, 3)), jnp.float32)
    resets = np.zeros((6, 2), bool)
    resets[2, 1] = True
    out = network.unroll(network.initialize_state(2), xs, jnp.asarray(resets))
    activations = extract_activations(out.metrics)
    figure = plot_activations(activations, row=1, resets=resets)
    pictures = [axes for axes in figure.axes if axes.get_title(loc="left")]
    assert [axes.get_title(loc="left") for axes in pictures] == list(activations) == ["dense_0", "lstm_1"]
    for axes, layer in zip(pictures, activations.values(), strict=True):
        np.testing.assert_allclose(axes.images[0].get_array(), np.asarray(layer[:, 1]).T)
        assert [line.get_xdata()[0] for line in axes.lines] == [1.5]


@pytest.mark.parametrize("nothing", [None, {}, {"a": {}}])
def test_no_activations_are_refused(nothing):
    with pytest.raises(ValueError, match="there are no activations"):
        plot_activations(nothing)
