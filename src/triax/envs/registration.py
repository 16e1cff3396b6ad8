"""Names for ``gymnasium.make``, registered when you say so."""

import gymnasium
from gymnasium.envs.registration import EnvSpec

REGISTERED_BY_TRIAX = {
    spec.id: spec
    for spec in (
        EnvSpec("ConnectFour-v0", entry_point="triax.envs.connect_four:ConnectFourEnv"),
        EnvSpec(
            "FrozenLakeNonSlippery-v0",
            entry_point="gymnasium.envs.toy_text.frozen_lake:FrozenLakeEnv",
            kwargs={"map_name": "4x4", "is_slippery": False},
            max_episode_steps=20,
            reward_threshold=0.99,
        ),
    )
}
"""What :func:`register_environments` registers, by name."""


def register_environments() -> None:
    """Registers ``ConnectFour-v0`` and ``FrozenLakeNonSlippery-v0`` with Gymnasium; again is harmless.

    The second is the 4x4 lake without slipping, with a time limit of 20 steps and a reward threshold of 0.99.
    Raises ``ValueError``, and registers nothing, when another package holds one of the names.
    """
    for name, spec in REGISTERED_BY_TRIAX.items():
        held = gymnasium.registry.get(name)
        if held is not None and held.entry_point != spec.entry_point:
            raise ValueError(
                f"register_environments: {name} is registered already, with the entry point {held.entry_point}. "
                "Try gymnasium.registry.pop of that name first."
            )
    for name, spec in REGISTERED_BY_TRIAX.items():
        if name not in gymnasium.registry:
            gymnasium.register(
                name,
                entry_point=spec.entry_point,
                kwargs=dict(spec.kwargs),
                max_episode_steps=spec.max_episode_steps,
                reward_threshold=spec.reward_threshold,
            )
