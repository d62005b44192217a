"""A folder with the information of recordings, one file each, kept for the next time."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from robot_dynid.errors import DynIdError
from robot_dynid.identification.by_recording import RecordedInformation
from robot_dynid.io.information_file import SUFFIX, load_information, save_information
from robot_dynid.signals.windows import file_of


@dataclass(frozen=True)
class InformationFolder:
    """Information by the content of recordings, see `by_recording.Keeper`."""

    path: str

    def load(
        self, source: str, digest: str, key: str
    ) -> tuple[RecordedInformation | None, str]:
        """Return the information of a recording, None where none can be used, and why."""
        place = self._place(source, digest)
        if not place.exists():
            return None, ''
        try:
            found = load_information(place)
        except DynIdError as error:
            return None, str(error)
        if found.record.recipe_digest != key or digest not in found.record.recording_digests:
            return None, f'{place}: was made with other choices, or by another version'
        return found, ''

    def save(self, made: RecordedInformation, source: str, digest: str) -> None:
        """Keep the information of a recording; a file is there whole or not at all.

        What has its name was looked at, and is none that can be used, or was made meanwhile by
        another process, which may read it at any time: it is replaced, and never missing.
        """
        save_information(made, self._place(source, digest), mark=None)

    def _place(self, source: str, digest: str) -> Path:
        file = file_of(source.partition(', ')[0])
        content = hashlib.sha256(f'{digest} {source.replace(file, "")}'.encode()).hexdigest()
        return Path(self.path) / f'{Path(file).name}-{content[:12]}{SUFFIX}'
