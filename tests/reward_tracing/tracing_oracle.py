"""Tracing by definition: a plain loop over recorded episodes, one expected transition at a time."""

from dataclasses import dataclass

import numpy as np


@dataclass
class Episode:
    """``T`` steps; ``observations`` has ``T + 1`` entries, the last of which nobody acted on."""

    observations: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    logps: np.ndarray
    weights: np.ndarray
    end: str  # "terminated", "truncated" or "both"
    tells_last: bool  # whether s_next is passed at a terminated end

    @property
    def length(self):
        return len(self.rewards)

    @property
    def bootstraps(self):
        return self.end == "truncated"


def random_episode(rng, length, end, tells_last=True):
    return Episode(
        observations=rng.normal(size=(length + 1, 3)).astype(np.float32),
        actions=rng.integers(5, size=length),
        rewards=rng.normal(size=length),
        logps=rng.normal(size=length),
        weights=rng.uniform(0.1, 3.0, size=length),
        end=end,
        tells_last=tells_last,
    )


def step_kwargs(episode, t, with_s_next):
    """The arguments of ``tracer.add`` for step ``t``."""
    last = t == episode.length - 1
    s_next = None
    if (with_s_next and not last) or (last and (episode.bootstraps or episode.tells_last)):
        s_next = episode.observations[t + 1]
    return {
        "s": episode.observations[t],
        "a": episode.actions[t],
        "r": episode.rewards[t],
        "done": last and episode.end in ("terminated", "both"),
        "logp": episode.logps[t],
        "w": episode.weights[t],
        "truncated": last and episode.end in ("truncated", "both"),
        "s_next": s_next,
    }


def expected_transition(episode, t, n, gamma, with_s_next):
    """The fields of the transition that starts at ``t``; ``n=None`` means up to the end."""
    T = episode.length
    n = T if n is None else n
    stop = min(t + n, T)
    fields = {
        "S": episode.observations[t],
        "A": episode.actions[t],
        "logP": episode.logps[t],
        "W": episode.weights[t],
        "Rn": sum(gamma ** (k - t) * episode.rewards[k] for k in range(t, stop)),
        "A_next": None,
        "logP_next": None,
    }
    if t + n < T:
        fields |= {"In": gamma**n, "S_next": episode.observations[t + n]}
        if not with_s_next:
            fields |= {"A_next": episode.actions[t + n], "logP_next": episode.logps[t + n]}
        return fields
    knows_last = episode.bootstraps or episode.tells_last
    fields |= {
        "In": gamma ** (T - t) if episode.bootstraps else 0.0,
        "S_next": episode.observations[T] if knows_last else episode.observations[t],
    }
    if not with_s_next:
        fields |= {"A_next": episode.actions[t], "logP_next": np.nan}
    return fields


def assert_is_transition(batch, fields):
    """A batch of one with exactly these fields, the floats in float32."""
    assert batch.batch_size == 1
    for name, expected in fields.items():
        found = getattr(batch, name)
        if expected is None:
            assert found is None, name
            continue
        assert found.shape == (1, *np.shape(expected)), name
        np.testing.assert_allclose(found[0], expected, rtol=2e-6, atol=2e-6, err_msg=name)
        if name in ("logP", "Rn", "In", "W", "logP_next"):
            assert found.dtype == np.float32, name
