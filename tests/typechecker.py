"""The checker that tests run triax under: an int passes for a float, as in PEP 484."""

from beartype import BeartypeConf, beartype

typecheck = beartype(conf=BeartypeConf(is_pep484_tower=True))
