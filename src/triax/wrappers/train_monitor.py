"""TrainMonitor: counts steps and episodes, averages metrics, and logs each episode once."""

import copy
import logging
import os
import time
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import gymnasium
import jax

from triax.core.env_arguments import check_gymnasium_env
from triax.core.json_files import decode_json, encode_json, read_json, write_json
from triax.wrappers.episode_metrics import EpisodeMetrics
from triax.wrappers.episode_report import format_line, is_headline, write_actions
from triax.wrappers.reservoir import Reservoir
from triax.wrappers.tensorboard import open_tensorboard, timestamped, write_scalars

if TYPE_CHECKING:
    from tensorboardX import SummaryWriter

_RUNNING, _ENDED, _LOGGED = "running", "ended", "logged"
_AFTER_THE_END = (
    "TrainMonitor: this step came after the end of its episode and is not counted. Call reset() first, or put a wrapper"
    " that resets by itself outside: Autoreset(TrainMonitor(env))."
)
_COUNTERS = {
    "T": int,
    "ep": int,
    "t": int,
    "G": float,
    "avg_G": float,
    "ended_episodes": int,
    "phase": str,
    "seconds": float,
}


class TrainMonitor(gymnasium.Wrapper):
    """Counts steps ``T`` and episodes ``ep`` over the whole training, and logs every episode once.

    Args:
        env: the environment to watch.
        tensorboard_dir: where TensorBoard events go: into a subfolder ``YYYYmmdd_HHMMSS``, unless the folder
            has such a name already. ``None``: nowhere.
        tensorboard_write_all: write each recorded metric at once, which waits for the device, instead of the
            episode's averages.
        log_all_metrics: log all metrics, not only those that end in ``/loss``, ``/entropy``, ``/kl_div`` or
            start with ``throughput/``.
        smoothing: ``avg_G`` moves by ``1 / min(episodes, smoothing)`` towards each new return.
        logger_kwargs: only ``name``, a label: the logger is then ``triax.TrainMonitor.<name>``.

    Episodes are logged at level INFO by ``logging.getLogger("triax.TrainMonitor")``. triax never configures
    logging: ``logging.basicConfig(level=logging.INFO)`` in your script makes the lines appear.

    An episode's return enters ``avg_G`` when the episode ends: terminated, truncated, or cut short by
    ``reset`` or ``close``. It is logged at the next ``reset``, or at ``close``, so that what is learned after
    its last step counts in. With other wrappers outside, read the counters through
    ``env.get_wrapper_attr("T")``.
    """

    counting: bool
    """Set to ``False`` to play episodes that are neither counted nor logged, as ``generate_gif`` does."""

    T: int
    """Steps so far; a reset is none."""
    ep: int
    """Episodes begun so far."""
    t: int
    """Steps of this episode."""
    G: float
    """Undiscounted return of this episode."""
    avg_G: float
    """Smoothed return of the episodes that have ended; 0 before the first."""

    def __init__(
        self,
        env: gymnasium.Env,
        tensorboard_dir: str | os.PathLike | None = None,
        tensorboard_write_all: bool = False,
        log_all_metrics: bool = False,
        smoothing: int = 10,
        **logger_kwargs: Any,
    ):
        check_gymnasium_env("TrainMonitor", env)
        super().__init__(env)
        name = logger_kwargs.pop("name", None)
        if logger_kwargs:
            raise TypeError(
                f"TrainMonitor: of the logger's arguments only name= is taken, got {sorted(logger_kwargs)}. "
                "triax configures no logging: try logging.basicConfig(level=logging.INFO) in your script."
            )
        if not isinstance(smoothing, int) or smoothing < 1:
            raise ValueError(f"TrainMonitor: smoothing must be a positive int, got {smoothing!r}.")
        self.tensorboard_dir = None if tensorboard_dir is None else str(timestamped(tensorboard_dir))
        self.tensorboard_write_all = tensorboard_write_all
        self.log_all_metrics = log_all_metrics
        self.smoothing = smoothing
        self.counting = True
        self._logger_name = f"triax.{type(self).__name__}" + (f".{name}" if name else "")
        self._writer: SummaryWriter | None = None
        self._metrics = EpisodeMetrics()
        self._actions = Reservoir(1000)
        self.reset_global()

    def __str__(self) -> str:
        return f"<{type(self).__name__}(T={self.T}, ep={self.ep}, avg_G={self.avg_G:.4g}){self.env}>"

    @property
    def logger(self) -> logging.Logger:
        """The logger of the episodes' lines: ``triax.TrainMonitor``, or its child of the given ``name``."""
        return logging.getLogger(self._logger_name)

    @property
    def tensorboard(self) -> "SummaryWriter | None":
        """The TensorBoard writer, made on first use; ``None`` without a folder."""
        if self._writer is None and self.tensorboard_dir is not None:
            self._writer = open_tensorboard(self.tensorboard_dir)
        return self._writer

    @property
    def avg_r(self) -> float:
        """Mean reward of this episode, ``G / t``; NaN before the first step."""
        return self.G / self.t if self.t else float("nan")

    @property
    def dt_ms(self) -> float:
        """Wall milliseconds per step of this episode, learning included; NaN before the first step."""
        return 1000 * self._seconds() / self.t if self.t else float("nan")

    def reset_global(self) -> None:
        """Zeroes all counters, metrics and periods, as in a new monitor; the environment is not touched."""
        self.T = 0
        self.ep = 0
        self.avg_G = 0.0
        self._ended_episodes = 0
        self._next_period: dict[str, int] = {}
        self._begin_episode()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Logs the episode that is over, if any, and begins the next one."""
        if not self.counting:
            return self.env.reset(seed=seed, options=options)
        self._log_episode()
        result = self.env.reset(seed=seed, options=options)
        self.ep += 1
        self._begin_episode()
        return result

    def step(  # pyright: ignore[reportIncompatibleMethodOverride]: `a` is the name of an action in triax
        self, a: Any
    ) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Steps and counts; ``info['monitor']`` holds ``T`` and ``ep`` as they were before the step.

        A step after the end of the episode, before ``reset``, is part of none: it goes to the environment with a
        ``UserWarning`` and is not counted.
        """
        if not self.counting:
            return self.env.step(a)
        s_next, r, terminated, truncated, info = self.env.step(a)
        info["monitor"] = {"T": self.T, "ep": self.ep}
        if self._phase != _RUNNING:
            warnings.warn(_AFTER_THE_END, UserWarning, stacklevel=2)
            return s_next, r, terminated, truncated, info
        self.T += 1
        self.t += 1
        self.G += float(r)
        if self.tensorboard_dir is not None:
            self._actions.add(copy.copy(a))  # the caller may reuse an array
        if terminated or truncated:
            self._end_episode()
        return s_next, r, terminated, truncated, info

    def close(self) -> None:
        """Logs the last episode, closes the TensorBoard files and the environment."""
        self._log_episode()
        self._close_writer()
        super().close()

    def record_metrics(self, metrics: Mapping[str, Any]) -> None:
        """Averages the metrics, numbers or scalar arrays, over the episode without waiting for the device.

        Raises ``TypeError`` for anything but a mapping of names to scalars.
        """
        self._metrics.record(metrics)
        if self.tensorboard_write_all and self.tensorboard is not None:
            values = jax.device_get(dict(metrics))
            write_scalars(self.tensorboard, self.T, {name: float(value) for name, value in values.items()})

    def get_metrics(self) -> dict[str, float]:
        """Averages over the current episode; waits for the device."""
        return self._metrics.averages()

    def period(self, name: str, T_period: int | None = None, ep_period: int | None = None) -> bool:
        """Whether ``T`` or ``ep`` has reached another multiple of its period since this last was true.

        Each ``name`` counts on its own. True once, however many multiples were passed meanwhile.
        """
        if T_period is None and ep_period is None:
            raise ValueError(f"period {name!r}: give T_period, ep_period or both.")
        passed = [
            self._passed(f"{kind}/{name}", now, period)
            for kind, now, period in (("T", self.T, T_period), ("ep", self.ep, ep_period))
            if period is not None
        ]
        return any(passed)

    def get_counters(self) -> dict[str, Any]:
        """All that a resumed training needs, as plain numbers, strings and dicts: see ``set_counters``."""
        return {
            "T": self.T,
            "ep": self.ep,
            "t": self.t,
            "G": self.G,
            "avg_G": self.avg_G,
            "ended_episodes": self._ended_episodes,
            "phase": self._phase,
            "seconds": self._seconds(),
            "metrics": self._metrics.get_state(),
            "periods": dict(self._next_period),
            "tensorboard_dir": self.tensorboard_dir,
        }

    def set_counters(self, counters: Mapping[str, Any]) -> None:
        """Continues from what ``get_counters`` gave; a ``tensorboard_dir`` of ``None`` keeps this monitor's.

        Raises ``TypeError`` unless it has exactly those keys.
        """
        known = {*_COUNTERS, "metrics", "periods", "tensorboard_dir"}
        if not isinstance(counters, Mapping) or set(counters) != known:
            found = sorted(map(str, counters)) if isinstance(counters, Mapping) else type(counters).__name__
            raise TypeError(f"set_counters: expected the keys {sorted(known)}; got {found}.")
        new = {key: convert(counters[key]) for key, convert in _COUNTERS.items()}
        periods = {str(name): int(value) for name, value in counters["periods"].items()}
        self._metrics.set_state(counters["metrics"])
        self.T, self.ep, self.t, self.G, self.avg_G = (new[key] for key in ("T", "ep", "t", "G", "avg_G"))
        self._ended_episodes, self._phase = new["ended_episodes"], new["phase"]
        self._began = time.perf_counter() - new["seconds"]
        self._next_period = periods
        if counters["tensorboard_dir"] is not None and counters["tensorboard_dir"] != self.tensorboard_dir:
            self._close_writer()
            self.tensorboard_dir = counters["tensorboard_dir"]

    def save_counters(self, filepath: str | os.PathLike) -> None:
        """Writes the counters as JSON."""
        write_json(filepath, encode_json(self.get_counters(), "counters"))

    def load_counters(self, filepath: str | os.PathLike) -> None:
        """Continues from a file of ``save_counters``."""
        self.set_counters(decode_json(read_json(filepath)))

    def _begin_episode(self) -> None:
        self.t = 0
        self.G = 0.0
        self._phase = _RUNNING
        self._began = time.perf_counter()
        self._metrics.clear()
        self._actions.clear()

    def _end_episode(self) -> None:
        """Takes the return into ``avg_G``, once."""
        if self._phase == _RUNNING:
            self._phase = _ENDED
            self._ended_episodes += 1
            self.avg_G += (self.G - self.avg_G) / min(self._ended_episodes, self.smoothing)

    def _log_episode(self) -> None:
        if self.t == 0 or self._phase == _LOGGED:
            return
        self._end_episode()
        self._phase = _LOGGED
        counters = {"ep": self.ep, "T": self.T, "G": self.G, "avg_G": self.avg_G, "t": self.t}
        counters |= {"avg_r": self.avg_r, "dt_ms": self.dt_ms}
        if self.logger.isEnabledFor(logging.INFO):
            chosen = {k: v for k, v in self.get_metrics().items() if self.log_all_metrics or is_headline(k)}
            self.logger.info("%s", format_line(counters, chosen))
        if self.tensorboard is not None:
            self._write_episode(self.tensorboard, counters)

    def _write_episode(self, writer: "SummaryWriter", counters: Mapping[str, int | float]) -> None:
        scalars = {
            "episode/episode": counters["ep"],
            "episode/avg_reward": counters["avg_r"],
            "episode/return": counters["G"],
            "episode/steps": counters["t"],
            "episode/avg_step_duration_ms": counters["dt_ms"],
        }
        write_scalars(writer, self.T, scalars | ({} if self.tensorboard_write_all else self.get_metrics()))
        write_actions(writer, self.T, self._actions.items)

    def _passed(self, key: str, now: int, period: int) -> bool:
        if period < 1:
            raise ValueError(f"period {key!r}: a period must be at least 1, got {period}.")
        if now < self._next_period.get(key, period):
            return False
        self._next_period[key] = (now // period + 1) * period
        return True

    def _seconds(self) -> float:
        return time.perf_counter() - self._began

    def _close_writer(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def __getstate__(self) -> dict[str, Any]:
        """Without the writer, which a copy makes anew; the clock as seconds, which other processes know."""
        return self.__dict__ | {"_writer": None, "_began": self._seconds()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._began = time.perf_counter() - state["_began"]
