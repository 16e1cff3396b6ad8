import inspect

import triax.utils


def test_utils_only_points_to_the_homes_of_its_names():
    for name in triax.utils.__all__:
        home = inspect.getmodule(getattr(triax.utils, name))
        assert home is not triax.utils and getattr(home, name) is getattr(triax.utils, name)
        assert home.__name__.startswith("triax."), name
