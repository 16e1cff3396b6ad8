"""What ``print`` tells of a loop: how many environments and seeds, how far it came, its agent and config."""

from typing import Any

from triax.agents.description import describe_config
from triax.functions.description import describe_function


def describe_device_loop(name: str, made_of: Any) -> str:
    """Of a loop whose state is the caller's; its environment is named without wrappers."""
    env = made_of.env
    while hasattr(env, "env"):
        env = env.env
    facts = [f"{_count(made_of.config.num_envs, 'environment')} {type(env).__name__}"]
    facts += [] if made_of.num_seeds is None else [_count(made_of.num_seeds, "seed")]
    return _describe(name, facts, made_of)


def describe_vector_loop(loop: Any, taken: int | None) -> str:
    """Of a loop that has its state, with the steps taken; ``None`` before there is one."""
    progress = "not begun" if taken is None else f"{_count(taken, 'step')} taken"
    return _describe(type(loop).__name__, [_count(loop.config.num_envs, "environment"), progress], loop)


def _describe(name: str, facts: list[str], made_of: Any) -> str:
    return describe_function(name, facts, {"agent": made_of.agent, "config": describe_config(made_of.config)})


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
