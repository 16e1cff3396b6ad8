"""One linear network for any inputs and outputs, as each of the kinds of ``func``; and environments of spaces."""

from typing import Any, NamedTuple

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from gymnasium import spaces

from triax.networks import Delay, Dense, Sequential

KINDS = ("haiku", "module", "factory", "stateful")
STATE = spaces.Box(-np.inf, np.inf, (3,), np.float32)
s = np.array([0.5, -1.0, 2.0], np.float32)


class Env(NamedTuple):
    action_space: Any = None
    observation_space: Any = STATE

    def __hash__(self):
        return id(self.action_space) ^ id(self.observation_space)


env_of = Env


DISCRETE = env_of(spaces.Discrete(4))
REALS = env_of(spaces.Box(-2.0, 3.0, (2,), np.float32))

SPACES = {
    "Discrete": spaces.Discrete(3, start=-1),
    "bounded Box": spaces.Box(np.array([-2.0, 0.0], np.float32), np.array([3.0, 1.0], np.float32)),
    "half-bounded Box": spaces.Box(np.array([0.0, -np.inf]), np.array([np.inf, 5.0]), dtype=np.float64),
    "unbounded Box": spaces.Box(-np.inf, np.inf, (2, 2), np.float32),
    "0-d Box": spaces.Box(-1.0, 1.0, (), np.float32),
    "uint8 Box": spaces.Box(0, 255, (2,), np.uint8),
    "int64 Box": spaces.Box(-3, 3, (2,), np.int64),
    "MultiDiscrete": spaces.MultiDiscrete([[2, 3], [4, 2]], start=[[0, 1], [-2, 0]]),
    "MultiBinary": spaces.MultiBinary((2, 2)),
    "Tuple": spaces.Tuple((spaces.Discrete(2), spaces.Box(0.0, 1.0, (1,), np.float32))),
    "nested Dict": spaces.Dict(
        x=spaces.Tuple((spaces.Discrete(2, start=5), spaces.Dict(y=spaces.Box(-np.inf, np.inf, (), np.float64)))),
        z=spaces.MultiBinary(2),
    ),
}

SOME_SPACES = ("bounded Box", "uint8 Box", "MultiDiscrete", "MultiBinary", "nested Dict")
"""One of each kind, where all would take long."""


def flat(tree):
    """``[batch, features]``, float32."""
    return jnp.concatenate([x.reshape(len(x), -1).astype(jnp.float32) for x in jax.tree.leaves(tree)], axis=-1)


def unflat(x, like):
    """Undoes ``flat`` for the structure and shapes of ``like``, whatever the batch size."""
    leaves, structure = jax.tree.flatten(like)
    ends = np.cumsum([leaf[0].size for leaf in leaves])
    parts = jnp.split(x, ends[:-1], axis=-1)
    return structure.unflatten(part.reshape(-1, *leaf.shape[1:]) for part, leaf in zip(parts, leaves, strict=True))


class Linear(nnx.Module):
    def __init__(self, example, rngs):
        self.like = nnx.static(Like(example.output))
        self.layer = nnx.Linear(in_size(example), out_size(example), rngs=rngs)

    def run(self, *inputs):
        return unflat(self.layer(flat(inputs)), self.like.tree)


class LinearS(Linear):
    def __call__(self, S, is_training):
        return self.run(S)


class LinearSA(Linear):
    def __call__(self, S, A, is_training):
        return self.run(S, A)


class Like:
    """Shapes of an output, hidden from flax."""

    def __init__(self, tree):
        self.tree = jax.tree.map(lambda leaf: np.zeros(leaf.shape, np.float32), tree)


def in_size(example):
    return flat(example.inputs.args[:-1]).shape[-1]


def out_size(example):
    return flat(example.output).shape[-1]


def func_of(example, kind="module", seed=0):
    """A linear ``func`` for the inputs and the output of ``example`` (from ``example_data``)."""
    takes_action = "A" in example.inputs.args._fields
    module = LinearSA if takes_action else LinearS
    if kind == "haiku":
        return haiku_func(example, takes_action)
    if kind == "module":
        return module(example, nnx.Rngs(seed))
    if kind == "factory":
        return lambda rngs: module(example, rngs)
    like, rngs, size = Like(example.output), nnx.Rngs(seed), in_size(example)
    memory = [Delay(np.zeros(size, np.float32), 1)] if kind == "memory" else []
    head = [Dense(size, out_size(example), rngs), lambda x: unflat(x, like.tree)]
    return Sequential([flat, *memory, *head])


def haiku_func(example, takes_action):
    like, size = Like(example.output), out_size(example)

    def run(*inputs):
        return unflat(hk.Linear(size)(flat(inputs)), like.tree)

    if takes_action:
        return lambda S, A, is_training: run(S, A)
    return lambda S, is_training: run(S)


def assert_member(x, space):
    """A member of the space, of the types that users get, writable and their own."""
    assert x in space
    if isinstance(space, spaces.Tuple):
        assert type(x) is tuple
        for part, value in zip(space.spaces, x, strict=True):
            assert_member(value, part)
    elif isinstance(space, spaces.Dict):
        assert type(x) is dict
        for name, part in space.spaces.items():
            assert_member(x[name], part)
    elif isinstance(space, spaces.Discrete):
        assert type(x) is int
    else:
        assert type(x) is np.ndarray and x.dtype == space.dtype and x.shape == space.shape
        assert x.flags.writeable and x.base is None


def assert_number(x):
    assert type(x) is np.ndarray and x.shape == () and x.dtype == np.float32


def assert_trees_equal(a, b):
    jax.tree.map(np.testing.assert_array_equal, a, b)


def assert_trees_close(a, b, **tolerance):
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, **{"rtol": 1e-5, "atol": 1e-6, **tolerance}), a, b)


def without_batch(tree):
    return jax.tree.map(lambda leaf: np.asarray(leaf[0]), tree)


def stacked(members, space):
    """Clean batch arrays of members, as a tracer stacks them."""
    if isinstance(space, spaces.Tuple):
        return tuple(stacked([m[i] for m in members], part) for i, part in enumerate(space.spaces))
    if isinstance(space, spaces.Dict):
        return {name: stacked([m[name] for m in members], part) for name, part in space.spaces.items()}
    return np.stack([np.asarray(m) for m in members])
