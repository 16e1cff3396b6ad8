"""``KLDivRegularizer``: stay near a prior."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from triax.regularizers.regularizer import Regularizer


class KLDivRegularizer(Regularizer):
    r"""The term :math:`\beta\, KL[f(s), p_0]`, in nats.

    Args:
        f: a stochastic function.
        beta: a plain attribute that may be annealed without recompilation.
        priors: distribution parameters of :math:`p_0`, batch size 1 (broadcast) or that of the batches; default
            ``f.proba_dist.default_priors``.

    Raises:
        TypeError: ``f`` is not stochastic, or ``priors`` has another structure than its parameters.
    """

    def __init__(self, f: Any, beta: float = 0.001, priors: PyTree = None) -> None:
        super().__init__(f)
        default = f.proba_dist.default_priors
        self.beta = beta
        self.priors = default if priors is None else priors
        wanted, found = jax.tree.structure(default), jax.tree.structure(self.priors)
        if wanted != found:
            raise TypeError(f"KLDivRegularizer: priors must have the structure {wanted}; got {found}.")

    @property
    def hyperparams(self) -> dict[str, Any]:
        """``beta`` and ``priors``."""
        return {"beta": np.float32(self.beta), "priors": self.priors}

    def function(self, dist_params: PyTree, **hyperparams: Any) -> Float[Array, " batch"]:
        """``beta * KL``."""
        return hyperparams["beta"] * self.f.proba_dist.kl_divergence(dist_params, hyperparams["priors"])

    def metrics_func(self, dist_params: PyTree, **hyperparams: Any) -> dict[str, Any]:
        """``KLDivRegularizer/beta`` and the mean ``KLDivRegularizer/kl_div``."""
        kl_div = jnp.mean(self.f.proba_dist.kl_divergence(dist_params, hyperparams["priors"]))
        return {"KLDivRegularizer/beta": hyperparams["beta"], "KLDivRegularizer/kl_div": kl_div}
