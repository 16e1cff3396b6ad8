"""PPO's targets and losses, for trees of rewards, values and actions."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from triax.agents.interface import Rollout
from triax.agents.ppo_config import PPONumbers
from triax.losses import gae, ppo_clip
from triax.networks import PPONetworkOutput

Weight = Float[Array, "time batch"] | None


class Targets(NamedTuple):
    """What a rollout teaches: trees with leaves ``[time, batch]``."""

    advantages: PyTree
    """Like the log-likelihoods."""
    returns: PyTree
    """Like the values."""


def make_targets(
    rollout: Rollout,
    values: PyTree,
    next_values: PyTree,
    log_likelihoods: PyTree,
    *,
    numbers: PPONumbers,
    combine: bool,
) -> Targets:
    """Generalized advantages, and the returns that they make of the values.

    Raises ``ValueError`` where rewards, values and log-likelihoods are trees that do not go together.
    """
    _check_trees(rollout.reward, values, "value estimates", "Give the critic one value for each reward.")

    def one(reward: Array, value: Array, next_value: Array) -> Array:
        flags = rollout.terminated, rollout.truncated
        discount, lambda_ = numbers.discounting_factor, numbers.gae_lambda
        return gae(reward, value, next_value, *flags, discount=discount, lambda_=lambda_)

    advantages = jax.tree.map(one, rollout.reward, values, next_values)
    returns = jax.tree.map(jnp.add, values, advantages)
    if combine:
        total = sum(jax.tree.leaves(advantages))
        advantages = jax.tree.map(lambda _: total, log_likelihoods)
    else:
        advice = "Try combine_advantages=True, which gives every action the sum of all advantages."
        _check_trees(rollout.reward, log_likelihoods, "log-likelihoods", advice)
    return jax.lax.stop_gradient(Targets(advantages, returns))


def _check_trees(reward: PyTree, tree: PyTree, name: str, advice: str) -> None:
    expected, found = jax.tree.structure(reward), jax.tree.structure(tree)
    shapes = [jnp.shape(leaf) for leaf in jax.tree.leaves(reward)], [jnp.shape(leaf) for leaf in jax.tree.leaves(tree)]
    if expected != found or shapes[0] != shapes[1]:
        raise ValueError(
            f"PPO: {name} must be a tree like the rewards, {expected} of shapes {shapes[0]}; got {found} of shapes "
            f"{shapes[1]}. {advice}"
        )


class PPOLosses(NamedTuple):
    """Losses of one minibatch and what is known of it besides; each a scalar or a tree of scalars."""

    total: Float[Array, ""]
    actor: PyTree
    critic: PyTree
    regularization: Float[Array, ""]
    kl: Float[Array, ""]
    """How far the policy has moved from the old one, in nats: an estimate of KL(old || new), summed over actions."""
    clipping_fraction: PyTree
    r2: PyTree
    """Of the critic."""


def ppo_losses(
    output: PPONetworkOutput,
    regularization: Float[Array, "time batch"],
    old: PPONetworkOutput,
    targets: Targets,
    numbers: PPONumbers,
    weight: Weight,
) -> PPOLosses:
    """What today's output on a minibatch costs; ``old`` is what the rollout gave."""

    def actor(new: Array, before: Array, advantage: Array) -> Array:
        return weighted_mean(ppo_clip(new, before, advantage, epsilon=numbers.clip_range), weight)

    def critic(value: Array, before: Array, target: Array) -> Array:
        return 0.5 * weighted_mean(_squared_errors(value, before, target, numbers.value_clip_range), weight)

    def r2(loss: Array, target: Array) -> Array:
        return 1 - 2 * loss / (_variance(target, weight) + 1e-8)

    logs = output.loglikelihoods, old.loglikelihoods
    actors = jax.tree.map(actor, *logs, targets.advantages)
    critics = jax.tree.map(critic, output.value_estimates, old.value_estimates, targets.returns)
    penalty = weighted_mean(regularization, weight)
    total = _total(actors) + numbers.critic_loss_weight * _total(critics) + penalty
    kl = _total(jax.tree.map(lambda new, before: weighted_mean(_kl(new - before), weight), *logs))
    outside = jax.tree.map(lambda new, before: _share_outside(new - before, numbers.clip_range, weight), *logs)
    return PPOLosses(total, actors, critics, penalty, kl, outside, jax.tree.map(r2, critics, targets.returns))


def normalize(advantages: PyTree, weight: Weight) -> PyTree:
    """Each leaf with mean 0 and standard deviation 1 over the steps that count."""

    def one(leaf: Array) -> Array:
        return (leaf - weighted_mean(leaf, weight)) / (jnp.sqrt(_variance(leaf, weight)) + 1e-8)

    return jax.tree.map(one, advantages)


def weighted_mean(x: Float[Array, "time batch"], weight: Weight) -> Float[Array, ""]:
    """The mean over the steps that count; 0 if none does."""
    if weight is None:
        return jnp.mean(x)
    return jnp.sum(jnp.where(weight > 0, x * weight, 0.0)) / jnp.maximum(jnp.sum(weight), jnp.finfo(x.dtype).tiny)


def _variance(x: Array, weight: Weight) -> Array:
    return weighted_mean(jnp.square(x - weighted_mean(x, weight)), weight)


def _squared_errors(value: Array, before: Array, target: Array, clip_range: Array | None) -> Array:
    errors = jnp.square(value - target)
    if clip_range is None:
        return errors
    clipped = before + jnp.clip(value - before, -clip_range, clip_range)
    return jnp.maximum(errors, jnp.square(clipped - target))


def _kl(log_ratio: Array) -> Array:
    """Unbiased and never negative (Schulman 2020, http://joschu.net/blog/kl-approx.html)."""
    return jnp.expm1(log_ratio) - log_ratio


def _share_outside(log_ratio: Array, clip_range: Array, weight: Weight) -> Array:
    return weighted_mean((jnp.abs(jnp.expm1(log_ratio)) > clip_range).astype(jnp.float32), weight)


def _total(tree: Any) -> Array:
    return sum(jax.tree.leaves(tree), jnp.zeros(()))
