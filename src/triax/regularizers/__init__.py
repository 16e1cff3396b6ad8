"""Regularizers: terms added to losses and subtracted from TD targets."""

from triax.regularizers.entropy import EntropyRegularizer, NStepEntropyRegularizer
from triax.regularizers.kl_divergence import KLDivRegularizer
from triax.regularizers.regularizer import Regularizer

__all__ = ["EntropyRegularizer", "KLDivRegularizer", "NStepEntropyRegularizer", "Regularizer"]
