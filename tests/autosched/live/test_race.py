"""The race: lines on the same jobs, changes from the next hour on, the reader's wheel, and what came of each choice."""

import numpy as np
import polars as pl
import pytest

import gpuschedlab as lab
from gpuschedlab.autosched.live.choice import Choice
from gpuschedlab.autosched.live.days import (
    DAY,
    HEAVY_NIGHTS,
    NIGHT_RUNS,
    NIGHTS,
    WHOLE_NODE_NIGHTS,
    LiveDays,
    drifted,
)
from gpuschedlab.autosched.live.goals import GOALS, figure, gained
from gpuschedlab.autosched.live.like import LikeRaces, play_like
from gpuschedlab.autosched.live.line import HOUR, Line
from gpuschedlab.autosched.live.race import CLOCK, DEFAULT, GITTINS, PAST, TUNED, Race
from gpuschedlab.autosched.live.schedule import Past, by_clock, by_phase, constants
from gpuschedlab.autosched.live.settings import BELIEFS, WAYS, LiveTuning
from gpuschedlab.errors import EstimatorError

SMALL = LiveDays(days=1, jobs=150, load=1.2)
QUICK = LiveTuning(evaluations=3)


def ends_of(scenario, policy) -> np.ndarray:
    return scenario.run(policy).jobs["end"].to_numpy()


# Days ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", ["venus", "pai", "philly", *NIGHTS])
def test_days_have_a_history_before_them_and_are_the_same_for_a_seed(preset):
    days = LiveDays(preset=preset, days=2, jobs=200, load=0.8)
    history, trace = days.jobs_of(4)
    assert history["submit"].max() < 0 <= trace["submit"].min() <= trace["submit"].max() < 2 * DAY
    assert days.jobs_of(4)[1].equals(trace)
    np.testing.assert_allclose(trace["deadline"], 600.0 + 4.0 * trace["duration"])


@pytest.mark.parametrize("drift", [0.0, 0.3, 0.9])
def test_a_drift_moves_arrivals_within_their_day_and_keeps_their_order(drift):
    submit = np.sort(np.random.default_rng(0).uniform(0, 10 * DAY, 20_000))
    moved = drifted(submit, drift)
    assert (np.diff(moved) >= 0).all()
    assert (np.floor(moved / DAY) == np.floor(submit / DAY)).all()
    assert (moved % DAY < DAY / 2).mean() == pytest.approx((1 + drift) / 2, abs=0.02)


# Lines -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("other", [lab.Tiresias(thresholds=(5000.0,)), lab.Themis(), lab.Srtf()])
def test_a_line_that_is_played_again_is_the_same_to_the_last_bit(other):
    scenario = SMALL.scenario(3)
    line = Line(scenario, lab.Tiresias())
    for hour in range(1, 20):
        line.advance(hour * HOUR)
        if hour in (5, 9):
            line.switch(other if hour == 5 else lab.Tiresias())
    before = line.simulation.snapshot().jobs
    line.on(scenario)
    after = line.simulation.snapshot().jobs
    for name in before:
        np.testing.assert_array_equal(before[name], after[name])


def test_a_line_without_switches_ends_as_a_run_does():
    scenario = SMALL.scenario(5)
    line = Line(scenario, lab.Themis())
    line.advance(7 * HOUR)
    np.testing.assert_allclose(line.ends(), ends_of(scenario, lab.Themis()))


def test_two_switches_at_one_instant_are_one():
    line = Line(SMALL.scenario(1), lab.Tiresias())
    line.advance(HOUR)
    line.switch(lab.Srtf())
    line.switch(lab.Themis())
    assert [policy.name for _, policy in line.switches] == ["Tiresias", "Themis"]
    line.switch(line.policy)
    assert len(line.switches) == 2


# Goals -----------------------------------------------------------------------------------------------------


def test_figures_of_goals_by_hand():
    trace = pl.DataFrame({"submit": [0.0, 10.0, 20.0], "duration": [5.0] * 3, "deadline": [30.0, 5.0, None]})
    end = np.array([20.0, 40.0, np.inf])
    average, slowest, deadlines = GOALS.values()
    assert figure(average, trace, end, 30.0) == pytest.approx((20 + 20 + 10) / 3)
    assert figure(slowest, trace, end, 30.0) == 20
    assert figure(deadlines, trace, end, 30.0) == 0.5
    assert figure(deadlines, trace, end, 12.0) == 1.0  # its deadline has not passed
    assert np.isnan(figure(average, trace, end, -1.0))
    assert np.isnan(figure(deadlines, trace.drop("deadline"), end))
    assert gained(average, 20.0, 10.0) == gained(deadlines, 0.4, 0.8) == 2


# The race --------------------------------------------------------------------------------------------------


def test_constants_of_a_race_end_as_their_runs_do_and_the_tuned_line_is_played_by_its_switches():
    race = Race(SMALL, QUICK, seed=2)
    race.play()
    goal = GOALS["average"]
    found = race.figures(np.inf)
    policies = {DEFAULT: lab.Tiresias(), GITTINS: lab.Tiresias(metric="gittins"), PAST: race.lines[PAST].policy}
    for name, policy in policies.items():
        assert found[name] == pytest.approx(figure(goal, race.scenario.trace, ends_of(race.scenario, policy)))
    again = Line(race.scenario, race.lines[TUNED].switches[0][1])
    for at, policy in race.lines[TUNED].switches[1:]:
        again.advance(at)
        again.switch(policy)
    assert found[TUNED] == pytest.approx(figure(goal, race.scenario.trace, again.ends()))
    assert race.gains(np.inf)[DEFAULT] == pytest.approx(found[DEFAULT] / found[TUNED])
    assert len(race.choices) == np.ceil(race.end / HOUR)


@pytest.mark.parametrize("way", WAYS)
def test_the_same_seed_and_changes_give_the_same_race(way):
    def played():
        race = Race(SMALL, LiveTuning(evaluations=3, way=way), seed=4)
        race.play(5)
        return race.figures(), [choice.sentence for choice in race.choices]

    assert played() == played()


def test_what_came_stays_when_the_jobs_to_come_change():
    race = Race(SMALL, QUICK, seed=1)
    race.play(6)
    before = {name: line.simulation.snapshot().jobs["end"] for name, line in race.lines.items()}
    came = race.scenario.trace.filter(pl.col("submit") <= race.now)
    race.change(days=LiveDays(preset="pai", days=1, jobs=300, load=0.9, drift=0.3))
    now = race.scenario.trace
    assert now.filter(pl.col("submit") <= race.now)["job_id"].equals(came["job_id"])
    assert not now.filter(pl.col("submit") > race.now)["job_id"].is_in(came["job_id"].implode()).any()
    for name, ends in before.items():
        jobs = race.lines[name].simulation.snapshot().jobs
        np.testing.assert_array_equal(jobs["end"][: came.height], ends[: came.height])
    assert CLOCK in race.lines  # day and night differ now
    assert race.lines[CLOCK].now == race.now
    race.play(3)
    assert {line.now for line in race.lines.values()} == {race.now} == {9 * HOUR}


@pytest.mark.parametrize("pieces", [1, 6, 11, 13])
def test_a_change_within_an_hour_acts_from_its_end_on_and_its_pieces_play_nothing_more(pieces):
    """A control is moved while an hour is played in pieces, and those who play it go on with their pieces."""
    race = Race(SMALL, QUICK, seed=1)
    race.play(3)
    hour = race.hour()
    for _ in range(pieces):
        next(hour, None)
    race.change(
        days=LiveDays(preset="pai", days=1, jobs=300, drift=0.4), tuning=LiveTuning(goal="deadlines", evaluations=3)
    )
    for _ in hour:
        pass
    race.play(2)
    assert {line.now for line in race.lines.values()} == {race.now}
    times = [choice.at / HOUR for choice in race.choices]
    assert times == [*range(len(times))] == [*range(round(race.now / HOUR))]
    for line in race.lines.values():
        before = line.simulation.snapshot().jobs
        again = line.replayed(race.now).snapshot().jobs
        np.testing.assert_array_equal(before["end"], again["end"])


@pytest.mark.parametrize("pieces", [1, 3, 8, 12])
def test_the_wheel_may_be_taken_within_an_hour(pieces):
    race = Race(SMALL, QUICK, seed=1)
    race.play(1)
    hour = race.hour()
    for _ in range(pieces):
        next(hour, None)
    race.take(lab.Srtf())
    for _ in hour:
        pass
    race.play(1)
    assert {line.now for line in race.lines.values()} == {race.now}
    assert race.lines[TUNED].policy.name == "Srtf"
    assert max(choice.at for choice in race.choices) <= HOUR


def test_goal_method_evaluations_and_policy_act_from_the_next_hour_on():
    race = Race(SMALL, QUICK, seed=1)
    race.play(3)
    race.change(tuning=LiveTuning(goal="deadlines", evaluations=30))
    race.play(1)
    race.change(tuning=LiveTuning(goal="deadlines", way="last hour", evaluations=30))
    race.play(1)
    assert [choice.goal for choice in race.choices] == ["average"] * 3 + ["deadlines"] * 2
    assert race.choices[3].tried > race.choices[2].tried + 10
    assert np.isnan(race.choices[4].low)  # measured on one future alone
    assert all(0 <= value <= 1 for value in race.figures().values())
    race.change(policy=lab.Themis())
    race.play(1)
    names = {name: line.policy.name for name, line in race.lines.items()}
    assert names == {TUNED: "Themis", DEFAULT: "Themis", GITTINS: "Tiresias", PAST: "Themis"}


def test_hours_without_a_decision_lie_between():
    race = Race(SMALL, LiveTuning(evaluations=3, every=4), seed=1)
    race.play(9)
    assert [choice.at / HOUR for choice in race.choices] == [0, 4, 8]


def test_the_reader_takes_the_wheel_and_gives_it_back():
    race = Race(SMALL, QUICK, seed=1)
    race.play(2)
    race.take(lab.Srtf())
    race.play(3)
    assert len(race.choices) == 2
    assert race.lines[TUNED].policy.name == "Srtf"
    race.give_back()
    race.play(1)
    assert race.lines[TUNED].policy.name == "Tiresias"
    assert [choice.at / HOUR for choice in race.choices] == [0, 1, 5]


def test_what_cannot_change_under_way_is_refused_and_nothing_is_lost():
    race = Race(SMALL, QUICK, seed=1)
    race.play(1)
    with pytest.raises(EstimatorError, match=r"found another nodes at 1 h; expected .* Begin another race"):
        race.change(days=LiveDays(days=1, jobs=150, nodes=5))
    assert race.days == SMALL
    race.play(1)
    assert race.now == 2 * HOUR


def test_a_realised_gain_is_that_of_two_runs():
    race = next(race for race in (Race(SMALL, QUICK, seed=seed) for seed in range(20)) if _switched(race))
    choice = next(choice for choice in race.choices if choice.switched)
    line = race.lines[TUNED]
    sides = []
    for count in (choice.place, choice.place + 1):
        simulation = race.scenario.simulation(line.switches[0][1])
        for at, policy in line.switches[1:count]:
            simulation.advance(at)
            simulation.switch(policy)
        simulation.advance(np.inf)
        sides.append(simulation.snapshot().jobs["end"])
    submit = race.scenario.trace["submit"].to_numpy()
    there = sides[0] > choice.at
    spent = [(end - np.maximum(submit, choice.at))[there].mean() for end in sides]
    assert race.realised(choice) == pytest.approx(spent[0] / spent[1])
    assert np.isnan(race.realised(race.choices[0]._replace(switched=False)))


def _switched(race) -> bool:
    race.play()
    return any(choice.switched for choice in race.choices)


def test_a_wrong_belief_is_of_the_tuner_alone():
    days = LiveDays(days=1, jobs=300, restart=900.0)
    race = Race(days, LiveTuning(evaluations=3, belief=BELIEFS[2], believed=60.0), seed=3)
    assert race.scenario.delays.restart == 900
    assert race.believed(race.scenario).delays.restart == 60
    race.play(2)
    controller = race._controller
    assert controller.simulation.delays.restart == 900
    future = controller.forecast(np.random.default_rng(0))[0]
    assert controller.probe(future).base.delays.restart == 60
    np.testing.assert_allclose(race.lines[DEFAULT].ends(), ends_of(race.scenario, lab.Tiresias()))
    twins = Race(days, LiveTuning(evaluations=3, belief=BELIEFS[0], believed=60.0), seed=3)
    shown = twins.twin_restart
    assert twins.believed(twins.scenario).delays.restart == (shown.value if shown.seen else 60.0)


# Schedules -------------------------------------------------------------------------------------------------


def test_the_best_pair_is_that_of_all_pairs_where_these_are_few():
    scenario = LiveDays(preset=NIGHT_RUNS, days=1, load=0.8, restart=900.0).scenario(1)
    policies = [lab.Tiresias(), lab.Tiresias(metric="time", thresholds=(4000.0,)), lab.Fifo(backfill="easy")]
    goal = GOALS["average"]
    past = Past(scenario, goal)
    found = past.best_pair(policies)
    every = {(day, night): past.figure(day, night) for day in policies for night in policies}
    assert past.figure(*found) == min(every.values())
    line = by_clock(scenario, policies[0], policies[2])
    assert [(at, policy.name) for at, policy in line.switches] == [(0.0, "Tiresias"), (DAY / 2, "Fifo")]
    assert past.figure(policies[0], policies[2]) == figure(goal, scenario.trace, line.ends())
    assert past.figure(policies[1], policies[1]) == figure(goal, scenario.trace, ends_of(scenario, policies[1]))


@pytest.mark.parametrize("policy", [lab.Tiresias(), lab.Themis(), lab.Lucid()])
def test_constants_are_different_policies_of_one_kind_and_easy(policy):
    found = constants(policy)
    assert len(set(found)) == len(found) > 3
    assert found[0] == policy
    assert {type(each) for each in found[:-1]} == {type(policy)}


@pytest.mark.slow
def test_a_schedule_beats_every_constant_where_long_equal_runs_come_by_night_and_a_free_restart_takes_that_away():
    """Worlds of seeds that nothing was chosen on; the pair is found on the days before."""
    ratios = {}
    for restart in (900.0, 0.0):
        rows = []
        for seed in range(300, 302):
            scenario = LiveDays(preset=NIGHT_RUNS, days=4, load=0.8, restart=restart).scenario(seed)
            goal = GOALS["average"]
            policies = constants(lab.Tiresias())
            pair = Past(scenario.past, goal).best_pair(policies)
            now = Past(scenario, goal)
            best = now.ranked(policies)[0]
            rows.append(now.figure(*pair) / now.figure(best, best))
        ratios[restart] = np.exp(np.mean(np.log(rows)))
    assert 0.8 < ratios[900.0] < 0.9
    assert ratios[0.0] > 0.93


# Races like one ----------------------------------------------------------------------------------------------


def test_races_like_one_have_its_settings_and_other_seeds():
    seldom = LiveTuning(evaluations=3, every=6)
    race = Race(SMALL, seldom, seed=1)
    *_, found = play_like(race, 2)
    assert found.seeds == (10_000, 10_001)
    other = Race(SMALL, seldom, seed=10_001)
    other.play()
    assert {name: gains[1] for name, gains in found.gains.items()} == pytest.approx(other.gains(np.inf))
    assert "in 0 of 0" not in found.sentence(DEFAULT)


def test_sentences_of_races_say_what_the_numbers_say():
    few = LikeRaces("average", (0, 1), {"default": np.array([1.1, 0.9])})
    assert few.sentence("default").startswith("Tuned, the average job is done sooner than under the default in 1 of 2")
    none = LikeRaces("average", tuple(range(8)), {"default": np.full(8, 1.001)})
    assert none.sentence("default").endswith("There is nothing in it.")
    assert LikeRaces("average", (), {"default": np.array([])}).sentence("default") == ""


def test_a_choice_says_the_figure_that_decided():
    policy = lab.Tiresias()
    kept = Choice(7200.0, "average", False, policy, policy, 1.01, np.nan, np.nan, 1.02, 12, 0, 0)
    assert kept.sentence == (
        "Hour 2: kept; promised by the best of 12: the average job is done 1.01 times sooner, where 1.02 is asked."
    )
    unsure = kept._replace(announced=1.2, low=0.97, high=1.5)
    assert "but the lower end, 0.97, is not above 1." in unsure.sentence
    switched = unsure._replace(switched=True, policy=lab.Tiresias(thresholds=(5000.0,)), low=1.05)
    assert (
        "next queue after 57,600 to 5,000 GPU-s; promised: the average job is done 1.20 times sooner, at least 1.05."
        in switched.sentence
    )
    assert kept._replace(tried=0).sentence == "Hour 2: kept, since no job is there or forecast."


@pytest.mark.parametrize("preset", NIGHTS)
def test_nights_bring_their_kinds_and_loads(preset):
    loads = {NIGHT_RUNS: (0.8, 0.5, 1.1), HEAVY_NIGHTS: (0.75, 0.3, 1.2), WHOLE_NODE_NIGHTS: (0.65, 0.3, 1.0)}
    load, by_day, by_night = loads[preset]
    _, trace = LiveDays(preset=preset, days=20, load=load).jobs_of(1)
    work = (trace["gpus"] * trace["duration"]).to_numpy()
    day = trace["submit"].to_numpy() % DAY < DAY / 2
    room = 20 * DAY / 2 * 32
    assert work[day].sum() / room == pytest.approx(by_day, rel=0.06)
    assert work[~day].sum() / room == pytest.approx(by_night, rel=0.06)
    _, night = NIGHTS[preset]
    assert set(trace["gpus"].to_numpy()[~day]) == set(night.gpus)
    assert np.median(trace["duration"].to_numpy()[~day]) == pytest.approx(night.median, rel=0.05)


def test_drift_is_measured_by_the_jobs_of_each_phase_and_restarts_make_it():
    soon = lab.Tiresias(metric="time", thresholds=(4000.0,))
    never = lab.Tiresias(thresholds=(1e8,))
    scenario = LiveDays(preset=NIGHT_RUNS, days=4, load=0.8, restart=900.0).scenario(2)
    by_day, by_night = by_phase(scenario, soon, never)
    spent = [ends_of(scenario, policy) - scenario.trace["submit"].to_numpy() for policy in (soon, never)]
    day = scenario.trace["submit"].to_numpy() % DAY < DAY / 2
    assert by_day == pytest.approx(spent[0][day].mean() / spent[1][day].mean())
    assert by_night == pytest.approx(spent[0][~day].mean() / spent[1][~day].mean())
    assert by_day < 0.6 < 1.2 < by_night


def test_figures_of_several_logs_are_their_mean():
    logs = [LiveDays(preset=NIGHT_RUNS, days=1, load=0.8).scenario(seed) for seed in (1, 2)]
    goal = GOALS["average"]
    alone = [Past(log, goal).figure(lab.Tiresias(), lab.Srtf()) for log in logs]
    assert Past(logs, goal).figure(lab.Tiresias(), lab.Srtf()) == pytest.approx(np.mean(alone))
