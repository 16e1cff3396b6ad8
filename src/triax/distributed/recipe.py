"""How processes of a distributed run make their environments and their agent."""

import os
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from triax.agents.off_policy import OffPolicyAgent


@dataclass(frozen=True)
class Recipe:
    """Two functions; Ray pickles them, by value where they are no part of a module."""

    make_env: Callable[[], gymnasium.Env]
    make_agent: Callable[[gymnasium.Env], OffPolicyAgent]
    """For an environment, of which only the spaces are looked at."""

    def __post_init__(self) -> None:
        for name in ("make_env", "make_agent"):
            if not callable(getattr(self, name)):
                raise TypeError(
                    f"Recipe: {name} must be a function, which each process calls; got {getattr(self, name)!r}. Try"
                    " functools.partial(gymnasium.make, 'CartPole-v1')."
                )

    def envs(self, count: int) -> SyncVectorEnv:
        """Environments side by side that reset in the same step."""
        return SyncVectorEnv([self.make_env] * count, autoreset_mode=AutoresetMode.SAME_STEP)

    def agent(self) -> OffPolicyAgent:
        """The agent; the environment that shows it the spaces is closed again."""
        env = self.make_env()
        if not isinstance(env, gymnasium.Env):
            raise TypeError(f"Recipe: make_env must return a gymnasium.Env; got {env!r}.")
        try:
            return self.make_agent(env)
        finally:
            env.close()


def prepare_process(paths: list[str], *, one_thread: bool) -> None:
    """Find the modules that the driver finds; with ``one_thread``, compute on one core of the CPU.

    Must come before the first computation of JAX in the process.
    """
    sys.path.extend(path for path in paths if path not in sys.path)
    if not one_thread:
        return
    os.environ.update(NPROC="1", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_multi_thread_eigen=false".strip()
    import jax

    jax.config.update("jax_platforms", "cpu")


def pickled(value: Any) -> bytes:
    """For a process that must first find the modules that it refers to; ``TypeError`` if it cannot be sent there."""
    from ray import cloudpickle

    try:
        return cloudpickle.dumps(value)  # pyright: ignore[reportPrivateImportUsage]
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        raise TypeError(
            f"ApeX: {type(value).__name__} cannot be sent to other processes: {error}. Its functions must make what"
            " they need, instead of holding it."
        ) from error


def unpickled(value: bytes) -> Any:
    """Undoes ``pickled``."""
    from ray import cloudpickle

    return cloudpickle.loads(value)
