"""The settings of recording calls and of replaying them, for every provider."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from services.common.settings import Env, SettingsError
from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.core.provider_types import TYPES
from services.llm_gateway.recordings.recording import DESCRIBED
from services.llm_gateway.recordings.replayer import all_recordings

RECORD, REPLAY, MATCH = "LOCI_LLM_RECORD", "LOCI_LLM_REPLAY", "LOCI_LLM_REPLAY_MATCH"
# What stands where a key is wanted and no network is.
_KEY = "replayed"


@dataclass(frozen=True, slots=True)
class Recordings:
    """Folders, empty for neither; see ProviderConfig."""

    record_to: str = ""
    replay_from: str = ""
    in_order: bool = False

    @classmethod
    def read(cls, env: Env) -> "Recordings":
        """Raises SettingsError."""
        record, replay = (_folder(env, name) for name in (RECORD, REPLAY))
        if record and replay:
            raise SettingsError(f"{RECORD} and {REPLAY} are both set; a call is either made or replayed: unset one")
        if replay and not Path(replay).is_dir():
            example = f"{REPLAY}=~/recording"
            raise SettingsError(f"{REPLAY} is {replay!r}; expected a folder that {RECORD} wrote, for example {example}")
        in_order = env.choice(MATCH, ("exact", "order"), default="exact") == "order"
        return cls(record, replay, in_order)

    def apply(self, config: ProviderConfig) -> ProviderConfig:
        """Returns the provider as it is to be made."""
        if not self.record_to and not self.replay_from:
            return config
        return replace(config, record_to=self.record_to, replay_from=self.replay_from, replay_in_order=self.in_order)

    def merge(self, configs: Iterable[ProviderConfig]) -> Iterator[ProviderConfig]:
        """Yields the configured providers; in a replay those that were recorded come instead of their namesakes."""
        recorded = {config.name: config for config in self._recordings()}
        yield from (config for config in configs if config.name not in recorded)
        yield from recorded.values()

    def _recordings(self) -> Iterator[ProviderConfig]:
        for recorded in all_recordings(self.replay_from) if self.replay_from else ():
            if recorded.provider.keys() >= DESCRIBED and recorded.provider["type"] in TYPES:
                yield _config(recorded.provider)


def _config(described: dict[str, Any]) -> ProviderConfig:
    """Returns a provider as recorder.py described it."""
    row = TYPES[described["type"]]
    return ProviderConfig(
        **{name: described[name] for name in DESCRIBED},
        api_key=_KEY,
        access_key=_KEY if row.access_key_settings else "",
        key_setting=row.key_settings[0] if row.key_settings else "",
        url_setting=row.url_settings[0] if row.url_settings else "",
    )


def _folder(env: Env, name: str) -> str:
    folder = env.path(name, default=None)
    return "" if folder is None else str(folder)
