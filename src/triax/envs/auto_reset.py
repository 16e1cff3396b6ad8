"""AutoReset: episode after episode, each from a fresh draw, with every final observation kept."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from triax.core import random
from triax.core.keys import Key, fold_name
from triax.env_protocol import EnvWrapper, State, restart
from triax.envs.adapt import adapt


class AutoResetInner(NamedTuple):
    """What the wrapper keeps in ``State.inner``: its own key, and what was there."""

    rng: Key
    env: PyTree


class AutoReset(EnvWrapper):
    """Where a step ends an episode, the state it returns begins the next one, drawn with a fresh key.

    ``obs``, ``info`` and ``inner`` are then the new episode's; ``reward``, ``terminated``, ``truncated``,
    ``final_obs`` and ``metrics`` stay those of the step. So ``done`` says that ``obs`` begins an episode, and
    ``final_obs`` is what the action led to, always.

    Args:
        env: any JAX environment that does not reset itself; it goes through :func:`triax.envs.adapt`.
        lazy: compute a reset only in steps where an episode ends, for one environment or any of those in a
            ``vmap``, instead of in every step. Pays where resets are costly and ends are rare. ``None``: on a CPU,
            where looking at the condition costs nothing (of Pendulum's steps it saves half).
    """

    resets_itself = True
    """What wrappers look for that must be inside, not outside."""

    def __init__(self, env: Any, *, lazy: bool | None = None):
        if getattr(env, "resets_itself", False):
            raise ValueError(f"AutoReset: {env} resets itself already.")
        super().__init__(adapt(env))
        self.lazy = lazy

    def reset(self, rng: Key) -> State:
        """The first state of all; ``rng`` also draws the resets to come."""
        return self._begin(self.env.reset, rng)

    def restart(self, rng: Key) -> State:
        """The first state of all where that is no training's: its episode is as all later ones."""
        return self._begin(self.env.restart, rng)

    def _begin(self, first: Callable[[Key], State], rng: Key) -> State:
        state = first(fold_name(rng, "first_episode"))
        return state.replace(inner=AutoResetInner(fold_name(rng, "later_episodes"), state.inner))

    def step(self, state: State, action: Any) -> State:
        """The state after ``action``, which begins a new episode if the old one has ended."""
        rng, reset_rng = random.split(state.inner.rng)
        no = jnp.zeros_like(state.terminated)
        stepped = self.env.step(state.replace(terminated=no, truncated=no, inner=state.inner.env), action)
        lazy = jax.default_backend() == "cpu" if self.lazy is None else self.lazy
        choose = _lazily if lazy else _eagerly
        obs, info, inner = choose(self._new_episode)(stepped.done, reset_rng, _of_episode(stepped))
        return stepped.replace(obs=obs, info=info, inner=AutoResetInner(rng, inner))

    def _new_episode(self, rng: Key) -> tuple[PyTree, PyTree, PyTree]:
        return _of_episode(restart(self.env, rng))

    @property
    def render(self) -> Any:
        """``render(states, **kwargs)`` of ``env``, for a sequence of this wrapper's states."""
        render = self.env.render
        return lambda states, **kwargs: render([s.replace(inner=s.inner.env) for s in states], **kwargs)


def resetting(env: Any) -> Any:
    """The environment if it resets itself, else wrapped in :class:`AutoReset`."""
    return env if getattr(env, "resets_itself", False) else AutoReset(env)


def _of_episode(state: State) -> tuple[PyTree, PyTree, PyTree]:
    """What belongs to the running episode, not to the step."""
    return state.obs, state.info, state.inner


def _eagerly(reset: Any) -> Any:
    """``f(done, rng, old)``: ``reset(rng)`` where ``done``, else ``old``; computes both."""
    return lambda done, rng, old: _where(done, reset(rng), old)


def _lazily(reset: Any) -> Any:
    """The same, without computing ``reset`` where no one is done.

    A ``cond`` under ``vmap`` becomes a ``select`` of both branches, hence the batching rule.
    """

    @jax.custom_batching.custom_vmap
    def choose(done: Any, rng: Any, old: Any) -> Any:
        return jax.lax.cond(done, lambda: reset(rng), lambda: old)

    @choose.def_vmap
    def _(axis_size: int, in_batched: Any, done: Any, rng: Any, old: Any) -> Any:
        done, rng, old = jax.tree.map(
            lambda is_batched, leaf: leaf if is_batched else jnp.broadcast_to(leaf, (axis_size, *leaf.shape)),
            tuple(in_batched),
            (done, rng, old),
        )
        chosen = jax.lax.cond(jnp.any(done), lambda: jax.vmap(_eagerly(reset))(done, rng, old), lambda: old)
        return chosen, jax.tree.map(lambda _: True, chosen)

    return choose


def _where(done: Any, new: PyTree, old: PyTree) -> PyTree:
    return jax.tree.map(lambda x, y: jnp.where(done, x, y), new, old)
