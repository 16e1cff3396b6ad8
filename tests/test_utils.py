import inspect

import pytest

import triax.utils


def test_utils_only_points_to_the_homes_of_its_names():
    for name in triax.utils.__all__:
        home = inspect.getmodule(getattr(triax.utils, name))
        assert home is not triax.utils and getattr(home, name) is getattr(triax.utils, name)
        assert home.__name__.startswith("triax."), name


@pytest.mark.parametrize(
    "module, name, instead",
    [
        *((triax.utils, name, r"triax\.runs\.save_checkpoint") for name in ("dump", "dumps", "load", "loads")),
        (triax.utils, "enable_logging", r"logging\.basicConfig\(level=logging\.INFO\)"),
        (triax.utils, "jit", r"jax\.jit"),
        (triax, "PPOClip", r"triax\.policy_objectives\.PPOClip"),
        (triax, "NStep", r"triax\.reward_tracing\.NStep"),
        (triax, "QLearning", r"triax\.td_learning\.QLearning"),
    ],
)
def test_a_name_that_lives_elsewhere_is_refused_with_its_place(module, name, instead):
    with pytest.raises(AttributeError, match=f"{module.__name__}' has no attribute '{name}'. Use {instead}"):
        getattr(module, name)
    assert not hasattr(module, name) and name not in dir(module)


def test_an_unknown_name_is_refused_as_python_does():
    with pytest.raises(AttributeError, match=r"module 'triax' has no attribute 'Qq'\.$"):
        _ = triax.Qq
    with pytest.raises(ImportError, match="cannot import name 'PPOClip'"):
        from triax import PPOClip  # noqa: F401
