"""``StochasticTransitionModel``: the distribution of the next observation."""

from typing import Any, ClassVar

from triax.functions.decoding import SpaceDecoding, dist_of
from triax.functions.evaluate import Preprocessor
from triax.functions.example_data import ModelTypes, model_type_examples
from triax.functions.inputs import preprocess_alike, space_of
from triax.functions.outputs import dist_params_output
from triax.functions.raw_observations import RawObservation
from triax.functions.stochastic_state_action import StochasticStateActionFunction


class StochasticTransitionModel(StochasticStateActionFunction):
    r"""The distribution of the next observation, :math:`p(s' \mid s, a)`. Results are members of the space.

    Args:
        func: type 1 ``func(S, A, is_training)`` or type 2 ``func(S, is_training)`` returns the parameters of
            ``proba_dist``, for type 2 with an axis of ``n`` actions after the batch axis; in any of the four forms of
            :func:`lift`.
        env: anything with ``observation_space`` and ``action_space``.
        observation_preprocessor: ``f(rng, s) -> S``, traceable; default ``proba_dist.preprocess_variate``.
        action_preprocessor, random_seed: as in :class:`Q`.
        proba_dist: a distribution over the observation space; default ``ProbaDist(observation_space)``.

    Raises:
        TypeError: as for ``Policy``.
    """

    kinds: ClassVar[frozenset[str]] = frozenset({"transition", "stochastic"})

    def __init__(
        self,
        func: Any,
        env: Any,
        observation_preprocessor: Preprocessor | None = None,
        action_preprocessor: Preprocessor | None = None,
        proba_dist: Any = None,
        random_seed: int | None = None,
    ) -> None:
        who = type(self).__name__
        self.proba_dist = dist_of(space_of(env, "observation_space", who=who), proba_dist, who=who)
        self.observation_postprocessor = self.proba_dist.postprocess_variate
        self._set_up_state_action(
            func,
            env,
            dist_params_output(self.proba_dist),
            observation_preprocessor=observation_preprocessor or self.proba_dist.preprocess_variate,
            action_preprocessor=action_preprocessor,
            random_seed=random_seed,
        )
        dist = self.proba_dist
        is_own = preprocess_alike(self.observation_space, self.observation_preprocessor, dist.preprocess_variate)
        self._raw_now = RawObservation(self.observation_preprocessor, dist.decode if is_own else None)
        self._raw_next = RawObservation(dist.preprocess_variate, dist.decode)
        self._set_up_calls(SpaceDecoding(dist))

    @classmethod
    def example_data(
        cls,
        env: Any,
        action_preprocessor: Preprocessor | None = None,
        proba_dist: Any = None,
        batch_size: int = 1,
        random_seed: int | None = None,
    ) -> ModelTypes:
        """Example inputs and outputs of ``func`` in both forms."""
        who = f"{cls.__name__}.example_data"
        dist = dist_of(space_of(env, "observation_space", who=who), proba_dist, who=who)
        return model_type_examples(
            env,
            dist_params_output(dist),
            who=who,
            observation_preprocessor=dist.preprocess_variate,
            action_preprocessor=action_preprocessor,
            batch_size=batch_size,
            random_seed=random_seed,
        )
