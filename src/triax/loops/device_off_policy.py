"""Off-policy learning as one compiled program: environments, replay and updates on the device."""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from triax.agents.off_policy import PRIORITIES, OffPolicyAgent
from triax.core.keys import Key, fold_name
from triax.core.numbers import check_count
from triax.env_protocol import State
from triax.envs import AutoReset
from triax.loops.device_replay import Cursor, DeviceReplay, Experience, Stored


@dataclass(frozen=True)
class OffPolicyConfig:
    """How experience is gathered."""

    num_envs: int = 1
    """Environments that act side by side."""
    capacity: int = 131_072
    """Transitions that replay keeps."""
    warm_up: int = 1_000
    """Transitions gathered before the first update; rounded up to steps of all environments."""
    steps_per_iteration: int = 1
    """Steps of all environments ..."""
    updates_per_iteration: int = 1
    """... before so many updates."""

    def __post_init__(self) -> None:
        for name in ("num_envs", "capacity", "warm_up", "steps_per_iteration", "updates_per_iteration"):
            check_count("OffPolicyConfig", name, getattr(self, name))


class Episodes(NamedTuple):
    """Returns and lengths: of the episodes under way ``[num_envs]``, and sums over those that ended."""

    running: Float[Array, " envs"]
    steps: Int[Array, " envs"]
    ended: Float[Array, ""]
    returns: Float[Array, ""]
    lengths: Float[Array, ""]

    @classmethod
    def begin(cls, num_envs: int) -> "Episodes":
        """Nothing yet."""
        zeros = (jnp.zeros((), jnp.float32) for _ in range(3))
        return cls(jnp.zeros(num_envs, jnp.float32), jnp.zeros(num_envs, jnp.int32), *zeros)

    def after(self, envs: State) -> "Episodes":
        """After one more step of all environments."""
        running, steps, done = self.running + envs.reward, self.steps + 1, envs.done
        return Episodes(
            jnp.where(done, 0.0, running),
            jnp.where(done, 0, steps),
            self.ended + jnp.sum(done),
            self.returns + jnp.sum(jnp.where(done, running, 0.0)),
            self.lengths + jnp.sum(jnp.where(done, steps, 0)),
        )

    def report(self) -> tuple[dict[str, Array], "Episodes"]:
        """``episodes``, and their mean ``return`` and ``length``, NaN without any; and sums that start anew."""
        zero = jnp.zeros_like(self.ended)
        report = {"episodes": self.ended, "return": self.returns / self.ended, "length": self.lengths / self.ended}
        return report, self._replace(ended=zero, returns=jnp.copy(zero), lengths=jnp.copy(zero))


class OffPolicyState(NamedTuple):
    """Everything that changes: a pytree to donate, to keep, to restore."""

    agent: PyTree
    envs: State
    carry: PyTree
    """The memory that acts next."""
    stored: Stored
    cursor: Cursor
    episodes: Episodes
    key: Key


class DeviceOffPolicy:
    """Runs an off-policy agent with a JAX environment in one donated, compiled program.

    ``init`` fills replay with the warm-up; ``run`` learns. Each compiles once, ``run`` once for each number of
    iterations.

    Args:
        env: a JAX environment with Gymnasium spaces; it is wrapped in ``AutoReset`` unless it resets itself.
        agent: an ``OffPolicyAgent``.
        config: how experience is gathered.
        num_seeds: run so many seeds at once; states, keys and metrics then have a leading axis ``[num_seeds]``, save
            the cursor of replay, which they share.

    Raises:
        ValueError: the warm-up gives no window to learn from, or replay cannot hold it.
    """

    def __init__(
        self, env: Any, agent: OffPolicyAgent, config: OffPolicyConfig | None = None, *, num_seeds: int | None = None
    ) -> None:
        self.config = config = config or OffPolicyConfig()
        self.env = env if getattr(env, "resets_itself", False) else AutoReset(env)
        self.agent, self.num_seeds = agent, num_seeds
        needs = agent.replay
        self.replay = DeviceReplay(
            config.capacity,
            config.num_envs,
            needs.window,
            gamma=needs.gamma,
            sequences=needs.sequences,
            burn_in=needs.burn_in,
            alpha=needs.alpha,
            beta=needs.beta,
        )
        self._warm_up_steps = -(-config.warm_up // config.num_envs)
        if self._warm_up_steps < needs.window:
            raise ValueError(
                f"DeviceOffPolicy: warm_up must give windows of {needs.window} steps in {config.num_envs} environments,"
                f" at least {needs.window * config.num_envs} transitions; got {config.warm_up}."
            )
        init, run = self._init, self._run
        if num_seeds is not None:
            axes = OffPolicyState(0, 0, 0, 0, None, 0, 0)  # type: ignore[arg-type]
            init = jax.vmap(init, out_axes=axes)
            run = lambda state, n: jax.vmap(partial(self._run, n=n), in_axes=(axes,), out_axes=(axes, 0))(state)  # noqa: E731
        self._jitted_init = jax.jit(init)
        self._jitted_run = jax.jit(run, static_argnums=1, donate_argnums=0)

    # ------------------------------------------------------------------ the shell

    def init(self, key: Key) -> OffPolicyState:
        """The state after the warm-up; ``key`` is one key, or one for each seed."""
        return self._jitted_init(key)

    def run(self, state: OffPolicyState, iterations: int) -> tuple[OffPolicyState, dict[str, Array]]:
        """``(state, metrics)`` after so many iterations; the old state is used up.

        Metrics are means over all updates, with ``episodes``, ``return`` and ``length`` of the episodes that ended.
        """
        return self._jitted_run(state, iterations)

    # ------------------------------------------------------------------ pure

    def _init(self, key: Key) -> OffPolicyState:
        config, agent = self.config, self.agent
        state = agent.init(fold_name(key, "agent"))
        envs = jax.vmap(self.env.reset)(jax.random.split(fold_name(key, "envs"), config.num_envs))
        carry = agent.initial_carry(state, config.num_envs, fold_name(key, "carry"))
        example = jax.eval_shape(lambda: self._act(state, envs, carry, key)[0])
        stored, cursor = self.replay.init(example)
        begun = Episodes.begin(config.num_envs)
        whole = OffPolicyState(state, envs, carry, stored, cursor, begun, fold_name(key, "run"))
        return jax.lax.scan(lambda s, _: (self._step(s), None), whole, length=self._warm_up_steps)[0]

    def _run(self, state: OffPolicyState, n: int) -> tuple[OffPolicyState, dict[str, Array]]:
        state, metrics = jax.lax.scan(lambda s, _: self._iterate(s), state, length=n)
        report, episodes = state.episodes.report()
        return state._replace(episodes=episodes), {**jax.tree.map(jnp.mean, metrics), **report}

    def _iterate(self, state: OffPolicyState) -> tuple[OffPolicyState, dict[str, Array]]:
        """Some steps, then some updates."""
        state = _repeat(self._step, state, self.config.steps_per_iteration)
        if self.config.updates_per_iteration == 1:
            return self._update(state)
        update = lambda s, _: self._update(s)  # noqa: E731
        state, metrics = jax.lax.scan(update, state, length=self.config.updates_per_iteration)
        return state, jax.tree.map(jnp.mean, metrics)

    def _step(self, state: OffPolicyState) -> OffPolicyState:
        """One step of all environments, stored."""
        key, rng_act, rng_carry = jax.random.split(state.key, 3)
        experience, envs, carry = self._act(state.agent, state.envs, state.carry, rng_act)
        carry = self.agent.reset_carry(state.agent, carry, envs.done, rng_carry)
        stored, cursor = self.replay.add(state.stored, state.cursor, experience)
        episodes = state.episodes.after(envs)
        return OffPolicyState(state.agent, envs, carry, stored, cursor, episodes, key)

    def _act(self, agent: PyTree, envs: State, carry: PyTree, rng: Key) -> tuple[Experience, State, PyTree]:
        action, next_carry, _ = self.agent.act(agent, envs.obs, carry, rng)
        following = jax.vmap(self.env.step)(envs, action)
        experience = Experience(
            observation=envs.obs,
            action=action,
            reward=following.reward,
            terminated=following.terminated,
            truncated=following.truncated,
            next_observation=following.final_obs,
            carry=carry,
        )
        return experience, following, next_carry

    def _update(self, state: OffPolicyState) -> tuple[OffPolicyState, dict[str, Array]]:
        """One update of the agent from replay."""
        key, rng_sample, rng_learn = jax.random.split(state.key, 3)
        needs = self.agent.replay
        index, weights = self.replay.starts(state.stored, state.cursor, rng_sample, needs.batch_size)
        batch = self.replay.windows(state.stored, index, weights)
        agent, metrics = self.agent.learn(state.agent, batch, rng_learn)
        stored = state.stored
        if needs.alpha is not None:
            stored = self.replay.set_priorities(stored, index, metrics[PRIORITIES])
        metrics = {name: value for name, value in metrics.items() if name != PRIORITIES}
        return state._replace(agent=agent, stored=stored, key=key), metrics


def _repeat(step: Any, state: OffPolicyState, times: int) -> OffPolicyState:
    if times == 1:
        return step(state)
    return jax.lax.scan(lambda s, _: (step(s), None), state, length=times)[0]
