"""Off-policy learning as one compiled program: environments, replay and updates on the device."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from triax.agents.off_policy import OffPolicyAgent
from triax.core import random
from triax.core.keys import Key, fold_name
from triax.core.sealed import Sealed
from triax.core.sharding import (
    Devices,
    check_divides,
    check_placed,
    laid_out,
    mesh_of,
    place,
    same_everywhere,
    tracing_for,
)
from triax.envs import resetting
from triax.loops.description import describe_device_loop
from triax.loops.device_replay import Experience
from triax.loops.off_policy_core import AXES, OffPolicyConfig, OffPolicyCore, OffPolicyState, StepKeys


class DeviceOffPolicy(Sealed):
    """Runs an off-policy agent with a JAX environment in one donated, compiled program.

    ``init`` fills replay with the warm-up; ``run`` learns. Each compiles once.

    Args:
        env: a JAX environment with Gymnasium spaces; it is wrapped in ``AutoReset`` unless it resets itself.
        agent: an ``OffPolicyAgent``.
        config: how experience is gathered.
        num_seeds: run so many seeds at once; states, keys and metrics then have a leading axis ``[num_seeds]``, save
            the cursor of replay, which they share.
        devices: over how many local devices, or over which ones, environments, their part of replay and each batch are
            split: see ``docs/many_devices.md``.

    Raises:
        ValueError: the warm-up gives no window to learn from, or replay cannot hold it; environments or batches cannot
            be split evenly over the devices, or there are not so many.
    """

    made_of = frozenset({"agent", "config", "env", "num_seeds", "replay"})

    def __init__(
        self,
        env: Any,
        agent: OffPolicyAgent,
        config: OffPolicyConfig | None = None,
        *,
        num_seeds: int | None = None,
        devices: Devices = None,
    ) -> None:
        self.config = config = config or OffPolicyConfig()
        self._mesh = mesh_of("DeviceOffPolicy", devices)
        check_divides("DeviceOffPolicy", "num_envs", config.num_envs, self._mesh)
        check_divides("DeviceOffPolicy", "batch_size", agent.replay.batch_size, self._mesh)
        self.env = resetting(env)
        self.agent, self.num_seeds = agent, num_seeds
        self._core = OffPolicyCore.checked("DeviceOffPolicy", agent, config)
        self.replay = self._core.replay
        init, run = self._init, self._run
        if num_seeds is not None:
            axes = OffPolicyState(0, 0, 0, 0, None, 0, 0)  # type: ignore[arg-type]
            init = jax.vmap(init, out_axes=axes)
            run = jax.vmap(run, in_axes=(axes, None), out_axes=(axes, 0))
        self._jitted_init = jax.jit(init)
        self._jitted_run = jax.jit(run, donate_argnums=0)

    def __repr__(self) -> str:
        return describe_device_loop("DeviceOffPolicy", self)

    # ------------------------------------------------------------------ the shell

    def init(self, key: Key) -> OffPolicyState:
        """The state after the warm-up; ``key`` is one key, or one for each seed."""
        with tracing_for(self._mesh):
            return self._jitted_init(place(key, None, self._mesh))

    def place(self, state: OffPolicyState) -> OffPolicyState:
        """A state on the devices of this loop, wherever it was: on others, or in a checkpoint."""
        return place(state, AXES, self._mesh, leading=0 if self.num_seeds is None else 1)

    def run(self, state: OffPolicyState, iterations: int) -> tuple[OffPolicyState, dict[str, Array]]:
        """``(state, metrics)`` after so many iterations; the old state is used up.

        Metrics are means over all updates, with ``episodes``, ``return`` and ``length`` of the episodes that ended.
        """
        check_placed("DeviceOffPolicy", state.key, self._mesh)
        with tracing_for(self._mesh):
            return self._jitted_run(state, np.int32(iterations))

    # ------------------------------------------------------------------ pure

    def _init(self, key: Key) -> OffPolicyState:
        envs = jax.vmap(self.env.reset)(random.split(fold_name(key, "envs"), self.config.num_envs))
        state = laid_out(self._core.begin(key, envs.obs, envs=envs), AXES)
        return jax.lax.scan(lambda s, _: (self._step(s), None), state, length=self.config.warm_up_steps)[0]

    def _run(self, state: OffPolicyState, n: Int[Array, ""]) -> tuple[OffPolicyState, dict[str, Array]]:
        unknown = jax.tree.map(lambda x: jnp.full(x.shape, jnp.nan), jax.eval_shape(self._iterate, state)[1])
        state, means = jax.lax.fori_loop(0, n, self._iterate_and_average, (state, unknown))
        report, episodes = state.episodes.report()
        return laid_out(state._replace(episodes=episodes), AXES), same_everywhere({**means, **report})

    def _iterate_and_average(self, i: Int[Array, ""], carry: tuple) -> tuple:
        """Running means, since a sum of many float32 loses digits."""
        state, metrics = self._iterate(carry[0])
        means = jax.tree.map(lambda mean, x: jnp.where(i == 0, x, mean + (x - mean) / (i + 1)), carry[1], metrics)
        return state, means

    def _iterate(self, state: OffPolicyState) -> tuple[OffPolicyState, dict[str, Array]]:
        """Some steps, then some updates."""
        return self._core.updates(_repeat(self._step, state, self.config.steps_per_iteration))

    def _step(self, state: OffPolicyState) -> OffPolicyState:
        """One step of all environments, stored."""
        keys = StepKeys.of(state.key)
        action, carry, _ = self.agent.act(state.agent, state.envs.obs, state.carry, keys.act)
        following = jax.vmap(self.env.step)(state.envs, action)
        experience = Experience(
            observation=state.envs.obs,
            action=action,
            reward=following.reward,
            terminated=following.terminated,
            truncated=following.truncated,
            next_observation=following.final_obs,
            carry=state.carry,
        )
        return self._core.store(state._replace(envs=following), experience, carry, keys)


def _repeat(step: Any, state: OffPolicyState, times: int) -> OffPolicyState:
    if times == 1:
        return step(state)
    return jax.lax.scan(lambda s, _: (step(s), None), state, length=times)[0]
