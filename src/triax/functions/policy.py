"""``Policy``: a parametrised distribution over actions."""

from typing import Any, ClassVar

from triax.functions.decoding import SpaceDecoding, dist_of
from triax.functions.distribution_calls import DistributionCalls
from triax.functions.evaluate import Preprocessor
from triax.functions.example_data import ExampleData, state_examples
from triax.functions.inputs import space_of
from triax.functions.outputs import dist_params_output
from triax.functions.state_function import StochasticStateFunction


class Policy(StochasticStateFunction):
    r"""A parametrised policy, :math:`\pi(a \mid s)`.

    Args:
        func: ``func(S, is_training)`` returns the parameters of ``proba_dist``, batched, e.g.
            ``{"logits": [batch, n]}`` or ``{"mu": [batch, *shape], "logvar": [batch, *shape]}``; in any of the four
            forms of :func:`lift`.
        env: anything with ``observation_space`` and ``action_space``.
        observation_preprocessor: ``f(rng, s) -> S``, traceable; default ``default_preprocessor(observation_space)``.
        proba_dist: a distribution over the action space; default ``ProbaDist(action_space)``.
        random_seed: decides weights and actions; ``None`` draws fresh entropy.

    Raises:
        TypeError: a space is no supported Gymnasium space; ``func`` has other parameter names, or returns
            another structure, shape or dtype than ``proba_dist`` takes.
    """

    kinds: ClassVar[frozenset[str]] = frozenset({"policy", "stochastic"})

    def __init__(
        self,
        func: Any,
        env: Any,
        observation_preprocessor: Preprocessor | None = None,
        proba_dist: Any = None,
        random_seed: int | None = None,
    ) -> None:
        owner = type(self).__name__
        self.action_space = space_of(env, "action_space", who=owner)
        self.proba_dist = dist_of(self.action_space, proba_dist, who=owner)
        self._set_up_state(
            func,
            env,
            dist_params_output(self.proba_dist),
            observation_preprocessor=observation_preprocessor,
            random_seed=random_seed,
        )
        decoding = SpaceDecoding(self.proba_dist)
        self._calls = DistributionCalls(self._lifted.forward, self.function, self._prepare, decoding)

    @classmethod
    def example_data(
        cls,
        env: Any,
        observation_preprocessor: Preprocessor | None = None,
        proba_dist: Any = None,
        batch_size: int = 1,
        random_seed: int | None = None,
    ) -> ExampleData:
        """Example inputs of ``func`` and distribution parameters of the right structure."""
        who = f"{cls.__name__}.example_data"
        dist = dist_of(space_of(env, "action_space", who=who), proba_dist, who=who)
        return state_examples(
            env,
            dist_params_output(dist),
            who=who,
            observation_preprocessor=observation_preprocessor,
            batch_size=batch_size,
            random_seed=random_seed,
        )
