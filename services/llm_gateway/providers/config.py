"""What a provider needs to know to be constructed."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ProviderConfig:
    """One configured provider. `name` begins its models' handles; times are in seconds.

    `key_setting` and `url_setting` name what an operator would change, for error messages. `stall_seconds` is
    the longest wait for a stream's first byte and between its chunks, `reply_seconds` for a whole reply.
    """

    name: str
    type: str
    base_url: str
    api_key: str = field(repr=False)
    key_setting: str
    url_setting: str
    # Whether base_url is the vendor's own: then its models are what the table says.
    is_vendor: bool
    stall_seconds: float = 300.0
    reply_seconds: float = 600.0
