"""What actor-critic agents must know of an action space: how a policy on it is evaluated, drawn from and made."""

import functools
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Protocol, runtime_checkable

import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Box, Discrete
from jaxtyping import Array, Float, Int, PyTree, Shaped

from triax.agents.actor_critic_networks import CategoricalActor, GaussianActor, action_value_critic, actor_network
from triax.agents.off_policy import Factory
from triax.agents.value_networks import ActionValueNetwork, action_network
from triax.core import random
from triax.core.env_arguments import refuse_unmade_env
from triax.core.keys import Key
from triax.functions import Policy, Q
from triax.proba_dists import CategoricalDist, SquashedNormalDist
from triax.spaces import BoxBounds, canonical_dtype
from triax.spaces.preprocess import to_batch

Values = Callable[[PyTree], Float[Array, "critics batch ..."]]
"""What critics say of actions, or, given ``None``, of all ``Discrete`` ones."""

LOGVAR_RANGE = (-40.0, 4.0)
"""Standard deviations before the squashing are cut to [2e-9, 7.4] (Haarnoja et al. 2018)."""


class UnitBox:
    """A bounded ``Box`` of floats, scaled so that each component is in [-1, 1], which is what networks see.

    Args:
        space: the action space.
        who: the agent, for messages.

    Raises:
        TypeError: ``space`` is another one, or a component lacks a bound.
    """

    def __init__(self, space: Any, who: str) -> None:
        bounds = BoxBounds.of(space) if isinstance(space, Box) and space.dtype.kind == "f" else None
        if bounds is None or not (bounds.has_low & bounds.has_high & (bounds.low < bounds.high)).all():
            raise TypeError(
                f"{who}: needs a Box of floats with finite bounds, low < high, in each component; got {space}."
            )
        self.space = space
        self._low, self._high, self._dtype = bounds.low, bounds.high, canonical_dtype(space)
        low, high = (np.asarray(bound, np.float64) for bound in (bounds.low, bounds.high))
        self._centre, self._half = (np.asarray(x, np.float32) for x in ((high + low) / 2, (high - low) / 2))

    def to_unit(self, rng: Any, action: Any) -> Float[Array, "batch ..."]:
        """A preprocessor of actions, one or a batch; ``rng`` is not used."""
        action = to_batch(action, self.space.shape, self.space).astype(jnp.float32)
        return (action - self._centre) / self._half

    def from_unit(self, unit: Float[Array, "batch ..."]) -> Float[Array, "batch ..."]:
        """Members of the space: rounding must not leave the bounds."""
        return jnp.clip((self._centre + self._half * unit).astype(self._dtype), self._low, self._high)

    def random(self, key: Key, batch_size: int) -> Float[Array, "batch ..."]:
        """Uniform ones, in [-1, 1]."""
        return random.uniform(key, (batch_size, *self.space.shape), minval=-1.0, maxval=1.0)

    def standing_in(self, env: Any) -> Any:
        """The spaces of ``env`` with scaled actions."""
        unit = Box(-1.0, 1.0, self.space.shape, np.float32)
        return SimpleNamespace(observation_space=env.observation_space, action_space=unit)


@runtime_checkable
class StochasticActions(Protocol):
    """How a stochastic policy on one kind of action space is evaluated and drawn from."""

    target_entropy: float
    """In nats; what the temperature aims at by default."""

    def actor(self, network: Factory | None, hidden: tuple[int, ...]) -> tuple[Factory, Policy]:
        """What makes an actor, by default a multi-layer perceptron, and a policy of it."""
        ...

    def critic(self, network: Factory | None, hidden: tuple[int, ...]) -> tuple[Factory, Q]:
        """What makes a critic, by default a multi-layer perceptron, and a q-function of it."""
        ...

    def value_and_entropy(
        self, dist_params: PyTree, values: Values, key: Key
    ) -> tuple[Float[Array, " batch"], Float[Array, " batch"]]:
        """``E[min_j q_j(s, a)]`` and ``E[-log pi(a|s)]``, differentiable in the policy."""
        ...

    def sample(self, dist_params: PyTree, key: Key) -> Shaped[Array, "batch ..."]:
        """Members of the space."""
        ...

    def mode(self, dist_params: PyTree) -> Shaped[Array, "batch ..."]:
        """Members of the space."""
        ...

    def random(self, key: Key, batch_size: int) -> Shaped[Array, "batch ..."]:
        """Members of the space, uniform."""
        ...


class SquashedGaussianActions:
    """Of a bounded ``Box``: one sample stands for the expectation.

    Densities are those of actions scaled to [-1, 1], so that neither units nor bounds matter to temperatures; the
    target entropy is minus the number of components (Haarnoja et al. 2018, arXiv:1812.05905, appendix D).
    """

    def __init__(self, env: Any, who: str) -> None:
        self._env, self._box = env, UnitBox(env.action_space, who)
        self._unit_env = self._box.standing_in(env)
        self._dist = SquashedNormalDist(self._unit_env.action_space, clip_logvar=LOGVAR_RANGE)
        self.target_entropy = -float(math.prod(env.action_space.shape))

    def actor(self, network: Factory | None, hidden: tuple[int, ...]) -> tuple[Factory, Policy]:
        """What makes an actor, and a policy of it."""
        network = network or actor_network(self._env, GaussianActor, hidden, self._env.action_space.shape)
        return network, Policy(network, self._unit_env, proba_dist=self._dist, random_seed=0)

    def critic(self, network: Factory | None, hidden: tuple[int, ...]) -> tuple[Factory, Q]:
        """What makes a critic, and a q-function of it."""
        return box_critic(self._env, self._box, network, hidden)

    def value_and_entropy(
        self, dist_params: PyTree, values: Values, key: Key
    ) -> tuple[Float[Array, " batch"], Float[Array, " batch"]]:
        """The smallest value, and the entropy."""
        action, log_prob = self._dist.sample_with_log_proba(dist_params, key)
        return jnp.min(values(action), axis=0), -log_prob

    def sample(self, dist_params: PyTree, key: Key) -> Float[Array, "batch ..."]:
        """Drawn from the policy."""
        return self._box.from_unit(self._dist.sample(dist_params, key))

    def mode(self, dist_params: PyTree) -> Float[Array, "batch ..."]:
        """The median ones."""
        return self._box.from_unit(self._dist.mode(dist_params))

    def random(self, key: Key, batch_size: int) -> Float[Array, "batch ..."]:
        """Uniform ones."""
        return self._box.from_unit(self._box.random(key, batch_size))


class CategoricalActions:
    """Of ``Discrete`` actions: expectations are exact sums (Christodoulou 2019, arXiv:1910.07207).

    The target entropy is 98 % of the largest one.
    """

    def __init__(self, env: Any, who: str) -> None:
        self._env, self._dist = env, CategoricalDist(env.action_space)
        self._n, self._first = int(env.action_space.n), int(env.action_space.start)
        self.target_entropy = 0.98 * math.log(self._n)

    def actor(self, network: Factory | None, hidden: tuple[int, ...]) -> tuple[Factory, Policy]:
        """What makes an actor, and a policy of it."""
        network = network or actor_network(self._env, CategoricalActor, hidden, (self._n,))
        return network, Policy(network, self._env, proba_dist=self._dist, random_seed=0)

    def critic(self, network: Factory | None, hidden: tuple[int, ...]) -> tuple[Factory, Q]:
        """What makes a critic, and a q-function of it."""
        network = network or action_network(self._env, ActionValueNetwork, hidden)
        return network, Q(network, self._env, random_seed=0)

    def value_and_entropy(
        self, dist_params: PyTree, values: Values, key: Key
    ) -> tuple[Float[Array, " batch"], Float[Array, " batch"]]:
        """The smallest value, and the entropy."""
        smallest = jnp.min(values(None), axis=0)
        return jnp.sum(self._dist.mean(dist_params) * smallest, axis=-1), self._dist.entropy(dist_params)

    def sample(self, dist_params: PyTree, key: Key) -> Int[Array, " batch"]:
        """Drawn from the policy."""
        return self._member(random.categorical(key, dist_params["logits"]))

    def mode(self, dist_params: PyTree) -> Int[Array, " batch"]:
        """The most probable ones."""
        return self._member(jnp.argmax(dist_params["logits"], axis=-1))

    def random(self, key: Key, batch_size: int) -> Int[Array, " batch"]:
        """Uniform ones."""
        return self._member(random.randint(key, (batch_size,), 0, self._n))

    def _member(self, index: Int[Array, " batch"]) -> Int[Array, " batch"]:
        return index.astype(jnp.int32) + self._first


def box_critic(env: Any, box: UnitBox, network: Factory | None, hidden: tuple[int, ...]) -> tuple[Factory, Q]:
    """What makes a critic of scaled actions, and a q-function of it."""
    network = network or action_value_critic(env, hidden)
    return network, Q(network, env, action_preprocessor=box.to_unit, random_seed=0)


def stochastic_actions(env: Any, who: str) -> StochasticActions:
    """What fits the action space of ``env``.

    Raises:
        TypeError: it is neither ``Discrete`` nor a bounded ``Box`` of floats.
    """
    refuse_unmade_env(who, env)
    return _by_space(env.action_space, env, who)


@functools.singledispatch
def _by_space(space: Any, env: Any, who: str) -> StochasticActions:
    raise TypeError(
        f"{who}: needs a Discrete action space or a bounded Box of floats; got {space}."
        " Flatten a composite one with a wrapper."
    )


@_by_space.register
def _(space: Box, env: Any, who: str) -> StochasticActions:
    return SquashedGaussianActions(env, who)


@_by_space.register
def _(space: Discrete, env: Any, who: str) -> StochasticActions:
    return CategoricalActions(env, who)
