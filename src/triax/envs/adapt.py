"""The border through which JAX environments of any make come in, with states settled by ``State``."""

import functools
from typing import Any

import gymnasium
import jax
import numpy as np

from triax.core.keys import Key, make_key
from triax.env_protocol import EnvState, EnvWrapper, State, canonical, check_env, conform, episode_flags, restart
from triax.envs.observation_spaces import space_of_shapes


def adapt(
    env: Any,
    *,
    observation_space: gymnasium.Space | None = None,
    action_space: gymnasium.Space | None = None,
) -> "AdaptedEnv | NativeEnv":
    """A JAX environment whose states are :class:`~triax.env_protocol.State` of settled dtypes, with spaces.

    Args:
        env: ``reset(rng)`` and ``step(state, action)``, with states that are ``State`` or any
            :class:`~triax.env_protocol.EnvState`: of MuJoCo Playground, of Brax, or your own. It must not
            reset itself: that hides final observations.
        observation_space: ``None`` takes ``env.observation_space``, or else boxes without bounds of what
            ``reset`` returns.
        action_space: ``None`` takes ``env.action_space``, or else ``Box(-1, 1, (env.action_size,))``.

    Raises ``TypeError`` when ``env`` or its states are not such, ``ValueError`` when it resets itself, and
    from a step ``ValueError`` when structure, shapes or dtypes are not those of ``reset``.
    """
    if isinstance(env, (AdaptedEnv, NativeEnv)) and observation_space is None and action_space is None:
        return env
    check_env("adapt", env)
    kind = NativeEnv if isinstance(jax.eval_shape(env.reset, make_key(0)), State) else AdaptedEnv
    return kind(env, observation_space=observation_space, action_space=action_space)


class _SpacedEnv(EnvWrapper):
    """A JAX environment that shows Gymnasium spaces."""

    def __init__(
        self,
        env: Any,
        *,
        observation_space: gymnasium.Space | None = None,
        action_space: gymnasium.Space | None = None,
    ):
        super().__init__(env)
        self._spaces = {"observation_space": observation_space, "action_space": action_space}

    @functools.cached_property
    def observation_space(self) -> gymnasium.Space:
        """The given one, that of ``env``, or boxes without bounds around what ``reset`` returns."""
        declared = self._declared("observation_space")
        return space_of_shapes(self._shapes.obs) if declared is None else declared

    @functools.cached_property
    def action_space(self) -> gymnasium.Space:
        """The given one, that of ``env``, or ``Box(-1, 1, (env.action_size,))``."""
        declared = self._declared("action_space")
        if declared is not None:
            return declared
        size = getattr(self.env, "action_size", None)
        if not isinstance(size, (int, np.integer)):
            raise TypeError(
                f"{type(self.env).__name__}: its actions are unknown: action_space is missing and action_size is "
                f"{size!r}, no int. Try triax.envs.adapt(env, action_space=...)."
            )
        return gymnasium.spaces.Box(-1.0, 1.0, (int(size),), np.float32)

    @functools.cached_property
    def _shapes(self) -> Any:
        return jax.eval_shape(self.reset, make_key(0))

    def _declared(self, name: str) -> gymnasium.Space | None:
        space = self._spaces[name]
        if space is None:
            space = getattr(self.env, name, None)
        return space if isinstance(space, gymnasium.Space) else None


def declared_action_space(env: Any) -> gymnasium.Space | None:
    """The action space that somebody declared, through all wrappers; ``None`` where it could only be guessed."""
    if isinstance(env, _SpacedEnv):
        given = env._spaces["action_space"]
        return declared_action_space(env.env) if given is None else given
    if isinstance(env, EnvWrapper) and "action_space" not in vars(env) and not hasattr(type(env), "action_space"):
        return declared_action_space(env.env)
    space = getattr(env, "action_space", None)
    return space if isinstance(space, gymnasium.Space) else None


class NativeEnv(_SpacedEnv):
    """An environment whose states are :class:`~triax.env_protocol.State` already; dtypes are settled."""

    def reset(self, rng: Key) -> State:
        """The first state of an episode."""
        return canonical(self.env.reset(rng))

    def restart(self, rng: Key) -> State:
        """The first state of an episode that is not a training's first."""
        return canonical(restart(self.env, rng))

    def step(self, state: State, action: Any) -> State:
        """The state after ``action``."""
        return conform(state, self.env.step(state, action))


class AdaptedEnv(_SpacedEnv):
    """An environment with states of its own, which ``inner`` holds; ``info`` and ``metrics`` are theirs."""

    def reset(self, rng: Key) -> State:
        """The first state of an episode."""
        return self._first(self.env.reset(rng))

    def restart(self, rng: Key) -> State:
        """The first state of an episode that is not a training's first."""
        return self._first(restart(self.env, rng))

    def step(self, state: State, action: Any) -> State:
        """The state after ``action``; ``done`` and how it is told are read by ``episode_flags``."""
        before = jax.tree.map(lambda leaf: leaf, state.inner)  # Brax writes into the dicts that it is given
        after = self.env.step(before, action)
        terminated, truncated = episode_flags(after)
        return state.next(
            after.obs,
            after.reward,
            terminated,
            after.replace(done=(terminated | truncated).astype(state.inner.done.dtype)),
            truncated=truncated,
            info=after.info,
            metrics=after.metrics,
        )

    @property
    def render(self) -> Any:
        """``render(states, **kwargs)`` of ``env``, for a sequence of this environment's states."""
        render = self.env.render
        return lambda states, **kwargs: render([_drawable(state.inner) for state in states], **kwargs)

    def _first(self, state: Any) -> State:
        if not isinstance(state, EnvState):
            lacking = [name for name in ("obs", "reward", "done", "info", "metrics") if not hasattr(state, name)]
            raise TypeError(
                f"{type(self.env).__name__}: reset must return a state with obs, reward, done, info and metrics; "
                f"got {type(state).__name__} without {', '.join(lacking)}. Try triax.envs.State.first(obs)."
            )
        self_resetting = [key for key in state.info if str(key).endswith("first_obs")]
        if self_resetting:
            raise ValueError(
                f"{type(self.env).__name__}: resets itself to a first state that it kept (info has "
                f"{self_resetting[0]!r}), which hides final observations. Try it without its AutoResetWrapper, as "
                "in brax.envs.create(name, auto_reset=False): triax.envs.AutoReset draws fresh episodes."
            )
        return State.first(state.obs, state, reward=state.reward, info=state.info, metrics=state.metrics)


def _drawable(state: Any) -> Any:
    """What ``render`` of the environment takes: Brax draws its pipeline states, others their states."""
    return getattr(state, "pipeline_state", state)
