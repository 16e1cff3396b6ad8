"""All of triax runs under beartype here: annotations are checked, shapes included."""

import warnings

from beartype.roar import BeartypeDecorHintPep585DeprecationWarning
from jaxtyping import install_import_hook

warnings.filterwarnings("ignore", category=BeartypeDecorHintPep585DeprecationWarning)  # Gymnasium's own hints
install_import_hook("triax", "typechecker.typecheck")
