"""Controls of Slurm's knobs."""

import math

import pytest

import gpuschedlab as lab

pytest.importorskip("ipywidgets", reason="ipywidgets, of the extra lab, is not installed")


def test_a_half_life_may_have_no_end():
    from gpuschedlab.widgets.parts.controls import KnobControls

    assert KnobControls(lab.Slurm(half_life=math.inf)).thing.half_life == math.inf
