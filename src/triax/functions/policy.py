"""``Policy``: a parametrised distribution over actions."""

from functools import partial
from typing import Any, ClassVar

from triax.functions.decoding import SpaceDecoding
from triax.functions.distribution_calls import DistributionCalls
from triax.functions.evaluate import Preprocessor
from triax.functions.example_data import ExampleData, state_examples
from triax.functions.inputs import prepare_state, state_inputs
from triax.functions.outputs import TreeOutput
from triax.functions.state_function import StochasticStateFunction
from triax.proba_dists import ProbaDist
from triax.spaces import check_space, default_preprocessor, encoder


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
        for argument in ("observation_space", "action_space"):
            check_space(getattr(env, argument), who=owner, argument=argument)
        self.observation_space, self.action_space = env.observation_space, env.action_space
        self.observation_preprocessor = observation_preprocessor or default_preprocessor(env.observation_space)
        self.proba_dist = proba_dist or ProbaDist(env.action_space)
        self._encode_state = encoder(env.observation_space, who=owner, argument="s")
        inputs = state_inputs(env.observation_space, self.observation_preprocessor)
        self._set_up(func, inputs, dist_params_output(self.proba_dist), random_seed)
        prepare = partial(prepare_state, self.observation_preprocessor)
        decoding = SpaceDecoding(self.proba_dist)
        self._calls = DistributionCalls(self._lifted.forward, self.function, prepare, decoding)

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
        check_space(env.action_space, who=f"{cls.__name__}.example_data", argument="action_space")
        return state_examples(
            env,
            dist_params_output(proba_dist or ProbaDist(env.action_space)),
            owner=cls.__name__,
            observation_preprocessor=observation_preprocessor,
            batch_size=batch_size,
            random_seed=random_seed,
        )


def dist_params_output(proba_dist: Any) -> TreeOutput:
    """The declaration that a function returns the parameters of ``proba_dist``."""
    return TreeOutput(proba_dist.example_params, "distribution parameters")
