from quick_compilation import compile_quickly  # noqa: F401
