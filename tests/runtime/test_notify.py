"""The service manager hears what sd_notify(3) says, and the watchdog only of progress."""

from __future__ import annotations

import os
import socket

import pytest

from edgeagent.runtime.notify import Notifier


@pytest.fixture
def manager(tmp_path):
    """A socket such as systemd's, and a function that returns the next message or None."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    path = str(tmp_path / "notify")
    listener.bind(path)

    def heard(wait_s=0.0):
        listener.settimeout(wait_s or 0.001)
        try:
            return listener.recv(4096).decode()
        except TimeoutError:
            return None

    heard.path = path
    yield heard
    listener.close()


@pytest.fixture
def notifier(manager):
    """A function that makes a notifier which talks to the manager, and is closed in the end."""
    made = []

    def make(**more):
        made.append(Notifier({"NOTIFY_SOCKET": manager.path, **more}))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_readiness_comes_with_a_status_line(manager, notifier):
    notifier().ready("model loaded\nwindow 2048")
    assert manager() == "READY=1\nSTATUS=model loaded window 2048"


def test_leaving_is_said(manager, notifier):
    notifier().stopping()
    assert manager() == "STOPPING=1"


def test_a_slow_start_asks_for_more_time(manager, notifier):
    notifier().extend_start(2.5)
    assert manager() == "EXTEND_TIMEOUT_USEC=2500000"


def test_progress_feeds_the_watchdog(manager, notifier):
    notifier(WATCHDOG_USEC="10000000").progress()
    assert manager() == "WATCHDOG=1"


def test_much_progress_feeds_it_once_in_a_while(manager, notifier):
    feeder = notifier(WATCHDOG_USEC="600000000")
    for _ in range(1000):
        feeder.progress()
    assert manager() == "WATCHDOG=1"
    assert manager() is None


def test_work_without_progress_is_not_fed(manager, notifier):
    feeder = notifier(WATCHDOG_USEC="100000")
    feeder.working()
    assert manager() == "WATCHDOG=1"
    assert manager(0.3) is None


def test_at_rest_the_clock_feeds(manager, notifier):
    feeder = notifier(WATCHDOG_USEC="50000")
    feeder.resting()
    assert [manager(60), manager(60)] == ["WATCHDOG=1", "WATCHDOG=1"]


def test_another_process_watchdog_is_not_ours(manager, notifier):
    feeder = notifier(WATCHDOG_USEC="10000", WATCHDOG_PID=str(os.getpid() + 1))
    assert feeder.watchdog_s == 0


def test_without_a_manager_nothing_happens():
    lonely = Notifier({})
    lonely.ready()
    lonely.progress()
    lonely.close()


def test_a_manager_that_went_away_is_no_error(manager, notifier, tmp_path):
    feeder = notifier()
    (tmp_path / "notify").unlink()
    feeder.ready()


def test_an_abstract_socket_is_understood():
    name = f"edgeagent-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind("\0" + name)
        listener.settimeout(60)
        talker = Notifier({"NOTIFY_SOCKET": "@" + name})
        talker.stopping()
        talker.close()
        assert listener.recv(100) == b"STOPPING=1"
