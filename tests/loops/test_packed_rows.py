"""Tables hold rows of any tree: what was written is read."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from corridor import Corridor
from triax.agents.q_learning import QLearningAgent, QLearningConfig
from triax.loops.device_off_policy import DeviceOffPolicy, OffPolicyConfig
from triax.loops.packed_rows import PackedRows
from triax.networks import LSTM, Dense, Sequential, VariationalBottleneck

N = 3


def rows(impl):
    """All kinds of leaves."""
    rng = np.random.default_rng(0)
    return {
        "float": jnp.asarray(rng.normal(size=(N, 2)), jnp.float32),
        "half": jnp.asarray(rng.normal(size=(N,)), jnp.float16),
        "flag": jnp.array([True, False, True]),
        "byte": jnp.asarray(rng.integers(256, size=(N, 2, 2)), jnp.uint8),
        "key": jax.random.split(jax.random.key(1, impl=impl), N),
        "keys": jax.random.split(jax.random.key(2, impl=impl), (N, 2)),
        "raw key": jax.random.split(jax.random.PRNGKey(3), N),
    }


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_what_was_written_is_read_typed_keys_too(impl):
    tree = rows(impl)
    example = jax.eval_shape(lambda: tree)
    packed = jax.jit(lambda tree: PackedRows.empty(example, 5).write(jnp.int32(1), tree))(tree)
    read = packed.take(jnp.array([N + 2, N], jnp.int32))
    for name, leaf in tree.items():
        assert read[name].dtype == leaf.dtype
        assert jnp.array_equal(read[name], leaf[jnp.array([2, 0])]), name
    some = packed.take(jnp.array([[N + 1]], jnp.int32), lambda row: row["keys"])
    assert some.shape == (1, 1, 2) and jnp.array_equal(some[0, 0], tree["keys"][1])


NOISE = {
    "Dropout": (4, lambda rngs: nnx.Dropout(0.5, rngs=rngs)),
    "VariationalBottleneck": (2, lambda rngs: VariationalBottleneck(2, rngs)),
}


@pytest.mark.parametrize(
    "width, noise",
    [pytest.param(*NOISE["Dropout"], marks=pytest.mark.slow), NOISE["VariationalBottleneck"]],
    ids=NOISE,
)
def test_an_agent_whose_memory_holds_keys_learns_on_the_device(width, noise):
    def network(rngs):
        return Sequential([LSTM(5, 4, rngs), noise(rngs), Dense(width, 2, rngs)])

    config = QLearningConfig(batch_size=2, sequence_length=4, burn_in=1)
    agent = QLearningAgent(Corridor(), config, network)
    loop = DeviceOffPolicy(Corridor(), agent, OffPolicyConfig(num_envs=2, capacity=64, warm_up=32))
    state, _ = loop.run(loop.init(jax.random.PRNGKey(0)), 2)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(state.agent.online.params))
