"""Transforms of values under the name users know; they live in ``triax.losses.value_transforms``."""

from triax.losses.value_transforms import LogTransform, SignedHyperbolicTransform, ValueTransform

__all__ = ["LogTransform", "SignedHyperbolicTransform", "ValueTransform"]
