"""``RandomPolicy``: actions that ignore the state."""

import copy
from functools import partial, singledispatch
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Space, Tuple
from jaxtyping import PyTree

from triax.core.keys import make_key, seed_or_entropy
from triax.functions.approximator import Carry, without_carry
from triax.functions.decoding import SpaceDecoding
from triax.functions.distribution_calls import DistributionCalls
from triax.functions.evaluate import with_carry
from triax.functions.inputs import prepare_state
from triax.functions.state_function import StochasticStateFunction
from triax.proba_dists import ProbaDist
from triax.spaces import check_space, default_preprocessor, encoder


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
        for argument in ("observation_space", "action_space"):
            check_space(getattr(env, argument), who="RandomPolicy", argument=argument)
        self.observation_space, self.action_space = env.observation_space, env.action_space
        self.observation_preprocessor = default_preprocessor(env.observation_space)
        self.proba_dist = ProbaDist(env.action_space)
        self._encode_state = encoder(env.observation_space, who="RandomPolicy", argument="s")
        self._params, self._function_state, self._exposed, self._has_memory = {}, {}, False, False
        self._space = copy.deepcopy(env.action_space)
        self.random_seed = random_seed
        forward = partial(_uniform, self.action_space, self.proba_dist)
        self._function = without_carry(forward, 1, "RandomPolicy", False)
        prepare = partial(prepare_state, self.observation_preprocessor)
        self._calls = DistributionCalls(forward, self._function, prepare, SpaceDecoding(self.proba_dist))

    @property
    def random_seed(self) -> int:
        """The seed; assigning it restarts the stream of actions."""
        return self._random_seed

    @random_seed.setter
    def random_seed(self, random_seed: int | None) -> None:
        self._random_seed = seed_or_entropy(random_seed)
        self._key = make_key(self._random_seed)
        self._space.seed(self._random_seed)

    def initial_carry(self, batch_size: int = 1) -> Carry:
        """``()``: it remembers nothing."""
        return ()

    def copy(self, deep: bool = False) -> "RandomPolicy":
        """A random policy with a stream of its own."""
        return RandomPolicy(self, random_seed=int(jax.random.bits(self.rng, dtype=jnp.uint32) >> 1))

    def __call__(self, s: Any, carry: Carry | None = None, *, return_logp: bool = False) -> Any:
        """A random action, or ``(action, log-probability)``."""
        self._carry_or_none(carry)
        a = self._space.sample()
        a = int(a) if isinstance(self._space, Discrete) else a
        result = (a, np.array(_log_proba(self._space, a), np.float32)) if return_logp else a
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


@singledispatch
def _log_proba(space: Any, a: Any) -> float:
    raise NotImplementedError(f"RandomPolicy: no log-probability for {space}.")


@_log_proba.register
def _(space: Discrete, a: Any) -> float:
    return -float(np.log(space.n))


@_log_proba.register
def _(space: MultiDiscrete, a: Any) -> float:
    return -float(np.sum(np.log(space.nvec)))


@_log_proba.register
def _(space: MultiBinary, a: Any) -> float:
    return -float(np.prod(space.shape)) * float(np.log(2))


@_log_proba.register
def _(space: Tuple, a: Any) -> float:
    return sum(_log_proba(part, x) for part, x in zip(space.spaces, a, strict=True))


@_log_proba.register
def _(space: Dict, a: Any) -> float:
    return sum(_log_proba(part, a[name]) for name, part in space.spaces.items())


@_log_proba.register
def _(space: Box, a: Any) -> float:
    """By component: uniform, exponential from the finite bound, or standard normal, as Gymnasium samples."""
    low, high, x = (np.asarray(v, np.float64) for v in (space.low, space.high, a))
    below, above = space.bounded_below, space.bounded_above
    width = high - low + (1 if np.issubdtype(space.dtype, np.integer) else 0)
    with np.errstate(invalid="ignore"):
        logp = np.select(
            [below & above, below, above],
            [-np.log(width), -(x - low), -(high - x)],
            -0.5 * (x**2 + np.log(2 * np.pi)),
        )
    return float(np.sum(logp))
