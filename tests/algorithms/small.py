"""Small environments and networks of which all is known, and a training of a second."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from triax.algorithms import EvalConfig, PPOConfig, TrainConfig
from triax.envs import State
from triax.networks import (
    LSTM,
    Dense,
    Filter,
    Flattener,
    Normalizer,
    NormalTanhSampler,
    Parallel,
    PPOAdapter,
    PPONetworkOutput,
    Sequential,
    StatefulModule,
    StatefulModuleOutput,
)


class MoveToCenter:
    """A point in the plane, moved by the action; it terminates outside a border and times out inside.

    ``draw`` shows the positions; ``info`` counts steps, ``metrics`` tell the distance.
    """

    action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,))

    def __init__(self, border=1.0, limit=6):
        self.border, self.limit = border, limit

    def reset(self, rng):
        position = jax.random.uniform(rng, (2,), minval=-1.0, maxval=1.0)
        distance = jnp.linalg.norm(position)
        return State.first(position / 10, {"at": position, "steps": 0}, metrics={"distance": distance})

    def step(self, state, action):
        position = state.inner["at"] + jnp.clip(action, -1.0, 1.0)
        steps = state.inner["steps"] + 1
        distance = jnp.linalg.norm(position)
        return state.next(
            position / 10,
            jnp.exp(-2.0 * distance**2),
            distance > self.border,
            {"at": position, "steps": steps},
            truncated=steps >= self.limit,
            metrics={"distance": distance},
        )

    def render(self, states, height=2, width=3):
        positions = np.array([np.asarray(state.obs) for state in states])
        frames = np.zeros((len(states), height, width, 3), np.uint8)
        frames[:, 0, 0, 0] = np.abs(positions[:, 0] * 100).astype(np.uint8)
        return frames


class Counter:
    """Reward 1 where the action is the number of steps since the reset; episodes of 3 to 9 steps."""

    def reset(self, rng):
        return State.first(jnp.ones(1), {"steps": 0, "length": jax.random.randint(rng, (), 3, 10)})

    def step(self, state, action):
        steps, length = state.inner["steps"], state.inner["length"]
        inner = {"steps": steps + 1, "length": length}
        return state.next(state.obs, jnp.where(action == steps, 1.0, 0.0), steps + 1 >= length, inner)


class CounterNet(StatefulModule):
    """Acts out how many steps it has seen since its memory was reset; one metric has no batch axis."""

    def __call__(self, state, x, rollout_extras=None):
        count = state[:, 0]
        out = PPONetworkOutput(count, jnp.zeros(count.shape), jnp.zeros(count.shape))
        return StatefulModuleOutput(state + 1, out, jnp.zeros(count.shape), {"count": count, "constant": jnp.ones(2)})

    def initialize_state(self, batch_size):
        return jnp.zeros((batch_size, 1), jnp.int32)

    def reset_state(self, prev_state):
        return jnp.zeros_like(prev_state)


class TwoArm:
    """Nested observations; actions and rewards by arm; each arm follows its own target."""

    action_space = gymnasium.spaces.Dict({arm: gymnasium.spaces.Box(-1.0, 1.0, (1,)) for arm in ("left", "right")})

    def reset(self, rng):
        targets = jax.random.uniform(rng, (2,), minval=-0.5, maxval=0.5)
        return State.first(self._show(targets), {"steps": 0}, reward={"left": 0.0, "right": 0.0})

    def step(self, state, action):
        targets = {arm: state.obs[arm]["target"] for arm in ("left", "right")}
        reward = {arm: -jnp.abs(action[arm][0] - targets[arm][0]) for arm in targets}
        steps = state.inner["steps"] + 1
        return state.next(state.obs, reward, steps >= 4, {"steps": steps})

    def _show(self, targets):
        return {arm: {"target": targets[i : i + 1]} for i, arm in enumerate(("left", "right"))}


def two_arm_net(seed=0):
    rngs = nnx.Rngs(seed)

    def arm(name):
        return Sequential(
            [Filter({name: (name, "target")}), Flattener(), Dense(1, 2, rngs), NormalTanhSampler(rngs, 0.0)]
        )

    actors = Parallel(left=arm("left"), right=arm("right"))
    values = Sequential([Flattener(), Parallel(left=Dense(2, 1, rngs), right=Dense(2, 1, rngs))])
    return PPOAdapter(actors, values)


def recurrent_net(seed=0):
    """A normalizer, an LSTM and samplers: everything that a training changes, remembers or draws."""
    rngs = nnx.Rngs(seed)
    actor = Sequential([LSTM(2, 4, rngs), Dense(4, 4, rngs), NormalTanhSampler(rngs, 1e-2)])
    return Sequential([Normalizer(2), PPOAdapter(actor, Dense(2, 1, rngs))])


ENV = MoveToCenter()
PPO = PPOConfig(n_envs=4, rollout_length=5, total_steps=100, n_epochs=2, n_minibatches=2, learning_rate=1e-2)
EVAL = EvalConfig(every_steps=40, n_envs=3, max_episode_length=8, logging_percentiles=(2.5, 50))
CONFIG = TrainConfig(ppo=PPO, eval=EVAL)


def weights_of(network):
    """All numbers of a network but those of its random streams."""
    state = nnx.state(network, nnx.Not(nnx.RngState))
    return [np.asarray(leaf) for leaf in jax.tree.leaves(state)]


def assert_same(found, expected):
    """Bit for bit; keys by their data."""
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        if jnp.issubdtype(getattr(b, "dtype", np.float32), jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
