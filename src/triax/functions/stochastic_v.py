"""``StochasticV``: the distribution of the return from a state."""

from typing import Any, ClassVar

from triax.functions.distribution_calls import DistributionCalls
from triax.functions.evaluate import Preprocessor
from triax.functions.example_data import ExampleData, state_examples
from triax.functions.outputs import dist_params_output
from triax.functions.state_function import StochasticStateFunction
from triax.functions.value_distribution import binned_values, check_value_range, describe_values
from triax.losses.value_transforms import ValueTransform, value_transform_of


class StochasticV(StochasticStateFunction):
    """The distribution of the return from a state, over ``num_bins`` equal bins.

    Results are 0-d arrays in original units; a sample and a mode are atoms, the centres of bins.

    Args:
        func: ``func(S, is_training) -> {"logits": [batch, num_bins]}``, in any of the four forms of :func:`lift`.
        env: anything with ``observation_space``.
        value_range: two finite numbers, the outer edges of the outer bins, in original units.
        num_bins: the number of bins.
        observation_preprocessor: ``f(rng, s) -> S``, traceable; default ``default_preprocessor(observation_space)``.
        value_transform: a ``ValueTransform`` or a pair ``(f, f_inverse)``; the bins cover ``[f(low), f(high)]``.
        random_seed: decides weights and samples; ``None`` draws fresh entropy.

    Raises:
        TypeError: as for ``V``; or ``value_range`` is not two finite numbers, low < high.
    """

    kinds: ClassVar[frozenset[str]] = frozenset({"v", "stochastic"})

    def __init__(
        self,
        func: Any,
        env: Any,
        value_range: Any,
        num_bins: int = 51,
        observation_preprocessor: Preprocessor | None = None,
        value_transform: Any = None,
        random_seed: int | None = None,
    ) -> None:
        self.value_transform: ValueTransform = value_transform_of(value_transform)
        self.value_range = check_value_range(value_range, who=type(self).__name__)
        self.decoding = binned_values(self.value_range, num_bins, self.value_transform)
        self.proba_dist = self.decoding.proba_dist
        self._set_up_state(
            func,
            env,
            dist_params_output(self.proba_dist),
            observation_preprocessor=observation_preprocessor,
            random_seed=random_seed,
        )
        self._calls = DistributionCalls(self._lifted.forward, self.function, self._prepare, self.decoding)

    @property
    def num_bins(self) -> int:
        """The number of bins."""
        return self.proba_dist.num_bins

    def _facts(self) -> list[str]:
        return [*super()._facts(), describe_values(self)]

    @classmethod
    def example_data(
        cls,
        env: Any,
        value_range: Any,
        num_bins: int = 51,
        observation_preprocessor: Preprocessor | None = None,
        value_transform: Any = None,
        batch_size: int = 1,
        random_seed: int | None = None,
    ) -> ExampleData:
        """Example inputs of ``func`` and distribution parameters of the right structure."""
        value_range = check_value_range(value_range, who=f"{cls.__name__}.example_data")
        dist = binned_values(value_range, num_bins, value_transform_of(value_transform)).proba_dist
        return state_examples(
            env,
            dist_params_output(dist),
            who=f"{cls.__name__}.example_data",
            observation_preprocessor=observation_preprocessor,
            batch_size=batch_size,
            random_seed=random_seed,
        )
