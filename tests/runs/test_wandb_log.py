import json
import struct
import sys
from dataclasses import dataclass

import pytest

from triax.core.errors import MissingExtraError
from triax.runs import Run, read_metrics


@dataclass(frozen=True)
class Config:
    env: str = "Strip-v0"
    gamma: float = 0.75


def test_without_wandb_the_extra_is_named_and_nothing_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(
        MissingExtraError, match=r"--wandb needs the package 'wandb'. Try: pip install 'triax\[wandb\]'"
    ):
        Run.create(tmp_path / "a", Config(), wandb=True)
    assert not (tmp_path / "a").exists()


def test_a_run_does_not_import_wandb_unasked(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)  # to import it is an error now
    with Run.create(tmp_path / "a", Config(), tensorboard=False) as run:
        run.log(1, {"x": 1.0})
    assert not (tmp_path / "a" / "wandb.json").exists()


def records_of(folder):
    """What wandb kept of a run that was offline: after 7 bytes records in blocks of 32 KiB, as in LevelDB's logs."""
    from wandb.proto import wandb_internal_pb2

    (file,) = folder.glob("wandb/offline-run-*/run-*.wandb")
    content, at, whole = file.read_bytes(), 7, b""
    while at + 7 <= len(content):
        if at % 32768 > 32768 - 7:
            at += 32768 - at % 32768  # what is left of a block is empty
            continue
        _, length, kind = struct.unpack("<IHB", content[at : at + 7])
        whole += content[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or the last part of one
            record = wandb_internal_pb2.Record()
            record.ParseFromString(whole)
            whole = b""
            yield record


def test_metrics_and_config_go_to_a_run_of_wandb_whose_id_is_kept(tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb")
    for name, value in {"MODE": "offline", "SILENT": "true", "PROJECT": "mine", "DISABLE_GIT": "true"}.items():
        monkeypatch.setenv(f"WANDB_{name}", value)
    path = tmp_path / "strip-0"
    with Run.create(path, Config(), tensorboard=False, wandb=True) as run:
        run.log(10, {"episode/return": 1.5})
        run.log(20, {"episode/return": 2.5, "loss": 0.25})
    wandb.teardown()  # its service writes until it ends
    records = list(records_of(path))
    (begun,) = [record.run for record in records if record.HasField("run")]
    assert (begun.project, begun.display_name, begun.run_group) == ("mine", "strip-0", "strip-0")
    assert json.loads((path / "wandb.json").read_text()) == {"id": begun.run_id}
    sent = {item.key: json.loads(item.value_json) for item in begun.config.update}
    assert (sent["env"], sent["gamma"]) == ("Strip-v0", 0.75)
    rows = [
        {(item.key or "/".join(item.nested_key)): json.loads(item.value_json) for item in record.history.item}
        for record in records
        if record.HasField("history")
    ]
    measured = [{name: value for name, value in row.items() if not name.startswith("_")} for row in rows]
    assert measured == [{"episode/return": 1.5, "step": 10}, {"episode/return": 2.5, "loss": 0.25, "step": 20}]
    assert [row["episode/return"] for row in read_metrics(path / "metrics.jsonl").rows] == [1.5, 2.5]
