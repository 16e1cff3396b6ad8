"""A training of every kind of state, to be killed: ``python killable_training.py DIRECTORY TOTAL KILL``.

``KILL`` is ``never``, ``in-step`` or the name of a function inside ``triax.runs.checkpoints``: SIGKILL strikes where
the second checkpoint would call it.
"""

import os
import signal
import sys
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

EVERY = 3
OPTIMIZER = optax.adam(1e-2)


class Training(NamedTuple):
    params: dict[str, Any]
    moments: Any
    carry: Any
    typed_key: Any
    raw_key: Any
    steps: Any


def start(seed=0, width=4):
    w = jax.random.normal(jax.random.key(seed), (width, width))
    params = {"w": w, "b": jnp.zeros(width, jnp.bfloat16)}
    carry = {
        "h": jnp.full((2, width), jnp.nan),
        "seen": jnp.zeros(2, bool),
        "keys": jax.random.split(jax.random.key(9)),
    }
    return Training(params, OPTIMIZER.init(params), carry, jax.random.key(5), jax.random.PRNGKey(6), jnp.zeros((), int))


@jax.jit
def train_step(state):
    typed_key, draw = jax.random.split(state.typed_key)
    raw_key, other = jax.random.split(state.raw_key)
    x = jax.random.normal(draw, state.carry["h"].shape) + jax.random.uniform(other)
    h = jnp.where(state.carry["seen"][:, None], state.carry["h"], 0.0)

    def loss(params):
        new = jnp.tanh(x @ params["w"] + 0.5 * h + params["b"])
        return jnp.mean(jnp.square(new - 0.3)), new

    gradient, h = jax.grad(loss, has_aux=True)(state.params)
    updates, moments = OPTIMIZER.update(gradient, state.moments, state.params)
    keys = jax.vmap(lambda key: jax.random.split(key)[0])(state.carry["keys"])
    carry = {"h": h, "seen": jnp.ones(2, bool), "keys": keys}
    params = optax.apply_updates(state.params, updates)
    return Training(params, moments, carry, typed_key, raw_key, state.steps + 1)


def train(checkpoint_fn, total, initial_state=None):
    state = start() if initial_state is None else initial_state.restore(start(seed=1))
    while state.steps < total:
        state = train_step(state)
        if state.steps % EVERY == 0:
            checkpoint_fn(state, int(state.steps))
    return state


def strike(where):
    """SIGKILL at that place of the second checkpoint."""
    from triax.runs import checkpoints

    module = checkpoints.os if where == "rename" else checkpoints
    original, calls = getattr(module, where), 0

    def killed(*arguments):
        nonlocal calls
        calls += where != "rename" or str(arguments[0]).endswith(".tmp")  # Orbax renames too
        if calls == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*arguments)

    setattr(module, where, killed)


def main(directory, total, kill):
    from triax.algorithms import make_checkpoint_fn

    save = make_checkpoint_fn(directory, keep=2)
    if kill not in ("never", "in-step"):
        strike(kill)

    def checkpoint(state, step):
        save(state, step)
        print(step, flush=True)  # whoever kills in a step waits for this

    train(checkpoint, total, None)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
