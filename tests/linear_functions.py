"""Functions with one weight matrix, spaces and batches: what the tests of the learning rules share."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from gymnasium.spaces import Box, Discrete

import triax
from triax.reward_tracing import TransitionBatch

B, STATE, ACTIONS, BINS = 5, 3, 4, 6
ROWS = np.arange(B)
OBSERVATIONS = Box(-np.inf, np.inf, (STATE,), np.float32)
DISCRETE = SimpleNamespace(observation_space=OBSERVATIONS, action_space=Discrete(ACTIONS))
REALS = SimpleNamespace(observation_space=OBSERVATIONS, action_space=Box(-np.inf, np.inf, (2,), np.float32))
RANGE = (-3.0, 3.0)
"""Outer edges of the bins of distributional functions."""
ATOMS = np.linspace(-2.5, 2.5, BINS)
FRACTIONS = (np.arange(BINS) + 0.5) / BINS

_RNG = np.random.default_rng(0)


def normal(*shape, seed=None):
    """Standard-normal weights."""
    rng = _RNG if seed is None else np.random.default_rng(seed)
    return rng.normal(size=shape).astype(np.float32)


S, S_NEXT, RN, W = normal(B, STATE), normal(B, STATE), normal(B), _RNG.uniform(0.2, 2, B).astype(np.float32)
IN = np.array([0.9, 0.0, 0.81, 0.9, 0.9], np.float32)
A, A_NEXT = _RNG.integers(ACTIONS, size=B), _RNG.integers(ACTIONS, size=B)
REAL_A = normal(B, 2)


def batch(**fields):
    """Five transitions; one of them ends its episode."""
    default = {
        "S": S,
        "A": A,
        "logP": np.zeros(B),
        "Rn": RN,
        "In": IN,
        "S_next": S_NEXT,
        "A_next": A_NEXT,
        "logP_next": np.zeros(B),
        "W": W,
    }
    return TransitionBatch(**(default | fields))


def real_batch(**fields):
    """The same with real actions."""
    return batch(**({"A": REAL_A, "A_next": None, "logP_next": None} | fields))


def with_field(name, value):
    """A batch of which one field is replaced without the checks of the constructor."""
    made = batch()
    setattr(made, name, value)
    return made


# ------------------------------------------------------------------ functions


class Linear(nnx.Module):
    def __init__(self, w):
        self.w = nnx.Param(jnp.asarray(w))


class OfState(Linear):
    """``S @ w``: a value, or one for each action."""

    def __call__(self, S, is_training):
        return S @ self.w[...]


class OfPair(Linear):
    """``[S, tanh(A)] @ w``."""

    def __call__(self, S, A, is_training):
        return jnp.concatenate([S, jnp.tanh(A)], axis=-1) @ self.w[...]


class Tree(nnx.Module):
    """A function with one leaf as one with a tree of outputs."""

    def __init__(self, inner, make):
        self.inner, self.make = inner, make

    def __call__(self, S, is_training):
        return self.make(self.inner(S, is_training))


class TreeOfPair(Tree):
    def __call__(self, S, A, is_training):
        return self.make(self.inner(S, A, is_training))


def as_logits(x):
    return {"logits": x}


def as_normal(mu):
    """Unit variance."""
    return {"mu": mu, "logvar": jnp.zeros_like(mu)}


def as_bins(x):
    """``[batch, actions * bins]`` as logits ``[batch, actions, bins]``."""
    return {"logits": x.reshape(len(x), ACTIONS, BINS)}


def as_quantiles(x):
    values = x.reshape(len(x), ACTIONS, BINS)
    return {"values": values, "quantile_fractions": jnp.broadcast_to(FRACTIONS.astype(np.float32), values.shape)}


def make_v(w, **options):
    return triax.V(OfState(w), DISCRETE, random_seed=0, **options)


def make_q(w, **options):
    return triax.Q(OfState(w), DISCRETE, random_seed=0, **options)


def make_real_q(w, **options):
    return triax.Q(OfPair(w), REALS, random_seed=0, **options)


def make_policy(w):
    return triax.Policy(Tree(OfState(w), as_logits), DISCRETE, random_seed=0)


def make_real_policy(w, **options):
    return triax.Policy(Tree(OfState(w), as_normal), REALS, random_seed=0, **options)


def make_binned_v(w, **options):
    func = Tree(OfState(w), as_logits)
    return triax.StochasticV(func, DISCRETE, RANGE, num_bins=BINS, random_seed=0, **options)


def make_binned_q(w, **options):
    func = Tree(OfState(w), as_bins)
    return triax.StochasticQ(func, DISCRETE, RANGE, num_bins=BINS, random_seed=0, **options)


def make_quantile_q(w, **options):
    return triax.StochasticQ(Tree(OfState(w), as_quantiles), DISCRETE, num_bins=BINS, random_seed=0, **options)


def weight_of(f_or_tree):
    """The only weight matrix."""
    (leaf,) = jax.tree.leaves(getattr(f_or_tree, "params", f_or_tree))
    return np.asarray(leaf)


# ------------------------------------------------------------------ formulas


def softmax(x):
    z = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return z / z.sum(axis=-1, keepdims=True)


def pick(values, actions):
    """``values[i, actions[i]]``."""
    return values[ROWS, actions]


def entropy_of(logits):
    p = softmax(np.asarray(logits, np.float64))
    return -np.sum(p * np.log(p), axis=-1)


def half_squares(target, prediction):
    """mean(W * 0.5 * error^2), written out."""
    return jnp.sum(W * 0.5 * (target - prediction) ** 2) / B
