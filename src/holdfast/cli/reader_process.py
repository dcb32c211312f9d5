"""The log reader of a broker, as its child: started with it, started again when it dies, gone when the broker is.

Its standard input is a pipe that only we hold: whatever ends us ends it. It is in a session of its own, so that Ctrl-C
reaches the broker alone.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Self

from holdfast.runtime import logs
from holdfast.runtime.addresses import Address

__all__ = ["ReaderProcess"]

MODULE: Final = "holdfast.pipeline.reader"
STOP_SECONDS: Final = 5.0
#: One that dies is started again so much later; one that dies soon, twice as much later each time.
AGAIN_SECONDS: Final = 1.0
AGAIN_SECONDS_MAX: Final = 30.0
SOON_SECONDS: Final = 10.0


class ReaderProcess:
    """While the block lasts there is a log reader, if it can be had; ``folder`` is that of the broker's store."""

    def __init__(self, node: str, folder: Path, listen: Address, *, insecure: bool, log_format: str) -> None:
        self._fields = {"node": node, "reader": str(listen)}
        self._command = [sys.executable, "-m", MODULE, "--leash", "--folder", str(folder)]
        self._command += ["--listen", str(listen), "--node", node, "--log-format", log_format]
        self._command += ["--insecure"] if insecure else []
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._keep, name="log reader", daemon=True)

    def __enter__(self) -> Self:
        if find_spec("pyarrow") is None:
            advice = "install pyarrow beside the broker: pip install 'holdfast[spark]'"
            logs.log("warning", "there will be no log reader", {**self._fields, "problem": advice})
        else:
            self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._stopping.set()
        with self._lock:
            if self._process is not None:
                self._process.terminate()
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)
        if self._process is not None and self._process.poll() is None:
            self._process.kill()

    def _keep(self) -> None:
        pause = AGAIN_SECONDS
        while True:
            began = time.monotonic()
            with self._lock:
                if self._stopping.is_set():
                    return
                self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, start_new_session=True)
            status = self._process.wait()
            if self._process.stdin is not None:
                self._process.stdin.close()
            if self._stopping.is_set():
                return
            pause = AGAIN_SECONDS if time.monotonic() - began > SOON_SECONDS else pause * 2
            pause = min(pause, AGAIN_SECONDS_MAX)
            fields = {**self._fields, "status": status, "after_seconds": pause}
            logs.log("warning", "the log reader ended and is started again", fields)
            self._stopping.wait(pause)
