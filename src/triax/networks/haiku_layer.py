"""A Haiku-style function as a module, so that it can stand in a container."""

import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import PyTree

from triax.core.errors import MissingExtraError
from triax.networks.arguments import check_rngs


class HaikuLayer(nnx.Module):
    """``func(x)`` or ``func(x, is_training)``, written with Haiku's modules, as an ``nnx.Module``.

    ``sample_input`` is one unbatched example (a pytree of arrays, shapes or numbers), from which Haiku makes
    the parameters. They and Haiku's state become variables of this module, so optimizers and checkpoints see
    them. ``is_training`` is false in ``eval()`` mode. A function that draws random numbers gets keys of its
    own. Needs the extra ``triax[haiku]``.
    """

    deterministic = False

    def __init__(self, func: Callable[..., Any], sample_input: PyTree, rngs: nnx.Rngs):
        check_rngs("HaikuLayer", "rngs", rngs)
        self.apply = _transform(func)
        self.takes_mode = "is_training" in inspect.signature(func).parameters
        x = jax.tree.map(lambda leaf: jnp.zeros((1, *jnp.shape(leaf)), jnp.result_type(leaf)), sample_input)
        params, state = self.apply.init(rngs.params(), x, *self._mode())
        self.params = _as_variables(params, nnx.Param)
        self.state = _as_variables(state, nnx.BatchStat)
        self.stream = nnx.RngStream(rngs.params(), tag="haiku") if self._draws(params, state, x) else None

    def __call__(self, x: Any) -> Any:
        """The function on a batch; in training mode its state moves on."""
        rng = None if self.stream is None else self.stream()
        params, state = _as_arrays(self.params), _as_arrays(self.state)
        y, new_state = self.apply.apply(params, state, rng, x, *self._mode())
        if not self.deterministic:
            for module, entries in new_state.items():
                for name, value in entries.items():
                    if value is not state[module][name]:
                        self.state[module][name][...] = value
        return y

    def _mode(self) -> tuple[bool, ...]:
        return (not self.deterministic,) if self.takes_mode else ()

    def _draws(self, params: Any, state: Any, x: Any) -> bool:
        """Does a call in training mode use the key that it is given?"""

        def call(rng: Any) -> Any:
            return self.apply.apply(params, state, rng, x, *self._mode())

        traced = jax.make_jaxpr(call)(jax.random.PRNGKey(0)).jaxpr
        return any(var is traced.invars[0] for equation in traced.eqns for var in equation.invars)


def _transform(func: Callable[..., Any]) -> Any:
    try:
        import haiku as hk
    except ImportError as error:
        raise MissingExtraError.of("HaikuLayer", "dm-haiku", "haiku") from error
    return hk.transform_with_state(func)


def _as_variables(tree: Any, kind: type[nnx.Variable]) -> Any:
    return nnx.Dict({m: nnx.Dict({n: kind(value) for n, value in entries.items()}) for m, entries in tree.items()})


def _as_arrays(variables: Any) -> dict:
    return {m: {n: variable[...] for n, variable in entries.items()} for m, entries in variables.items()}
