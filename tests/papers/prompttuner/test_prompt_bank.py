"""The prompt bank: clusters, look-ups, insertions, its budget; the small transformer's gradient; one real tuning."""

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scenes import prompt_tuning
from scenes import tiny_transformer as tiny

from gpuschedlab.errors import EstimatorError
from gpuschedlab.metrics import cost, pool_levels
from gpuschedlab.papers.prompttuner.estimators.prompt_bank import PromptBank, cosine_distances, k_medoids
from gpuschedlab.papers.prompttuner.jobs import PromptJobs, worth_a_search
from gpuschedlab.policies import PromptTuner
from gpuschedlab.widgets import PromptExplorer, PromptLab
from reproduce.papers.prompttuner import bank


def bank_of(count=40, clusters=6, seed=0, **more):
    features = np.random.default_rng(seed).normal(size=(count, 5))
    return PromptBank(features, clusters, rng=seed, **more)


def test_prompt_bank_medoids_are_the_best_of_their_clusters():
    distance = cosine_distances(*[np.random.default_rng(3).normal(size=(60, 4))] * 2)
    medoids, cluster = k_medoids(distance, 7)
    assert (np.diff(medoids) > 0).all()
    assert (distance[:, medoids].argmin(axis=1) == cluster).all()
    for k, medoid in enumerate(medoids):
        members = np.flatnonzero(cluster == k)
        sums = distance[np.ix_(members, members)].sum(axis=1)
        assert sums.min() == pytest.approx(distance[medoid, members].sum())


def test_prompt_bank_clusters_that_are_far_apart_are_found():
    """Three bundles of directions: K-medoids gives one cluster to each, as brute force over all medoids does."""
    rng = np.random.default_rng(5)
    points = np.repeat(np.eye(3), 5, axis=0) + 0.05 * rng.normal(size=(15, 3))
    distance = cosine_distances(points, points)
    medoids, cluster = k_medoids(distance, 3)
    triples = [(a, b, c) for a in range(15) for b in range(a) for c in range(b)]
    best = min(distance[:, list(triple)].min(axis=1).sum() for triple in triples)
    assert distance[:, medoids].min(axis=1).sum() == pytest.approx(best)
    assert [len(set(cluster[i : i + 5])) for i in (0, 5, 10)] == [1, 1, 1]


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 40), st.integers(1, 40), st.integers(0, 99))
def test_prompt_bank_look_up_scores_the_medoids_and_one_cluster(count, clusters, seed):
    bank = bank_of(count, min(clusters, count), seed)
    loss = np.random.default_rng(seed).random(count)
    asked = []
    found = bank.look_up(lambda which: asked.append(which) or loss[which])
    entered = bank.cluster[bank.medoids[loss[bank.medoids].argmin()]]
    scored = np.concatenate(asked)
    assert len(set(scored.tolist())) == len(scored) == found.evaluations
    assert found.evaluations == bank.clusters + len(bank.members(entered)) <= bank.worst()
    assert found.score == loss[found.prompt] == loss[scored].min()
    assert loss.min() <= found.score
    if bank.clusters in (1, count):
        assert found.prompt == loss.argmin()


def test_prompt_bank_insertion_keeps_the_threshold_and_the_medoids():
    bank = bank_of(30, 5, most=33)
    before = bank.features[bank.medoids].copy()
    rng = np.random.default_rng(1)
    for step in range(40):
        new = rng.normal(size=5)
        nearest = cosine_distances(new, before)[0].argmin()
        old = bank.features.copy()
        found = bank.insert(new)
        assert found.cluster == nearest
        assert len(bank) == min(31 + step, 33)
        assert np.array_equal(bank.features[bank.medoids], before)
        if found.dropped is not None:
            pool = np.concatenate([old, new[None]])
            gone = cosine_distances(pool[found.dropped], before[nearest])[0, 0]
            left = [cosine_distances(bank.features[i], before[nearest])[0, 0] for i in bank.members(nearest)]
            assert gone <= min(left, default=2.0)
    lone = PromptBank(np.eye(2), clusters=2, most=2)
    assert lone.insert([1.0, 0.1]).prompt == -1  # behind its medoid there is no other to drop


def test_prompt_bank_is_skipped_iff_it_takes_more_than_its_budget():
    bank = bank_of(40, 6)
    seconds = 0.1
    exact = bank.worst() * seconds / 0.2
    assert worth_a_search(bank.worst() * seconds, exact * 1.001)
    assert not worth_a_search(bank.worst() * seconds, exact * 0.999)
    trace = PromptJobs(slo=0.3, warm_up=0.5)(seed=0)
    took = trace["model"].replace_strict({"gpt2-base": 5.3, "gpt2-large": 6.1, "vicuna-7b": 9.2})
    asks = trace["prompt"] == "bank"
    assert ((took <= 0.2 * trace["deadline"]) == asks).all()
    assert 0 < asks.sum() < trace.height


@pytest.mark.parametrize(
    ("features", "more", "problem"),
    [
        (np.zeros((0, 3)), {}, "found no prompts; expected one or more"),
        (np.eye(3), {"clusters": 4}, "found K=4 clusters for C=3 prompts; expected 1 to 3"),
        (np.eye(3), {"clusters": 0}, "found K=0 clusters"),
        (np.eye(3), {"clusters": 2, "visited": 3}, "found visited=3; expected 1 to K=2"),
        (np.eye(3), {"clusters": 2, "most": 2}, "found 3 prompts, which is more than most=2"),
    ],
)
def test_prompt_bank_bad_input_is_named(features, more, problem):
    with pytest.raises(EstimatorError, match=problem):
        PromptBank(features, **more)


# --- the transformer


def test_the_gradient_is_that_of_finite_differences():
    rng = np.random.default_rng(0)
    weights = tiny.fresh(rng)
    for layer in range(tiny.LAYERS):
        weights[f"{layer}.bias"] += 0.1 * rng.normal(size=tiny.HIDDEN)
    prompts = 0.4 * rng.normal(size=(3, tiny.PROMPT, tiny.WIDTH))
    query, answer = tiny.samples(tiny.Task(1, 3), 5, rng)
    found = tiny.judge(weights, prompts, query, answer, gradient=True)
    for name, value in (weights | {"prompt": prompts}).items():
        by = found.by_prompt if name == "prompt" else found.by_weights[name]
        for _ in range(4):
            at = tuple(rng.integers(size) for size in ((9, tiny.WIDTH) if name == "tokens" else value.shape))
            kept = value[at]
            sides = []
            for step in (1e-5, -1e-5):
                value[at] = kept + step
                sides.append(tiny.judge(weights, prompts, query, answer).loss.sum())
            value[at] = kept
            assert by[at] == pytest.approx((sides[0] - sides[1]) / 2e-5, abs=1e-7), name


def test_a_causal_model_does_not_see_the_future():
    weights = prompt_tuning.frozen()
    x = np.random.default_rng(0).normal(size=(1, 8, tiny.WIDTH)).astype(np.float32)
    changed = x.copy()
    changed[:, 5:] *= -1
    one, other = (tiny.forward(weights, each)[0] for each in (x, changed))
    assert np.array_equal(one[:, :5], other[:, :5])
    assert not np.allclose(one[:, 5:], other[:, 5:])


def test_the_shipped_model_follows_instructions_that_it_was_not_taught():
    weights = prompt_tuning.frozen()
    rng = np.random.default_rng(1)
    for task in tiny.HELD_OUT:
        prompt = weights["tokens"][tiny.words(task)][None]
        assert tiny.judge(weights, prompt, *tiny.samples(task, 100, rng)).accuracy[0] > 0.95
    wrong = tiny.judge(weights, bank.gaussian(1, rng), *tiny.samples(task, 100, rng)).accuracy[0]
    assert wrong < 0.5


def test_the_prompt_of_the_least_loss_is_tuned_sooner_than_most():
    rng = np.random.default_rng(0)
    prompts = prompt_tuning.candidates(rng)
    task = tiny.Task(0, 0)
    loss = prompt_tuning.scores_on(task, prompts, rng)(np.arange(len(prompts)))
    iterations, losses, *_ = prompt_tuning.tune(task, prompts[[loss.argmin(), *range(8)]], rng, cap=40)
    assert iterations[0] < np.median(iterations[1:])
    assert losses[0, 0] < losses[0, 1:].min()


def test_real_texts_cluster():
    lines = bank.texts()
    assert len(lines) == len(set(lines)) == 1308
    assert min(len(line.split()) for line in lines) >= 4
    found = PromptBank(bank.text_features(lines[::4], 32), 18)
    assert found.worst() < len(found) / 4


# --- pools in figures


def test_pool_levels_add_up_to_the_bill():
    run = PromptLab(PromptJobs("low", minutes=5))(seed=1).run(PromptTuner())
    paid = 0.0
    for _, own in pool_levels(run).group_by("llm"):
        rows = own.sort("time")
        held = (rows["idle"] + rows["warming"] + rows["busy"]).to_numpy()
        assert held[-1] == 0
        paid += (held[:-1] * np.diff(rows["time"].to_numpy())).sum()
    assert paid / 3600 == pytest.approx(cost(run, 1.0))


def test_pool_levels_of_one_model_add_up_over_types():
    """GPUs of two types, reserved 2 and 1, then 3 and none, beside one held from 1 to 4 s."""
    pools = [(0.0, "idle m", "a", 2.0), (0.0, "idle m", "b", 1.0), (5.0, "idle m", "a", 3.0), (8.0, "idle m", "b", 0.0)]
    pools += [(2.0, "warming m", "b", 1.0), (3.0, "warming m", "b", 0.0)]
    held = pl.DataFrame({"job": [0], "guest": [False], "start": [1.0], "end": [4.0], "gpus": [1.0]})
    run = SimpleNamespace(
        jobs=pl.DataFrame({"model": ["m"]}),
        allocations=held,
        pools=pl.DataFrame(pools, ["time", "name", "gpu_type", "gpus"], orient="row"),
    )
    levels = pool_levels(run).select("time", "idle", "warming", "busy")
    assert levels.rows() == [
        (0, 3, 0, 0), (1, 3, 0, 1), (2, 3, 1, 1), (3, 3, 0, 1), (4, 3, 0, 0), (5, 4, 0, 0), (8, 3, 0, 0)
    ]  # fmt: skip


def test_the_explorer_follows_its_knobs():
    explorer = PromptExplorer(PromptLab().with_knobs(load="low"))
    begin = dict(explorer.outcome)
    explorer.knobs["window"].value = 0.0
    assert not explorer.error.outputs
    assert explorer.outcome["PromptTuner"][0] > begin["PromptTuner"][0]
    assert explorer.outcome["INFless, aware"] == begin["INFless, aware"]
    assert [
        each.layout.title.text.split(":")[0] for each in (explorer.figure("chosen"), explorer.figure("beside"))
    ] == [
        "PromptTuner",
        "INFless, aware",
    ]
    explorer.close()
