"""``RandomPolicy``: actions that ignore the state."""

import copy
import math
from collections.abc import Callable
from functools import partial, singledispatch
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Space, Tuple
from jaxtyping import PyTree

from triax.core import random
from triax.core.keys import KeyStream, make_key, seed_or_entropy
from triax.functions.approximator import Carry
from triax.functions.decoding import SpaceDecoding
from triax.functions.distribution_calls import DistributionCalls
from triax.functions.evaluate import with_carry, without_carry
from triax.functions.inputs import space_of
from triax.functions.lift import Unrolled, unroll_rows
from triax.functions.state_function import StochasticStateFunction
from triax.proba_dists import ProbaDist
from triax.spaces import decoder


class RandomPolicy(StochasticStateFunction):
    """Samples as ``action_space.sample()`` does, from a generator of its own.

    Uniform where the space is bounded; a component of a ``Box`` that is bounded on one side is exponential, on no
    side standard normal. It has no weights; for spaces without ``Box`` it serves as a target policy too.

    Args:
        env: anything with ``observation_space`` and ``action_space``.
        random_seed: decides the actions; ``None`` draws fresh entropy.

    Raises:
        TypeError: a space is no supported Gymnasium space.
    """

    kinds: ClassVar[frozenset[str]] = frozenset({"policy"})

    def __init__(self, env: Any, random_seed: int | None = None) -> None:
        who = type(self).__name__
        self._set_up_observations(env, None)
        self.action_space = space_of(env, "action_space", who=who)
        self.proba_dist = ProbaDist(self.action_space)
        self._params, self._function_state, self._exposed, self._has_memory = {}, {}, False, False
        self._generator, self._to_member = copy.deepcopy(self.action_space), decoder(self.action_space)
        self.random_seed = random_seed
        forward = partial(_uniform, self.action_space, self.proba_dist)
        self._sequence = unroll_rows(forward)
        self._function = without_carry(forward, ("S",), who, False)
        self._calls = DistributionCalls(forward, self._function, self._prepare, SpaceDecoding(self.proba_dist))

    def sequence(self, *, with_action: bool = False) -> Callable[..., Unrolled]:
        """Pure: zero logits for each row."""
        return self._sequence

    @property
    def random_seed(self) -> int:
        """The seed; assigning it restarts the stream of actions."""
        return self._random_seed

    @random_seed.setter
    def random_seed(self, random_seed: int | None) -> None:
        self._random_seed = seed_or_entropy(random_seed)
        self._keys = KeyStream(make_key(self._random_seed))
        self._generator.seed(self._random_seed)

    def initial_carry(self, batch_size: int = 1) -> Carry:
        """``()``: it remembers nothing."""
        return ()

    def copy(self, deep: bool = False) -> "RandomPolicy":
        """A random policy with a stream of its own."""
        return type(self)(self, random_seed=int(random.bits(self.rng, dtype=jnp.uint32) >> 1))

    def __call__(self, s: Any, carry: Carry | None = None, *, return_logp: bool = False) -> Any:
        """A random action, or ``(action, log-probability)``."""
        self._checked_carry(carry)
        a = self._to_member(self._generator.sample())
        result = (a, np.array(log_proba(self.action_space, a), np.float32)) if return_logp else a
        return with_carry(result, carry, carry, return_logp)

    def mode(self, s: Any, carry: Carry | None = None) -> Any:
        """A random action too: all are alike."""
        return self(s, carry)

    def mean(self, s: Any, carry: Carry | None = None) -> Any:
        """A random action too."""
        return self(s, carry)

    def dist_params(self, s: Any, carry: Carry | None = None) -> Any:
        """Zero logits.

        Raises:
            NotImplementedError: the action space has a ``Box``: its samples are not normally distributed.
        """
        return super().dist_params(s, carry)


def _uniform(
    space: Space, dist: ProbaDist, params: Any, state: Any, rng: Any, carry: Any, S: PyTree, is_training: bool
) -> tuple:
    if _has_box(space):
        raise NotImplementedError(
            f"RandomPolicy: samples of {space} have no dist_params: a Box is sampled uniformly, not normally."
        )
    batch_size = jax.tree.leaves(S)[0].shape[0]
    logits = jax.tree.map(lambda leaf: jnp.zeros((batch_size, *leaf.shape[1:])), dist.default_priors)
    return logits, carry, state


def _has_box(space: Space) -> bool:
    if isinstance(space, Tuple | Dict):
        return any(map(_has_box, space.spaces.values() if isinstance(space, Dict) else space.spaces))
    return isinstance(space, Box)


# ------------------------------------------------------------------ how Gymnasium samples


@singledispatch
def log_proba(space: Any, a: Any) -> float:
    """The log-probability or log-density, in nats, of ``a`` as a draw of ``space.sample()``."""
    raise NotImplementedError(f"RandomPolicy: no log-probability for {space}.")


@log_proba.register
def _(space: Discrete, a: Any) -> float:
    return -math.log(space.n)


@log_proba.register
def _(space: MultiDiscrete, a: Any) -> float:
    return -float(np.sum(np.log(space.nvec)))


@log_proba.register
def _(space: MultiBinary, a: Any) -> float:
    return -math.prod(space.shape) * math.log(2)


@log_proba.register
def _(space: Tuple, a: Any) -> float:
    return sum(log_proba(part, x) for part, x in zip(space.spaces, a, strict=True))


@log_proba.register
def _(space: Dict, a: Any) -> float:
    return sum(log_proba(part, a[name]) for name, part in space.spaces.items())


@log_proba.register
def _(space: Box, a: Any) -> float:
    low, high, x = (np.asarray(v, np.float64) for v in (space.low, space.high, a))
    below, above = space.bounded_below, space.bounded_above
    is_float = space.dtype.kind == "f"
    with np.errstate(invalid="ignore"):
        width = high - low + (0.0 if is_float else 1.0)
        width = np.where(low == high, 1.0, width)  # a constant component is certain
        distance = np.where(below, x - low, high - x)
    # Integers are floors of reals: of an exponential, P(k) = exp(-k) (1 - 1/e).
    exponential = -distance if is_float else -distance + math.log1p(-math.exp(-1))
    with np.errstate(divide="ignore"):  # where another rule applies
        unbounded = -0.5 * (x**2 + math.log(2 * math.pi)) if is_float else _log_normal_floor(x)
        logp = np.select([below & above, below | above], [-np.log(width), exponential], unbounded)
    return float(np.sum(logp))


def _log_normal_floor(x: np.ndarray) -> np.ndarray:
    """The log-probability that the floor of a standard normal number is ``x``."""
    nearer = np.where(x < 0, -x - 1, x)  # the mirror image in the upper tail, where erfc keeps its digits
    tails = [np.vectorize(math.erfc)((nearer + step) / math.sqrt(2)) for step in (0, 1)]
    return np.asarray(np.log(tails[0] - tails[1]) - math.log(2))
