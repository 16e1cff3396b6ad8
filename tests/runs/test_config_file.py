import dataclasses
import enum
import json
import math
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import triax
from triax.core.json_files import NON_FINITE
from triax.runs import ConfigError, decode_config, encode_config, load_config, read_config, save_config


class Mode(enum.Enum):
    FAST = 1
    SLOW = "slow"


@dataclasses.dataclass(frozen=True)
class Adam:
    learning_rate: float = 1e-3


@dataclasses.dataclass(frozen=True)
class Sgd:
    learning_rate: float = 1e-2
    momentum: float | None = None


@dataclasses.dataclass(frozen=True)
class Config:
    steps: int = 1000
    gamma: float = 0.99
    name: str = "a"
    double: bool = True
    seed: int | None = None
    hidden: tuple[int, ...] = (64, 64)
    range: tuple[float, float] = (-math.inf, math.inf)
    mode: Mode = Mode.FAST
    kind: Literal["mean", "sum", 3] = "mean"
    folder: Path = Path("runs") / "x"
    optimizer: Adam | Sgd = dataclasses.field(default_factory=Sgd)
    heads: dict[str, Adam] = dataclasses.field(default_factory=dict)
    widths: Sequence[float] = (1.0,)
    tags: list[str] = dataclasses.field(default_factory=list)
    extra: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    clip: Annotated[float, "for tyro"] = 1.0
    derived: int = dataclasses.field(init=False, default=0)

    def __post_init__(self):
        object.__setattr__(self, "derived", self.steps + 1)


floats = st.floats(allow_nan=False)
configs = st.builds(
    Config,
    steps=st.integers(),
    gamma=floats,
    name=st.text().filter(lambda text: text not in NON_FINITE),
    double=st.booleans(),
    seed=st.none() | st.integers(),
    hidden=st.lists(st.integers(), max_size=3).map(tuple),
    range=st.tuples(floats, floats),
    mode=st.sampled_from(Mode),
    kind=st.sampled_from(["mean", "sum", 3]),
    folder=st.sampled_from([Path("a"), Path("/b/c")]),
    optimizer=st.builds(Adam, floats) | st.builds(Sgd, floats, st.none() | floats),
    heads=st.dictionaries(st.sampled_from("abc"), st.builds(Adam, floats)),
    widths=st.lists(floats, max_size=3).map(tuple),
    tags=st.lists(st.sampled_from("xyz"), max_size=2),
    extra=st.dictionaries(st.sampled_from("abc"), floats | st.booleans() | st.lists(st.integers(), max_size=2)),
    clip=floats,
)


@settings(max_examples=30, deadline=None)
@given(configs)
def test_configs_survive_standard_json(config):
    text = json.dumps(encode_config(config), allow_nan=False)
    assert decode_config(Config, json.loads(text)) == config


def test_nan_survives():
    assert math.isnan(decode_config(Adam, encode_config(Adam(math.nan))).learning_rate)


def test_an_int_given_for_a_float_becomes_one():
    learning_rate = decode_config(Adam, {"class": "Adam", "learning_rate": 1}).learning_rate
    assert (learning_rate, type(learning_rate)) == (1.0, float)


def test_the_file_names_versions_and_schema(tmp_path):
    save_config(tmp_path / "config.json", Config(steps=7))
    content = json.loads((tmp_path / "config.json").read_text())
    assert content["schema"] == 1
    assert content["versions"].keys() == {"triax", "python", "jax", "flax", "optax", "numpy", "gymnasium"}
    assert content["versions"]["jax"] == version("jax")
    assert content["versions"]["triax"] == triax._version.__version__
    assert content["config"]["class"] == "Config"
    assert load_config(tmp_path / "config.json", Config) == Config(steps=7)


def changed(**changes):
    return {k: v for k, v in (encode_config(Config()) | changes).items() if v is not KeyError}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (changed(stepz=1), r"Config: unknown field 'stepz'\. Config has the fields \['steps'"),
        (changed(steps=KeyError), "Config: missing field 'steps'"),
        (changed(steps=KeyError, a=1), "unknown field 'a', missing field 'steps'"),
        (changed(steps=1.5), "Config.steps: expected of type int, got 1.5"),
        (changed(steps=True), "Config.steps: expected of type int, got True"),
        (changed(double=1), "Config.double: expected of type bool, got 1"),
        (changed(gamma="0.9"), "Config.gamma: expected a float, got '0.9'"),
        (changed(gamma=[1]), r"Config.gamma: expected a float, got \[1\]"),
        (changed(name=None), "Config.name: expected of type str, got None"),
        (changed(seed="x"), r"Config.seed: expected int \| None, got 'x'"),
        (changed(hidden=[64, "a"]), r"Config.hidden\[1\]: expected of type int, got 'a'"),
        (changed(hidden=64), r"Config.hidden: expected tuple\[int, ...\], got 64"),
        (changed(range=[1.0]), r"Config.range: expected tuple\[float, float\], got \[1.0\]"),
        (changed(mode="MEDIUM"), r"Config.mode: expected one of \['FAST', 'SLOW'\], got 'MEDIUM'"),
        (changed(mode=["FAST"]), "Config.mode: expected one of"),
        (changed(kind="max"), "Config.kind: expected one of"),
        (changed(kind=3.0), "Config.kind: expected one of"),
        (changed(heads={"a": {"class": "Sgd"}}), r"Config.heads\['a'\]: expected a Adam, got 'Sgd'"),
        (
            changed(optimizer={"class": "Sgd", "learning_rate": 1.0}),
            "Config.optimizer: missing field 'momentum'",
        ),
        (changed(tags="x"), "Config.tags: expected a list, got 'x'"),
        (changed(extra=[]), r"Config.extra: expected a dict, got \[\]"),
        (encode_config(Adam()), "Config: expected a Config, got 'Adam'"),
        ([], r"Config: expected a Config, got \[\]"),
    ],
)
def test_what_does_not_fit_is_named(data, message):
    with pytest.raises(ConfigError, match=message):
        decode_config(Config, data)


@dataclasses.dataclass(frozen=True)
class Unstorable:
    activation: Any = math.tanh
    lookup: dict[int, int] = dataclasses.field(default_factory=dict)


def test_values_that_json_cannot_hold_are_refused_by_field(tmp_path):
    with pytest.raises(TypeError, match=r"Unstorable\.activation: expected .* got builtin"):
        save_config(tmp_path / "config.json", Unstorable())
    with pytest.raises(TypeError, match=r"Unstorable\.lookup: keys must be strings"):
        encode_config(Unstorable(activation=None, lookup={1: 2}))
    with pytest.raises(TypeError, match="expected an instance of a dataclass"):
        encode_config({"a": 1})
    assert list(tmp_path.iterdir()) == []


def test_annotations_that_cannot_be_loaded_are_refused_by_field():
    @dataclasses.dataclass
    class Odd:
        sizes: set[int]

    with pytest.raises(ConfigError, match=r"Odd\.sizes: values of type set\[int\] cannot be loaded"):
        decode_config(Odd, {"class": "Odd", "sizes": [1]})


def test_other_schemas_and_broken_files_are_refused_by_path(tmp_path):
    path = tmp_path / "config.json"
    for text, message in [
        ('{"schema": 2, "config": {}}', "config.json: expected a config of schema 1, got schema 2"),
        ("[]", "expected a config of schema 1, got schema None"),
        ("{", "config.json is not a JSON file"),
        ('{"schema": 1, "config": {"class": "Adam"}}', "config.json: Adam: missing field 'learning_rate'"),
    ]:
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            load_config(path, Adam)


def test_a_config_can_be_read_without_its_class(tmp_path):
    @dataclasses.dataclass(frozen=True)
    class Settings:
        algorithm: str = "dqn"

    save_config(tmp_path / "c.json", Settings())
    assert read_config(tmp_path / "c.json") == {"class": "Settings", "algorithm": "dqn"}
    (tmp_path / "d.json").write_text("{}")
    with pytest.raises(ConfigError, match="expected a config of schema"):
        read_config(tmp_path / "d.json")


class Parts(enum.Flag):
    NONE = 0
    HEAD = 1
    TAIL = 2
    BOTH = 3
    FIN = 4


@dataclasses.dataclass(frozen=True)
class Flagged:
    parts: Parts = Parts.NONE


@given(st.lists(st.sampled_from(list(Parts.__members__)), max_size=3))
def test_flags_come_back_in_any_combination(names):
    parts = Parts.NONE
    for name in names:
        parts |= Parts[name]
    data = json.loads(json.dumps(encode_config(Flagged(parts))))
    assert decode_config(Flagged, data) == Flagged(parts)


@pytest.mark.parametrize("wrong", ["HEAD|WING", "", 1, "HEAD,TAIL"])
def test_flags_of_other_names_are_refused(wrong):
    with pytest.raises(ConfigError, match=r"Flagged\.parts: expected one of \['NONE', 'HEAD'"):
        decode_config(Flagged, {"class": "Flagged", "parts": wrong})
