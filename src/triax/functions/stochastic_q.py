"""``StochasticQ`` and ``StochasticRewardFunction``: the distribution of a value of state and action."""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from jaxtyping import Array, Float, PyTree

from triax.functions.evaluate import Preprocessor, flatten_actions
from triax.functions.example_data import ModelTypes, model_type_examples
from triax.functions.model_types import Forward
from triax.functions.outputs import dist_params_output
from triax.functions.stochastic_state_action import StochasticStateActionFunction
from triax.functions.value_distribution import check_optional_range, describe_values, value_distribution
from triax.losses.value_transforms import ValueTransform, value_transform_of


class StochasticQ(StochasticStateActionFunction):
    """The distribution of the return of an action in a state.

    With a ``value_range`` it is categorical over ``num_bins`` equal bins (C51, Bellemare et al. 2017,
    arXiv:1707.06887), without one it is given by ``num_bins`` quantiles (QR-DQN, Dabney et al. 2017,
    arXiv:1710.10044; IQN, Dabney et al. 2018, arXiv:1806.06923). Results are 0-d arrays in original units, or lists
    of them, one per action.

    Args:
        func: type 1 ``func(S, A, is_training)`` or type 2 ``func(S, is_training)``, in any of the four forms of
            :func:`lift`. It returns ``{"logits": [batch, num_bins]}`` (bins), or
            ``{"values": [batch, num_bins], "quantile_fractions": [batch, num_bins]}`` (quantiles); for type 2 with an
            axis of ``n`` actions after the batch axis.
        env: anything with ``observation_space`` and ``action_space``.
        value_range: two finite numbers, the outer edges of the outer bins; ``None`` for quantiles.
        num_bins: the number of bins or quantiles.
        observation_preprocessor, action_preprocessor, value_transform, random_seed: as in :class:`Q`.

    Raises:
        TypeError: as for ``Q``; or ``value_range`` is not two finite numbers, low < high.
    """

    kinds: ClassVar[frozenset[str]] = frozenset({"q", "stochastic"})

    def __init__(
        self,
        func: Any,
        env: Any,
        value_range: Any = None,
        num_bins: int = 51,
        observation_preprocessor: Preprocessor | None = None,
        action_preprocessor: Preprocessor | None = None,
        value_transform: Any = None,
        random_seed: int | None = None,
    ) -> None:
        self.value_transform: ValueTransform = value_transform_of(value_transform)
        self.value_range = check_optional_range(value_range, who=type(self).__name__)
        decoding = value_distribution(self.value_range, num_bins, self.value_transform)
        self.proba_dist = decoding.proba_dist
        self._num_bins = int(num_bins)
        self._set_up_state_action(
            func,
            env,
            dist_params_output(self.proba_dist),
            observation_preprocessor=observation_preprocessor,
            action_preprocessor=action_preprocessor,
            random_seed=random_seed,
        )
        self._set_up_calls(decoding)

    @property
    def forward_values(self) -> Forward | None:
        """Pure: the mean of each action ``[batch, n]``, transformed; ``None`` unless actions are ``Discrete``."""
        if self._forward_type2 is None:
            return None
        return partial(_forward_means, self._forward_type2, self.values_of)

    def values_of(self, output: PyTree) -> Float[Array, "batch n"]:
        """The transformed means of all actions, from a type-2 output."""
        decoding: Any = self.decoding
        return flatten_actions(decoding.transformed_mean)(output)

    @property
    def num_bins(self) -> int:
        """The number of bins or quantiles."""
        return self._num_bins

    def _facts(self) -> list[str]:
        return [*super()._facts(), describe_values(self)]

    @classmethod
    def example_data(
        cls,
        env: Any,
        value_range: Any = None,
        num_bins: int = 51,
        observation_preprocessor: Preprocessor | None = None,
        action_preprocessor: Preprocessor | None = None,
        value_transform: Any = None,
        batch_size: int = 1,
        random_seed: int | None = None,
    ) -> ModelTypes:
        """Example inputs and outputs of ``func`` in both forms."""
        who = f"{cls.__name__}.example_data"
        value_range = check_optional_range(value_range, who=who)
        dist = value_distribution(value_range, num_bins, value_transform_of(value_transform)).proba_dist
        return model_type_examples(
            env,
            dist_params_output(dist),
            who=who,
            observation_preprocessor=observation_preprocessor,
            action_preprocessor=action_preprocessor,
            batch_size=batch_size,
            random_seed=random_seed,
        )


class StochasticRewardFunction(StochasticQ):
    """The distribution of the reward of an action in a state; arguments and calls as in :class:`StochasticQ`."""

    kinds: ClassVar[frozenset[str]] = frozenset({"q", "reward", "stochastic"})


def _forward_means(forward: Forward, values_of: Callable, params: Any, state: Any, rng: Any, *args: Any) -> tuple:
    dist_params, carry, state = forward(params, state, rng, *args)
    return values_of(dist_params), carry, state
