"""Environments, and episodes to look at."""

from triax.envs.rendering import generate_gif, render_episode

__all__ = ["generate_gif", "render_episode"]
