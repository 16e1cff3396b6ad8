"""All of triax runs under beartype here: annotations are checked, shapes included."""

from jaxtyping import install_import_hook

install_import_hook("triax", "beartype.beartype")
