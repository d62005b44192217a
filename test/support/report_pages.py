"""Reports: the numbers that their figures hold, and pages in Chromium without a window.

Chromium is driven by the DevTools protocol over a pipe.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np


def unpacked(values: Mapping[str, str]) -> np.ndarray:
    """Return the numbers that a figure holds packed."""
    return np.frombuffer(base64.b64decode(values['packed']), dtype='<f4')


#: reason of tests that are skipped
NO_BROWSER = ('no chromium: on Debian, apt-get install chromium; reports were not opened in a '
              'browser')
NAMES = ('chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable')
#: a browser that is silent for so long is dead; a busy machine is no reason to fail
PATIENCE = 300.0
FLAGS = ('--headless=new', '--no-sandbox', '--remote-debugging-pipe', '--hide-scrollbars',
         '--no-first-run', '--disable-extensions', '--disable-background-networking',
         '--disable-component-update', '--disable-dev-shm-usage', '--mute-audio',
         '--use-angle=swiftshader', '--enable-unsafe-swiftshader')
#: turns into the browser, which reads from descriptor 3 and writes to 4
AT_3_AND_4 = """
import fcntl, os, sys
read, write = (fcntl.fcntl(int(fd), fcntl.F_DUPFD, 10) for fd in sys.argv[1:3])
os.dup2(read, 3)
os.dup2(write, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def browser_path() -> str | None:
    """Return the path of a chromium, None where there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class PageError(Exception):
    """What the page, or the browser, answered instead of a result."""


class Page:
    """A page of the browser; errors of its scripts and requests it makes are kept."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read = write, read
        self._buffer = b''
        self._number = 0
        self._session: str | None = None
        self.errors: list[str] = []
        self.requests: list[str] = []
        target = self.call('Target.createTarget', url='about:blank')['targetId']
        self._session = self.call('Target.attachToTarget', targetId=target,
                                  flatten=True)['sessionId']
        for domain in ('Inspector', 'Page', 'Runtime', 'Log', 'Network'):
            self.call(f'{domain}.enable')

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send one command and return its result; events that come before it are kept."""
        self._number += 1
        message = {'id': self._number, 'method': method, 'params': parameters}
        if self._session is not None:
            message['sessionId'] = self._session
        os.write(self._write, json.dumps(message).encode() + b'\0')
        while True:
            answer = self._next()
            if answer.get('id') == self._number:
                if 'error' in answer:
                    raise PageError(f'{method}: {answer["error"]}')
                return dict(answer['result'])
            self._event(answer)

    def _next(self) -> dict[str, Any]:
        until = time.monotonic() + PATIENCE
        while b'\0' not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(until - time.monotonic(), 0.0))
            read = os.read(self._read, 1 << 20) if ready else b''
            if not read:
                raise PageError('the browser has left' if ready else 'the browser is silent')
            self._buffer += read
        text, _, self._buffer = self._buffer.partition(b'\0')
        return dict(json.loads(text))

    def _event(self, event: dict[str, Any]) -> None:
        name, told = event.get('method'), event.get('params', {})
        if name == 'Inspector.targetCrashed':
            raise PageError('the process of the page has died')
        if name == 'Runtime.exceptionThrown':
            self.errors.append(str(told['exceptionDetails']))
        elif name == 'Runtime.consoleAPICalled' and told['type'] in ('error', 'assert'):
            self.errors.append(str(told['args']))
        elif name == 'Log.entryAdded' and told['entry']['level'] == 'error':
            self.errors.append(str(told['entry']))
        elif name == 'Network.requestWillBeSent':
            self.requests.append(told['request']['url'])

    def run(self, script: str) -> Any:
        """Return what JavaScript evaluates to, awaited."""
        found = self.call('Runtime.evaluate', expression=script, awaitPromise=True,
                          returnByValue=True)
        if 'exceptionDetails' in found:
            raise PageError(str(found['exceptionDetails']))
        return found['result'].get('value')

    def until(self, condition: str) -> None:
        """Wait until JavaScript evaluates to true, in the page, frame by frame."""
        self.run(f'new Promise((go) => {{ const look = () => ({condition}) ? go(true) : '
                 'setTimeout(look, 20); look(); })')

    def size(self, width: int, height: int, phone: bool = False) -> None:
        """Give the page a size [CSS px]."""
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height,
                  deviceScaleFactor=1, mobile=phone)

    def prefer(self, scheme: str) -> None:
        """Say which colour scheme the reader prefers, light or dark."""
        self.call('Emulation.setEmulatedMedia', features=[
            {'name': 'prefers-color-scheme', 'value': scheme}])

    def open(self, path: Path) -> None:
        """Open a file and wait until all its plots are drawn."""
        self.call('Page.navigate', url=path.as_uri())
        self.until("location.protocol === 'file:' && document.readyState === 'complete' && "
                   "document.documentElement.dataset.drawn === 'all'")

    def picture(self, path: Path, clip: dict[str, float] | None = None) -> None:
        """Save the whole page, or a part of it, as PNG."""
        more = {'clip': {**clip, 'scale': 1}} if clip else {}
        shot = self.call('Page.captureScreenshot', format='png', captureBeyondViewport=True,
                         **more)
        path.write_bytes(base64.b64decode(shot['data']))

    def paper(self, path: Path) -> None:
        """Print the page to a PDF file."""
        found = self.call('Page.printToPDF', printBackground=True, preferCSSPageSize=True)
        path.write_bytes(base64.b64decode(found['data']))


@contextmanager
def browser(program: str, profile: Path) -> Iterator[Page]:
    """Start chromium with a ``profile`` folder of its own, give a page, end it."""
    theirs_read, ours_write = os.pipe()
    ours_read, theirs_write = os.pipe()

    command = [program, *FLAGS, f'--user-data-dir={profile}', 'about:blank']
    with open(profile / 'log', 'wb') as log:
        process = subprocess.Popen(
            [sys.executable, '-ISc', AT_3_AND_4, str(theirs_read), str(theirs_write), *command],
            pass_fds=(theirs_read, theirs_write), stdout=log, stderr=log,
            env={**os.environ, 'HOME': str(profile)})
    os.close(theirs_read)
    os.close(theirs_write)
    try:
        yield Page(ours_write, ours_read)
    finally:
        os.close(ours_write)
        os.close(ours_read)
        process.terminate()
        try:
            process.wait(20.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
