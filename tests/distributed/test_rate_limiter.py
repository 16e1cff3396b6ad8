import pytest
from hypothesis import given
from hypothesis import strategies as st

from triax.distributed import ApeXConfig, RateLimiter


def test_updates_are_those_of_one_process():
    limiter = RateLimiter(updates_per_step=0.5, warm_up=10, slack=0)
    assert [limiter.updates_due(steps) for steps in (0, 10, 11, 12, 110)] == [0, 0, 0, 1, 50]


@given(
    workers=st.integers(1, 50),
    num_envs=st.integers(1, 8),
    chunk=st.integers(1, 64),
    per_call=st.integers(1, 64),
    ratio=st.sampled_from([0.01, 0.25, 1.0, 3.0]),
    warm_up=st.integers(0, 100),
)
def test_neither_side_ever_waits_for_the_other_for_good_nor_runs_away(
    workers, num_envs, chunk, per_call, ratio, warm_up
):
    config = ApeXConfig(
        workers, num_envs, updates_per_call=per_call, chunk_length=chunk, updates_per_step=ratio, warm_up=warm_up
    )
    limiter = RateLimiter(ratio, warm_up, config.slack(window=1))
    steps = updates = 0
    for _ in range(200):
        gathers = steps + config.steps_per_call <= limiter.steps_allowed(updates)
        learns = updates + per_call <= limiter.updates_due(steps)
        assert gathers or learns
        if gathers:  # the worst order: all that may be gathered comes first
            steps += config.steps_per_call
        else:
            updates += per_call
        assert updates <= max(steps - warm_up, 0) * ratio
        assert steps <= warm_up + updates / ratio + config.slack(window=1)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="updates_per_step"):
        RateLimiter(updates_per_step=0.0, warm_up=1, slack=1)
    with pytest.raises(ValueError, match="chunk_length"):
        ApeXConfig(chunk_length=0)
