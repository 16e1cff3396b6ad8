"""Statistics of the episodes that a loop runs, kept where it runs."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from triax.core.debugging import no_number


class Episodes(NamedTuple):
    """Returns and lengths of the episodes under way, and sums over those that ended: of each environment.

    What is of all environments is formed in ``report`` alone, so that a step asks nothing of other devices.
    """

    running: Float[Array, " envs"]
    steps: Int[Array, " envs"]
    ended: Float[Array, " envs"]
    returns: Float[Array, " envs"]
    lengths: Float[Array, " envs"]

    @classmethod
    def begin(cls, num_envs: int) -> "Episodes":
        """Nothing yet."""
        zeros = (jnp.zeros(num_envs, jnp.float32) for _ in range(3))
        return cls(jnp.zeros(num_envs, jnp.float32), jnp.zeros(num_envs, jnp.int32), *zeros)

    def after(
        self, reward: Float[Array, " envs"], done: Bool[Array, " envs"], taken: Bool[Array, " envs"] | None = None
    ) -> "Episodes":
        """After one more step of all environments, or of those where it was ``taken``."""
        one = 1
        if taken is not None:
            reward, done, one = jnp.where(taken, reward, 0.0), done & taken, taken.astype(jnp.int32)
        running, steps = self.running + reward, self.steps + one
        return Episodes(
            jnp.where(done, 0.0, running),
            jnp.where(done, 0, steps),
            self.ended + done,
            self.returns + jnp.where(done, running, 0.0),
            self.lengths + jnp.where(done, steps, 0),
        )

    def dropped(self) -> "Episodes":
        """With nothing of the episodes under way, which will not go on."""
        return self._replace(running=jnp.zeros_like(self.running), steps=jnp.zeros_like(self.steps))

    def report(self) -> tuple[dict[str, Array], "Episodes"]:
        """``episodes``, and their mean ``return`` and ``length``, :func:`no_number` without any; and sums that start
        anew.
        """
        zero = jnp.zeros_like(self.ended)
        ended, returns, lengths = (jnp.sum(each) for each in (self.ended, self.returns, self.lengths))
        means = {"return": returns, "length": lengths}
        report = {name: jnp.where(ended > 0, x / jnp.maximum(ended, 1), no_number()) for name, x in means.items()}
        report = {"episodes": ended, **report}
        return report, self._replace(ended=zero, returns=jnp.copy(zero), lengths=jnp.copy(zero))
