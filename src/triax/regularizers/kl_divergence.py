"""``KLDivRegularizer``: stay near a prior."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from triax.core.numbers import Checked, check_number
from triax.core.trees import strongly_typed
from triax.regularizers.regularizer import Regularizer


class KLDivRegularizer(Regularizer):
    r"""The term :math:`\beta\, KL[f(s), p_0]`, in nats.

    Args:
        f: a stochastic function.
        beta: a plain attribute that may be annealed without recompilation.
        priors: distribution parameters of :math:`p_0`, batch size 1 (broadcast) or that of the batches; default
            ``f.proba_dist.default_priors``. Assigning others of the same shapes does not recompile either.

    Raises:
        TypeError: ``f`` is not stochastic, or ``priors`` has another structure than its parameters.
        ValueError: a leaf of ``priors`` has another shape or holds NaN, or ``beta`` is not finite.
        NotImplementedError: the divergence of such distributions is not defined (a ``StochasticQ`` of quantiles).
    """

    beta: Checked[float] = Checked(check_number, "The weight of the term.")

    def __init__(self, f: Any, beta: float = 0.001, priors: PyTree = None) -> None:
        super().__init__(f)
        self.beta = beta
        self.priors = f.proba_dist.default_priors if priors is None else priors

    def _facts(self) -> list[str]:
        return [f"beta={self.beta:g}"]

    @property
    def priors(self) -> PyTree:
        """The parameters of the prior."""
        return self._priors

    @priors.setter
    def priors(self, priors: PyTree) -> None:
        dist = self.f.proba_dist
        wanted, found = dist.dist_params_structure, jax.tree.structure(priors)
        if wanted != found:
            raise TypeError(f"KLDivRegularizer: priors must have the structure {wanted}; got {found}.")
        priors = jax.tree.map(
            lambda leaf: leaf if isinstance(leaf, jax.Array) else np.asarray(leaf, np.float32), strongly_typed(priors)
        )
        if any(np.isnan(leaf).any() for leaf in jax.tree.leaves(priors)):
            raise ValueError("KLDivRegularizer: priors must not hold NaN.")
        jax.eval_shape(dist.kl_divergence, priors, priors)
        self._priors = priors

    @property
    def hyperparams(self) -> dict[str, Any]:
        """``beta`` and ``priors``."""
        return {"beta": np.float32(self.beta), "priors": self._priors}

    def function(self, dist_params: PyTree, **hyperparams: Any) -> Float[Array, " batch"]:
        """``beta * KL``."""
        return hyperparams["beta"] * self.f.proba_dist.kl_divergence(dist_params, hyperparams["priors"])

    def metrics_func(self, dist_params: PyTree, **hyperparams: Any) -> dict[str, Any]:
        """``KLDivRegularizer/beta`` and the mean ``KLDivRegularizer/kl_div``."""
        kl_div = jnp.mean(self.f.proba_dist.kl_divergence(dist_params, hyperparams["priors"]))
        return {"KLDivRegularizer/beta": hyperparams["beta"], "KLDivRegularizer/kl_div": kl_div}
