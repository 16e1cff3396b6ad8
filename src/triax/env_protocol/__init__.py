"""What a JAX environment is: its interface, its state, how its episodes end, and a base for wrappers."""

from triax.env_protocol.flags import cut_episode, episode_flags
from triax.env_protocol.interface import EnvState, RLEnv, check_env, restart
from triax.env_protocol.state import State, canonical, conform
from triax.env_protocol.wrapper import EnvWrapper

__all__ = [
    "EnvState",
    "EnvWrapper",
    "RLEnv",
    "State",
    "canonical",
    "check_env",
    "conform",
    "cut_episode",
    "episode_flags",
    "restart",
]
