"""Helpers under the names users know; each lives, and is documented, in the package it is imported from."""

from triax.core.arrays import argmax, argmin, clipped_logit, double_relu, idx, isscalar
from triax.core.checks import check_array
from triax.core.diagnostics import get_grads_diagnostics, get_magnitude_quantiles
from triax.core.finite_differences import diff_transform, diff_transform_matrix
from triax.core.moved_names import refuse_moved
from triax.core.noise import OrnsteinUhlenbeckNoise
from triax.core.printing import pretty_print, pretty_repr
from triax.core.schedules import StepwiseLinearFunction
from triax.core.segment_tree import MaxTree, MinTree, SegmentTree, SumTree
from triax.core.trees import (
    batch_to_single,
    chunks_pow2,
    merge_dicts,
    single_to_batch,
    stack_trees,
    sync_shared_params,
    tree_ravel,
)
from triax.core.vectorize import unvectorize
from triax.envs import generate_gif, render_episode
from triax.functions import (
    is_policy,
    is_qfunction,
    is_reward_function,
    is_stochastic,
    is_transition_model,
    is_vfunction,
)
from triax.proba_dists import quantile_cos_embedding, quantiles, quantiles_uniform
from triax.reward_tracing import get_transition_batch
from triax.spaces import default_preprocessor, safe_sample

_CHECKPOINTS = "triax.runs.save_checkpoint and triax.runs.load_checkpoint"
__getattr__ = refuse_moved(
    __name__,
    {
        **dict.fromkeys(("dump", "dumps", "load", "loads"), _CHECKPOINTS),
        "enable_logging": "logging.basicConfig(level=logging.INFO)",
        "jit": "jax.jit",
    },
)

__all__ = [
    "MaxTree",
    "MinTree",
    "OrnsteinUhlenbeckNoise",
    "SegmentTree",
    "StepwiseLinearFunction",
    "SumTree",
    "argmax",
    "argmin",
    "batch_to_single",
    "check_array",
    "chunks_pow2",
    "clipped_logit",
    "default_preprocessor",
    "diff_transform",
    "diff_transform_matrix",
    "double_relu",
    "generate_gif",
    "get_grads_diagnostics",
    "get_magnitude_quantiles",
    "get_transition_batch",
    "idx",
    "is_policy",
    "is_qfunction",
    "is_reward_function",
    "is_stochastic",
    "is_transition_model",
    "is_vfunction",
    "isscalar",
    "merge_dicts",
    "pretty_print",
    "pretty_repr",
    "quantile_cos_embedding",
    "quantiles",
    "quantiles_uniform",
    "render_episode",
    "safe_sample",
    "single_to_batch",
    "stack_trees",
    "sync_shared_params",
    "tree_ravel",
    "unvectorize",
]
