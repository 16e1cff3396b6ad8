"""What agents have in common that make several updates from each rollout: their options, and what updates read."""

from typing import Any

import optax

from triax.agents.descent import Descent
from triax.agents.interface import Rollout
from triax.agents.logging_level import checked_percentiles
from triax.core.numbers import check_count, check_number
from triax.core.sharding import num_shards
from triax.learning.learner import Loss


def settle_updates(config: Any) -> None:
    """Check the fields that configs of such agents share; percentiles become floats.

    Raises:
        TypeError: a number is none.
        ValueError: a number is out of range.
    """
    who = type(config).__name__
    check_number(who, "learning_rate", config.learning_rate, positive=True)
    if config.gradient_clipping is not None:
        check_number(who, "gradient_clipping", config.gradient_clipping, positive=True)
    if config.weight_decay is not None and not isinstance(config.weight_decay, bool):
        check_number(who, "weight_decay", config.weight_decay, low=0)
    for name in ("n_epochs", "n_minibatches"):
        check_count(who, name, getattr(config, name))
    object.__setattr__(config, "logging_percentiles", checked_percentiles(who, config.logging_percentiles))


def descent_of(loss: Loss, config: Any, optimizer: optax.GradientTransformation | None) -> Descent:
    """Steps down ``loss`` as the config says, or by the given optimizer."""
    # ``True`` is optax's default.
    decay = 1e-4 if config.weight_decay is True else float(config.weight_decay or 0.0)
    return Descent(loss, config.gradient_clipping, weight_decay=decay, optimizer=optimizer)


def check_minibatches(who: str, rollout: Rollout, n_minibatches: int) -> None:
    """``ValueError`` unless the environments can be divided into so many parts, and each of them over all devices."""
    num_envs, shards = rollout.starts.shape[0], num_shards()
    if num_envs % n_minibatches:
        raise ValueError(
            f"{who}: the number of environments must be a multiple of n_minibatches; got {num_envs} and "
            f"{n_minibatches}."
        )
    if num_envs // n_minibatches % shards:
        each = n_minibatches * shards
        raise ValueError(
            f"{who}: a minibatch must be split evenly over {shards} devices, so that the number of environments must be"
            f" a multiple of n_minibatches * devices = {each}; got {num_envs}. Try {-(-num_envs // each) * each}"
            " environments, or fewer devices."
        )


def read_by_updates(rollout: Rollout) -> Rollout:
    """The rollout without what no update reads, so that minibatches do not copy it."""
    extras = rollout.extras._replace(metrics=())
    unread = {"reward": (), "action": (), "next_observation": (), "last_carry": (), "metrics": ()}
    return rollout._replace(extras=extras, **unread)
