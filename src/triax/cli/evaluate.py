"""``triax evaluate``: what a run has learned."""

from triax.cli.algorithms import algorithm_of
from triax.cli.commands import Evaluate
from triax.cli.environments import make_env
from triax.loops import evaluate
from triax.runs import Run


def evaluate_run(command: Evaluate) -> int:
    """Print mean and spread of the returns; the exit code."""
    run = Run.open(command.run)
    algorithm = algorithm_of(run)
    config = run.load_config(algorithm.command)
    env = make_env(config.env)
    agent = algorithm.make_agent(config, env)
    store = run.checkpoints if command.last or run.best.latest_step() is None else run.best
    checkpoint = store.load(agent.weights())
    agent.set_weights(checkpoint.tree)
    returns = evaluate(agent.act_greedily, env, num_episodes=command.episodes, seed=command.seed)
    env.close()
    print(
        f"{config.env}, {config.algorithm}, weights of step {checkpoint.metadata['step']:,}:"
        f" mean return {returns.mean():.1f} +- {returns.std():.1f} over {command.episodes} episodes"
        f" (min {returns.min():.1f}, max {returns.max():.1f})"
    )
    return 0
