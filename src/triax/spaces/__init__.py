"""Gymnasium spaces and arrays: check, encode, decode, preprocess, sample."""

from triax.spaces.bounds import BoxBounds, canonical_dtype
from triax.spaces.checks import check_space, describe
from triax.spaces.decode import batch_decoder, decoder
from triax.spaces.encode import encoder
from triax.spaces.encode_batch import batch_encoder
from triax.spaces.features import features_of, flatten, num_features
from triax.spaces.freezing import frozen
from triax.spaces.preprocess import default_preprocessor
from triax.spaces.sample import safe_sample, sample_batch

__all__ = [
    "BoxBounds",
    "batch_decoder",
    "batch_encoder",
    "canonical_dtype",
    "check_space",
    "decoder",
    "default_preprocessor",
    "describe",
    "encoder",
    "features_of",
    "flatten",
    "frozen",
    "num_features",
    "safe_sample",
    "sample_batch",
]
