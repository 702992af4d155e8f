"""Factors of merged and transferred jobs from measured fine-tuning curves."""

import numpy as np
import polars as pl
import pytest

from gpuschedlab.errors import SpeedError
from gpuschedlab.speeds import Speeds, transfer_speeds

FILES = ("finetune_curves", "transfer_temporal", "transfer_spatial")
SETTING = {"fm": "f", "learning_rate": 0.1, "grad_steps": 1}


def runs(*values, **labels) -> pl.DataFrame:
    """One curve: an evaluation after each epoch."""
    frame = pl.DataFrame({"epoch": np.arange(1.0, len(values) + 1), "value": np.array(values, float)})
    return frame.with_columns(pl.lit(v).alias(k) for k, v in labels.items())


OWN = pl.concat(
    [
        runs(0.2, 0.5, 0.4, 0.6, task="a", **SETTING),
        runs(0.1, 0.3, 0.6, task="b", **SETTING),
        runs(0.9, 0.9, 0.9, task="a", **SETTING | {"grad_steps": 4}),  # another setting
        runs(0.9, task="a", **SETTING | {"fm": "g"}),  # another foundation model
        runs(0.9, task="c", **SETTING),  # no target
    ]
)
TEMPORAL = pl.concat(
    [
        runs(0.4, 0.6, 0.1, 0.6, fm="f", source="a", target="b"),
        runs(0.9, 0.9, 0.9, fm="f", source="a", target="b"),  # a repeated run: the first counts
        runs(0.2, 0.3, 0.4, fm="f", source="b", target="a"),  # never gets there
        runs(0.9, fm="f", source="c", target="a"),
    ]
)
SPATIAL = pl.concat(
    [
        runs(0.5, 0.1, fm="f", task_a="a", task_b="b", task="a"),
        runs(0.1, 0.2, 0.3, 0.6, fm="f", task_a="a", task_b="b", task="b"),
        runs(0.9, fm="f", task_a="c", task_b="a", task="a"),
    ]
)
TARGETS = pl.DataFrame({"task": ["a", "b"], "learning_rate": 0.1, "grad_steps": [1, 1], "target": [0.5, 0.6]})


def test_factors_by_hand():
    """Alone a needs 2 epochs, b 3; b after a 2; a never after b; jointly a 1 and b 4."""
    found = transfer_speeds(OWN, TEMPORAL, SPATIAL, "f", TARGETS)
    assert found.transfer == {("f@a", "f@b"): 1.5, ("f@b", "f@a"): 0.0}
    assert found.merged == {("f@a", "f@b"): 2.0, ("f@b", "f@a"): 0.75}
    # An epoch of a is 100 samples, of b 300: a joint one lasts as long as 4 of a, or 4/3 of b.
    shared = transfer_speeds(OWN, TEMPORAL, SPATIAL, "f", TARGETS, samples={"a": 100, "b": 300})
    assert shared.merged == pytest.approx({("f@a", "f@b"): 2.0 / 4, ("f@b", "f@a"): 0.75 * 3 / 4})
    assert shared.transfer == found.transfer


def test_what_it_gives_is_what_speeds_take():
    found = transfer_speeds(OWN, TEMPORAL, SPATIAL, "f", TARGETS)
    rows = pl.DataFrame({"model": ["other", "f@a", "f@b"], "gpu_type": "x", "n_gpus": 1, "rate": 1.0})
    speeds = Speeds.from_frame(rows, **found._asdict())
    a, b = speeds.model_codes(["f@a", "f@b"])
    assert (speeds.transfer[a, b], speeds.transfer[b, a], speeds.merged[a, b], speeds.merged[b, a]) == (1.5, 0, 2, 0.75)
    assert np.isnan(speeds.transfer[a, a])
    assert speeds.curves.at([a, b], [2.0, 2.5]).tolist() == pytest.approx([0.5, 0.45])
    assert speeds.curves.at_pair("transfer", [b], [a], [2.0]).tolist() == [0.6]
    assert speeds.curves.at_pair("merged", [b, a], [a, b], [4.0, 1.0]).tolist() == [0.6, 0.5]


def test_what_cannot_be_is_named():
    parts = (OWN, TEMPORAL, SPATIAL, "f")
    with pytest.raises(SpeedError, match=r"no curve of task 'b' .*Leave the task out"):
        transfer_speeds(*parts, TARGETS.with_columns(grad_steps=pl.Series([1, 8])))
    with pytest.raises(SpeedError, match=r"task 'b' never reaches its target 0.7 alone.*Lower the target"):
        transfer_speeds(*parts, TARGETS.with_columns(target=pl.Series([0.5, 0.7])))
    with pytest.raises(SpeedError, match="no samples > 0 of task 'b'"):
        transfer_speeds(*parts, TARGETS, samples={"a": 1})
    with pytest.raises(SpeedError, match="transfer_speeds, temporal: found no column 'source'"):
        transfer_speeds(OWN, TEMPORAL.drop("source"), SPATIAL, "f", TARGETS)


@pytest.fixture(scope="module")
def measured(data_dir):
    """Curves as published, and the targets of the artifact's workloads."""
    frames = [pl.read_parquet(data_dir / f"profiles/{n}.parquet") for n in FILES]
    targets = pl.read_parquet(data_dir / "reference/titan_workloads.parquet").select(
        "fm",
        task=pl.col("application").str.split("@").list.last(),
        learning_rate="target_lr",
        grad_steps="target_gradient_steps",
        target="target_metric",
    )
    return frames, targets.unique()


def test_pairs_worked_by_hand_from_the_files(measured):
    frames, targets = measured
    targets = targets.filter(fm="roberta-base")
    found = transfer_speeds(*frames, "roberta-base", targets)
    name = "roberta-base@{}".format
    # rte, to 0.7112: 8 epochs alone (0.7112), 4 after wnli (0.7184), never with wnli (0.6751 at best).
    assert found.transfer[name("wnli"), name("rte")] == 8 / 4
    assert found.merged[name("rte"), name("wnli")] == 0
    # wnli, to 0.5634: 1 epoch alone, 1.98 with rte.
    assert found.merged[name("wnli"), name("rte")] == 1 / 1.98
    # qqp, to the artifact's 0.85875: 10 epochs alone, 5 after stsb.
    assert found.transfer[name("stsb"), name("qqp")] == 10 / 5
    # To the value of its 9th epoch, 0.85867, it needs 9 alone; after stsb still 5, for the 4th shows 0.85848.
    ninth = targets.with_columns(target=pl.when(task="qqp").then(0.8586).otherwise("target"))
    assert transfer_speeds(*frames, "roberta-base", ninth).transfer[name("stsb"), name("qqp")] == 9 / 5


@pytest.mark.parametrize(
    ("fm", "temporal", "spatial"),
    [("roberta-base", 81, 42), ("roberta-large", 64, 44), ("vit", 7, 86), ("vit-large", 7, 65)],
)
def test_shares_of_pairs_that_gain(measured, fm, temporal, spatial):
    """Per cent of pairs of the published curves with a factor of at least 1, as an independent count gave."""
    frames, targets = measured
    found = transfer_speeds(*frames, fm, targets.filter(fm=fm).drop("fm"))
    share = [100 * np.mean(np.array(list(pairs.values())) >= 1) for pairs in (found.transfer, found.merged)]
    assert np.round(share).tolist() == [temporal, spatial]
    assert all(np.isfinite(f) and f >= 0 for pairs in found[:2] for f in pairs.values())
