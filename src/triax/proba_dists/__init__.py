"""Probability distributions over Gymnasium spaces."""

from triax.proba_dists.base import BaseProbaDist
from triax.proba_dists.categorical import CategoricalDist, mask_logits
from triax.proba_dists.composite import ProbaDist
from triax.proba_dists.discretized_interval import DiscretizedIntervalDist
from triax.proba_dists.empirical_quantile import EmpiricalQuantileDist
from triax.proba_dists.factorized import FactorizedCategoricalDist
from triax.proba_dists.normal import NormalDist
from triax.proba_dists.quantiles import quantile_cos_embedding, quantiles, quantiles_uniform
from triax.proba_dists.squashed_normal import SquashedNormalDist

__all__ = [
    "BaseProbaDist",
    "CategoricalDist",
    "DiscretizedIntervalDist",
    "EmpiricalQuantileDist",
    "FactorizedCategoricalDist",
    "NormalDist",
    "ProbaDist",
    "SquashedNormalDist",
    "mask_logits",
    "quantile_cos_embedding",
    "quantiles",
    "quantiles_uniform",
]
