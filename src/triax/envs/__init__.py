"""Environments: by name, adapters of JAX environments, Connect Four, and episodes to look at."""

from triax.env_protocol import EnvState, EnvWrapper, RLEnv, State
from triax.envs.adapt import AdaptedEnv, NativeEnv, adapt
from triax.envs.auto_reset import AutoReset, resetting
from triax.envs.connect_four import ConnectFourEnv
from triax.envs.gymnax_env import GymnaxEnv
from triax.envs.making import make
from triax.envs.registration import register_environments
from triax.envs.rendering import generate_gif, render_episode

__all__ = [
    "AdaptedEnv",
    "AutoReset",
    "ConnectFourEnv",
    "EnvState",
    "EnvWrapper",
    "GymnaxEnv",
    "NativeEnv",
    "RLEnv",
    "State",
    "adapt",
    "generate_gif",
    "make",
    "register_environments",
    "render_episode",
    "resetting",
]
