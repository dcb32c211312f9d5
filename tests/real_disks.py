"""Real file systems of a test's own: small, so that they can be full, and with a plug that can be pulled.

They are ext4 in a file, over a loop device. Where that cannot be had (no root, no loop devices, no mkfs) tests are
skipped, and the reason has its name.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

#: <linux/ext4.h>: shut the file system down at once; with this flag not even its journal is written.
EXT4_IOC_SHUTDOWN = 0x8004587D
NO_LOG_FLUSH = (2).to_bytes(4, "little")

#: Nothing is written behind our back for so many seconds; only what somebody syncs.
MOUNT_OPTIONS = "loop,commit=300"


class Disk:
    """A file system that is mounted, or is not."""

    def __init__(self, image: Path, at: Path) -> None:
        self._image = image
        self.at = at
        self._is_mounted = False

    def plug_in(self) -> None:
        """Mount it; its journal is replayed."""
        _run("mount", "-o", MOUNT_OPTIONS, str(self._image), str(self.at))
        self._is_mounted = True

    def pull_the_plug(self) -> None:
        """Power is lost: what was not synced is gone, and whoever goes on writing gets errors."""
        descriptor = os.open(self.at, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, EXT4_IOC_SHUTDOWN, NO_LOG_FLUSH)
        finally:
            os.close(descriptor)

    def unplug(self) -> None:
        """Unmount it; nobody may have anything open there."""
        if self._is_mounted:
            _run("umount", str(self.at))
            self._is_mounted = False


@contextmanager
def disk_in(folder: Path, size: int) -> Iterator[Disk]:
    """A disk of so many bytes, at ``folder/disk``; whoever writes there has to be gone when the block ends."""
    if os.geteuid() != 0:
        pytest.skip("a disk of one's own needs root")
    for command in ("mkfs.ext4", "mount", "umount"):
        if shutil.which(command) is None:
            pytest.skip(f"a disk of one's own needs {command}")
    image, at = folder / "disk.image", folder / "disk"
    at.mkdir()
    with image.open("wb") as file:
        file.truncate(size)
    _run("mkfs.ext4", "-q", "-F", "-m", "0", str(image))
    disk = Disk(image, at)
    try:
        disk.plug_in()
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no loop device to be had: {error.stderr.strip()}")
    try:
        yield disk
    finally:
        disk.unplug()


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)
