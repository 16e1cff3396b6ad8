"""Pytrees, keys, errors, arrays, schedules, printing: JAX and NumPy only, no reinforcement learning."""

from triax.core.arrays import argmax, argmin, clipped_logit, double_relu, idx, isscalar
from triax.core.checks import check_array
from triax.core.diagnostics import get_grads_diagnostics, get_magnitude_quantiles
from triax.core.errors import (
    EpisodeDoneError,
    InsufficientCacheError,
    LostWeightsError,
    MissingExtraError,
    NonFiniteError,
    OutOfRangeError,
    TriaxError,
    UnavailableActionError,
)
from triax.core.finite_differences import diff_transform, diff_transform_matrix
from triax.core.keys import (
    Draw,
    Key,
    KeyStream,
    as_typed_key,
    fold_name,
    make_generator,
    make_key,
    seed_or_entropy,
)
from triax.core.moments import (
    Moments,
    init_moments,
    merge_moments,
    moments_std,
    moments_variance,
    update_moments,
)
from triax.core.noise import OrnsteinUhlenbeckNoise
from triax.core.numbers import Checked, check_count, check_number, check_seed, positive_int
from triax.core.pickling import refuse_pickle
from triax.core.printing import pretty_print, pretty_repr
from triax.core.schedules import StepwiseLinearFunction
from triax.core.sealed import Sealed
from triax.core.segment_tree import MaxTree, MinTree, SegmentTree, SumTree
from triax.core.tree_differences import describe_difference, named_leaves
from triax.core.trees import (
    any_deleted,
    batch_to_single,
    chunks_pow2,
    copy_arrays,
    merge_dicts,
    single_to_batch,
    stack_trees,
    strongly_typed,
    sync_shared_params,
    tree_ravel,
)
from triax.core.vectorize import unvectorize

__all__ = [
    "Checked",
    "Draw",
    "EpisodeDoneError",
    "InsufficientCacheError",
    "Key",
    "KeyStream",
    "LostWeightsError",
    "MaxTree",
    "MinTree",
    "MissingExtraError",
    "Moments",
    "NonFiniteError",
    "OrnsteinUhlenbeckNoise",
    "OutOfRangeError",
    "Sealed",
    "SegmentTree",
    "StepwiseLinearFunction",
    "SumTree",
    "TriaxError",
    "UnavailableActionError",
    "any_deleted",
    "argmax",
    "argmin",
    "as_typed_key",
    "batch_to_single",
    "check_array",
    "check_count",
    "check_number",
    "check_seed",
    "chunks_pow2",
    "clipped_logit",
    "copy_arrays",
    "describe_difference",
    "diff_transform",
    "diff_transform_matrix",
    "double_relu",
    "fold_name",
    "get_grads_diagnostics",
    "get_magnitude_quantiles",
    "idx",
    "init_moments",
    "isscalar",
    "make_generator",
    "make_key",
    "merge_dicts",
    "merge_moments",
    "moments_std",
    "moments_variance",
    "named_leaves",
    "positive_int",
    "pretty_print",
    "pretty_repr",
    "refuse_pickle",
    "seed_or_entropy",
    "single_to_batch",
    "stack_trees",
    "strongly_typed",
    "sync_shared_params",
    "tree_ravel",
    "unvectorize",
    "update_moments",
]
