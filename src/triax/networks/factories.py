"""Ready-made networks of dense layers."""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import gymnasium as gym
import jax
from flax import nnx

from triax.core.keys import fold_name
from triax.core.numbers import check_count, check_number
from triax.networks.adapter import PPOAdapter
from triax.networks.arguments import Activation, as_activation, check_rngs
from triax.networks.containers import Parallel, Sequential
from triax.networks.distribution_sampler import DistributionSampler
from triax.networks.feedforward import Dense, LearnedConstant
from triax.networks.normalizer import Normalizer, example_of, has_mean
from triax.networks.reshaping import Flattener
from triax.networks.samplers import ActionSampler, NormalTanhSampler
from triax.spaces import features_of, num_features


def make_mlp_layers(
    sizes: Sequence[int],
    rngs: nnx.Rngs,
    activation: Activation | None = nnx.relu,
    activation_last_layer: bool = True,
    **linear_kwargs: Any,
) -> list[Dense]:
    """Dense layers between consecutive sizes; the last one is linear without ``activation_last_layer``.

    ``activation`` is a function, or the name of one in :mod:`jax.nn`. Raises ``ValueError`` for fewer than two sizes.
    """
    sizes = _sizes("make_mlp", "sizes", sizes, fewest=2)
    check_rngs("make_mlp", "rngs", rngs)
    return _layers(
        sizes, rngs, as_activation("make_mlp", "activation", activation), activation_last_layer, linear_kwargs
    )


def _layers(
    sizes: Sequence[int], rngs: nnx.Rngs, activation: Any, activation_last_layer: bool, linear_kwargs: dict[str, Any]
) -> list[Dense]:
    last = len(sizes) - 2
    return [
        Dense(
            in_features,
            out_features,
            rngs,
            activation if i < last or activation_last_layer else None,
            **linear_kwargs,
        )
        for i, (in_features, out_features) in enumerate(itertools.pairwise(sizes))
    ]


def make_mlp(
    sizes: Sequence[int],
    rngs: nnx.Rngs,
    activation: Activation | None = nnx.relu,
    activation_last_layer: bool = True,
    **linear_kwargs: Any,
) -> Sequential:
    """:func:`make_mlp_layers` in a :class:`Sequential`."""
    return Sequential(make_mlp_layers(sizes, rngs, activation, activation_last_layer, **linear_kwargs))


def make_mlp_actor_critic(  # noqa: PLR0913 (the contract's)
    obs_size: Any,
    action_size: int | gym.Space,
    actor_hidden_sizes: Sequence[int],
    critic_hidden_sizes: Sequence[int],
    rngs: nnx.Rngs,
    activation: Activation | None = nnx.relu,
    normalize_obs: bool = True,
    initializer_scale: float = 1.0,
    entropy_weight: float = 1e-2,
    min_std: float = 1e-1,
    std_scale: float = 1.0,
    *,
    head_scale: float = 0.01,
    independent_std: bool = False,
) -> Sequential | PPOAdapter:
    """An actor and a critic without shared layers, behind a :class:`Normalizer` if ``normalize_obs``.

    ``obs_size`` is anything that a normalizer takes: an int, a shape, a space of boxes, a tree of them (which
    is flattened); or a space with discrete parts, which become one-hots. ``action_size`` is an int, for a
    :class:`NormalTanhSampler` with ``min_std`` and ``std_scale``, or a space, for a :class:`DistributionSampler`.
    ``activation`` is a function or the name of one in :mod:`jax.nn`, such as ``"swish"``.

    Kernels are uniform, of variance ``initializer_scale / fan_in``, biases zero. The kernel of the actor's
    last layer is ``head_scale`` times that, so that the first policy hardly depends on the observation
    (Andrychowicz et al. 2021, arXiv:2006.05990). With ``independent_std`` the spread of actions (an int or a box) is a
    :class:`LearnedConstant` rather than a function of the observation. Keys are derived from one draw of
    ``rngs.params`` and the names of actor and critic.
    """
    who = "make_mlp_actor_critic"
    check_rngs(who, "rngs", rngs)
    initializer_scale = check_number(who, "initializer_scale", initializer_scale, positive=True)
    head_scale = check_number(who, "head_scale", head_scale, low=0)
    actor_hidden_sizes = _sizes(who, "actor_hidden_sizes", actor_hidden_sizes)
    critic_hidden_sizes = _sizes(who, "critic_hidden_sizes", critic_hidden_sizes)
    activation = as_activation(who, "activation", activation)
    is_mixed = isinstance(obs_size, gym.Space) and not has_mean(obs_size)
    encoding = [features_of(obs_size)] if is_mixed else []
    obs_size = num_features(obs_size) if is_mixed else obs_size
    example = example_of(obs_size)
    width = sum(leaf.size for leaf in jax.tree.leaves(example))
    count = 0 if isinstance(action_size, gym.Space) else check_count(who, "action_size", action_size)
    sampler = _sampler(action_size, rngs, entropy_weight, min_std, std_scale)
    outputs = sampler.num_params if isinstance(sampler, DistributionSampler) else 2 * count
    outputs = _num_means(action_size, outputs) if independent_std else outputs
    root = rngs.params()

    def mlp(name: str, hidden: Sequence[int], out: int, last_scale: float) -> list[Dense]:
        own = nnx.Rngs(params=fold_name(root, name))
        sizes = [width, *hidden, out]
        body = _layers(sizes[:-1], own, activation, True, {"kernel_init": _uniform(initializer_scale)})
        return [*body, Dense(sizes[-2], out, own, kernel_init=_uniform(initializer_scale * last_scale**2))]

    *body, head = mlp("actor", actor_hidden_sizes, outputs, head_scale)
    ends = _with_constant_std(head, action_size) if independent_std else [head]
    adapter = PPOAdapter(Sequential([*body, *ends, sampler]), Sequential(mlp("critic", critic_hidden_sizes, 1, 1.0)))
    is_flat = isinstance(example, jax.ShapeDtypeStruct) and len(example.shape) == 1
    before = [*encoding, *[Normalizer(obs_size)] * normalize_obs, *[Flattener()] * (not is_flat)]
    return Sequential([*before, adapter]) if before else adapter


def _sampler(
    action: int | gym.Space, rngs: nnx.Rngs, entropy_weight: float, min_std: float, std_scale: float
) -> ActionSampler:
    if isinstance(action, gym.Space):
        return DistributionSampler(action, rngs, entropy_weight)
    return NormalTanhSampler(rngs, entropy_weight, min_std, std_scale)


def _num_means(action: int | gym.Space, num_params: int) -> int:
    if isinstance(action, gym.Space) and not isinstance(action, gym.spaces.Box):
        raise ValueError(
            "make_mlp_actor_critic: independent_std is for actions of an int or a box, which have a spread; got "
            f"{action}."
        )
    return num_params // 2


def _with_constant_std(means: Dense, action: int | gym.Space) -> list[Any]:
    """Trained constants beside the means, in the order of the sampler's parameters, which is that of the names."""
    mean, spread = ("mu", "logvar") if isinstance(action, gym.Space) else ("mean", "std")
    return [Parallel({mean: means, spread: LearnedConstant(means.out_features)}), Flattener()]


def _sizes(who: str, name: str, sizes: Any, *, fewest: int = 0) -> list[int]:
    """Checked widths, ``fewest`` or more."""
    if not isinstance(sizes, Iterable) or isinstance(sizes, str | Mapping):
        raise TypeError(f"{who}: {name} must be a list of ints; got {sizes!r}.")
    checked = [check_count(who, f"each of {name}", size) for size in sizes]
    if len(checked) < fewest:
        raise ValueError(f"{who}: {name} must be {fewest} or more, from input to output; got {sizes!r}.")
    return checked


def _uniform(scale: float) -> Callable[..., Any]:
    return nnx.initializers.variance_scaling(scale, "fan_in", "uniform")
