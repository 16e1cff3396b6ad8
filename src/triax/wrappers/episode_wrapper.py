"""EpisodeWrapper: a time limit for JAX environments."""

from typing import Any

import jax.numpy as jnp

from triax.core import random
from triax.core.keys import Key, fold_name
from triax.env_protocol import EnvWrapper, cut_episode, restart


class EpisodeWrapper(EnvWrapper):
    """Truncates episodes after ``max_len`` steps; an episode that terminates in that step is not truncated.

    States stay of the kind that ``env`` has, with ``info["step_counter"]`` (int32, steps so far) and
    ``info["truncated"]`` (bool) in addition.

    Args:
        env: a JAX environment that does not reset itself.
        max_len: steps per episode.
        desynchronize: ``reset`` begins with a step counter drawn from ``[0, max_len // 2)``, so that parallel
            environments do not all end together. Only a training's first episodes should be cut short so:
            ``restart``, which :class:`triax.envs.AutoReset` uses for all later ones, begins at 0. Evaluate
            with ``restart`` or ``desynchronize=False``.
    """

    def __init__(self, env: Any, max_len: int, *, desynchronize: bool = True):
        super().__init__(env)
        if not isinstance(max_len, int) or isinstance(max_len, bool) or max_len < 1:
            raise ValueError(f"EpisodeWrapper: max_len must be a positive int; got {max_len!r}.")
        if getattr(env, "resets_itself", False):
            raise ValueError(
                f"EpisodeWrapper: {env} resets itself, unlimited. Try AutoReset(EpisodeWrapper(env, ...))."
            )
        self.max_len = max_len
        self.desynchronize = desynchronize

    def reset(self, rng: Key) -> Any:
        """The first state of an episode; with ``desynchronize`` some of its steps count as done."""
        if not self.desynchronize:
            return self.restart(rng)
        count = random.randint(fold_name(rng, "step_counter"), (), 0, max(1, self.max_len // 2), jnp.int32)
        return _counted(self.env.reset(fold_name(rng, "env")), count)

    def restart(self, rng: Key) -> Any:
        """The first state of a whole episode."""
        return _counted(restart(self.env, fold_name(rng, "env")), jnp.zeros((), jnp.int32))

    def step(self, state: Any, action: Any) -> Any:
        """The state after ``action``; ``done`` has the dtype that it had in ``state``."""
        count = state.info["step_counter"] + 1
        following = self.env.step(state, action)
        following = following.replace(info={**following.info, "step_counter": count})
        return cut_episode(following, count >= self.max_len, like=state)


def _counted(state: Any, count: Any) -> Any:
    return state.replace(info={**state.info, "step_counter": count, "truncated": jnp.zeros((), jnp.bool_)})
