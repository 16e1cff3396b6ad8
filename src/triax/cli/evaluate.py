"""``triax evaluate``: what a run has learned."""

from triax.cli.commands import Evaluate
from triax.cli.environments import make_env
from triax.cli.trained import config_of, load_trained
from triax.loops import evaluate


def evaluate_run(command: Evaluate) -> int:
    """Print mean and spread of the returns; the exit code."""
    config = config_of(command.run)
    env = make_env(config.env)
    trained = load_trained(command.run, env, last=command.last)
    returns = evaluate(trained.agent.act_greedily, env, num_episodes=command.episodes, seed=command.seed)
    env.close()
    print(
        f"{config.env}, {config.algorithm}, weights of step {trained.step:,}:"
        f" mean return {returns.mean():.1f} +- {returns.std():.1f} over {command.episodes} episodes"
        f" (min {returns.min():.1f}, max {returns.max():.1f})"
    )
    return 0
