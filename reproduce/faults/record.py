"""What pytest says while faults are planted, as lines of JSON in the file `FAULTS_LOG`: tests that begin, pass and fail.

Tests in `FAULTS_SKIP` (a file of a list) are left out. With `FAULTS_PLACES` (a file of pairs of file and first line) each test's
calls of the functions there are listed as well.
"""

import json
import os
import sys
import threading
from pathlib import Path

import pytest

PLACES = Path(os.environ["FAULTS_PLACES"]) if "FAULTS_PLACES" in os.environ else None
CALLED, WANTED = set(), {tuple(place) for place in json.loads(PLACES.read_text())} if PLACES else set()


def say(**what):
    """Write a line."""
    with open(os.environ["FAULTS_LOG"], "a") as log:
        log.write(json.dumps(what) + "\n")


def called(frame, event, argument):
    """Note calls of the functions that are looked for."""
    if event == "call" and (place := (frame.f_code.co_filename, frame.f_code.co_firstlineno)) in WANTED:
        CALLED.add(place)


class Recorder:
    """Hooks of the process that runs or divides the tests."""

    def pytest_runtest_logstart(self, nodeid):
        say(begin=nodeid)

    def pytest_runtest_logreport(self, report):
        if report.failed:
            say(failed=report.nodeid)
        elif report.when == "call":
            say(passed=report.nodeid, seconds=round(report.duration, 3))

    def pytest_collectreport(self, report):
        if report.failed:
            say(failed=report.nodeid or "collection")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Watch the calls of a test."""
    CALLED.clear()
    if WANTED:
        threading.setprofile(called)
        sys.setprofile(called)
    try:
        return (yield)
    finally:
        if WANTED:
            sys.setprofile(None)
            say(test=item.nodeid, calls=sorted(CALLED))


def pytest_collection_modifyitems(config, items):
    """Leave out what is to be skipped."""
    if "FAULTS_SKIP" in os.environ:
        skipped = set(json.loads(Path(os.environ["FAULTS_SKIP"]).read_text()))
        items[:] = [item for item in items if item.nodeid not in skipped]


def pytest_configure(config):
    """Write from one process, whatever workers there are."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder())
