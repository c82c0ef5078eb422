"""Files are there whole or not at all, whatever fails and whenever it is killed."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dpmodels import atomic_files
from dpmodels.atomic_files import publish, require_target, stage, write_whole
from dpmodels.errors import ArgumentError, FrameError

OLD, NEW = b"old" * 1000, b"new" * 2000


def failing(number):
    def fail(*inputs, **words):
        raise OSError(number, os.strerror(number))

    return fail


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_a_new_file_is_whole_and_nothing_else_is_left(tmp_path):
    write_whole(tmp_path / "a", NEW)
    assert contents(tmp_path) == {"a": NEW}


def test_nothing_is_replaced_unless_asked(tmp_path):
    (tmp_path / "a").write_bytes(OLD)
    with pytest.raises(FrameError, match="already exists"):
        write_whole(tmp_path / "a", NEW)
    assert contents(tmp_path) == {"a": OLD}
    write_whole(tmp_path / "a", NEW, overwrite=True)
    assert contents(tmp_path) == {"a": NEW}


def test_a_private_file_is_private_from_the_start(tmp_path, monkeypatch):
    recorded = []
    real = os.open
    monkeypatch.setattr(os, "open", lambda path, *rest: recorded.append(rest) or real(path, *rest))
    write_whole(tmp_path / "a", NEW, private=True)
    assert (os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600) in recorded
    assert (tmp_path / "a").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("name", "overwrite"),
    [(name, overwrite) for name in ("posix_fallocate", "fsync") for overwrite in (False, True)]
    + [("link", False), ("replace", True)],
)
def test_a_failure_leaves_the_old_file_whole(tmp_path, monkeypatch, name, overwrite):
    before = {"a": OLD} if overwrite else {}
    if overwrite:
        (tmp_path / "a").write_bytes(OLD)
    if name == "link":
        monkeypatch.setattr(os, "replace", failing(errno.ENOSPC))
    monkeypatch.setattr(os, name, failing(errno.ENOSPC))
    with pytest.raises(FrameError, match=r"No space left.*still in memory"):
        write_whole(tmp_path / "a", NEW, overwrite=overwrite)
    assert contents(tmp_path) == before


def test_a_real_full_disk_is_noticed_before_it_is_half_used(tmp_path):
    code = (
        "import resource, signal, sys; from dpmodels.atomic_files import write_whole\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "write_whole(sys.argv[1], bytes(8192), overwrite=True)\n"
    )
    (tmp_path / "a").write_bytes(OLD)
    ran = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "a"], capture_output=True, text=True
    )
    assert "FrameError" in ran.stderr
    assert contents(tmp_path) == {"a": OLD}


def test_without_second_names_a_file_is_still_named_once(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "link", failing(errno.EPERM))
    write_whole(tmp_path / "a", NEW)
    assert contents(tmp_path) == {"a": NEW}
    partial = stage(tmp_path / "a", OLD)
    with pytest.raises(FrameError, match="already exists"):
        publish(partial, tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == NEW
    assert partial.read_bytes() == OLD


# Dies at the call of the name given: before it, or after it.
KILLED = """
import os, sys
from dpmodels.atomic_files import write_whole
path, name, when = sys.argv[1:]
real, calls = getattr(os, name), []
def dying(*given, **words):
    calls.append(given)
    if when == "before":
        os._exit(9)
    real(*given, **words)
    os._exit(9)
setattr(os, name, dying)
write_whole(path, b"new" * 2000, overwrite=True)
"""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", ["posix_fallocate", "fsync", "replace"])
def test_a_kill_leaves_the_old_file_or_the_new_one(tmp_path, name, when):
    (tmp_path / "a").write_bytes(OLD)
    ran = subprocess.run([sys.executable, "-c", KILLED, tmp_path / "a", name, when])
    assert ran.returncode == 9
    assert (tmp_path / "a").read_bytes() == (NEW if (name, when) == ("replace", "after") else OLD)


def test_targets_that_cannot_be_are_refused_first(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(OLD)
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "dangling").symlink_to(tmp_path / "gone")
    refused = {
        tmp_path / "nowhere" / "a": "folder does not exist",
        tmp_path / "file" / "a": "folder does not exist",
        tmp_path / ("n" * 300): "too long",
        tmp_path / "link": "is a link",
        tmp_path / "dangling": "is a link",
        tmp_path: "already exists",
    }
    for path, says in refused.items():
        for overwrite in (False, True):
            with pytest.raises(FrameError, match=says):
                require_target(path, overwrite=overwrite)
            with pytest.raises(FrameError):
                write_whole(path, NEW, overwrite=overwrite)
    with pytest.raises(FrameError, match="already exists"):
        require_target(tmp_path / "file")
    assert require_target(tmp_path / "file", overwrite=True) == tmp_path / "file"
    assert require_target(tmp_path / ("n" * 255)).name == "n" * 255
    monkeypatch.setattr(os, "open", failing(errno.EROFS))
    with pytest.raises(FrameError, match="takes no files \\(Read-only"):
        require_target(tmp_path / "a")
    monkeypatch.undo()
    assert contents(tmp_path) == {"file": OLD, "link": OLD}


@pytest.mark.parametrize("path", ["", "a\0b", b"a", 3, None])
def test_what_is_no_path_is_refused_by_type(path):
    with pytest.raises(ArgumentError, match="path="):
        require_target(path)


def test_what_is_read_is_never_written(tmp_path, monkeypatch):
    data = tmp_path / "rows.csv"
    data.write_bytes(OLD)
    (tmp_path / "hard").hardlink_to(data)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "part.parquet").write_bytes(OLD)
    (tmp_path / "around").symlink_to(tmp_path)
    monkeypatch.chdir(tmp_path)
    for path, never in [
        ("rows.csv", data),
        (tmp_path / "hard", data),
        (tmp_path / "around" / "rows.csv", "rows.csv"),
        ("./folder/../rows.csv", data),
        ("folder/part.parquet", tmp_path / "folder"),
        ("report.html", Path("around") / "report.html"),
    ]:
        with pytest.raises(ArgumentError, match="also read or written"):
            require_target(path, overwrite=True, never=[never])
    assert require_target("folder/new.html", never=["folder"]) == Path("folder/new.html")


def test_temporary_names_do_not_repeat(tmp_path):
    assert len({atomic_files._unused(tmp_path / "a") for _ in range(100)}) == 100
