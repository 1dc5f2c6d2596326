"""Values of variables: sealed for their row, opened when a call needs them, or where the operator has them shown. Never
logged.
"""

from collections.abc import Iterable
from uuid import UUID

from services.common.encryption import ENCRYPTION_KEY, Sealer, UnreadableSecret
from services.common.errors import FailedPrecondition
from services.tool_runner.sandbox_configs.model import MASK, SealedValue, Variable


class Vault:
    """Seals and opens, each value for the tenant and the variable it belongs to."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer
        self._overhead = len(sealer.seal(b"", ""))

    def seal(self, value: str, organization_id: UUID, variable_id: UUID) -> bytes:
        """Returns the sealed form."""
        return self._sealer.seal(value.encode(), _place(organization_id, variable_id))

    def open_all(self, organization_id: UUID, variables: Iterable[SealedValue]) -> dict[str, str]:
        """Returns the values by key; later ones win. Raises FailedPrecondition (CREDENTIALS_UNREADABLE)."""
        # Those that another one overrides are not opened.
        last = {variable.key: variable for variable in variables}
        return {key: self._open(organization_id, variable) for key, variable in last.items()}

    def mask(self, variable: Variable) -> str:
        """Returns what is shown of its value where values are not."""
        return MASK if variable.size > self._overhead else ""

    def show(self, organization_id: UUID, value: SealedValue) -> str:
        """Returns the value; the mask where it cannot be read, so that one lost key does not hide all others."""
        try:
            return self._open(organization_id, value)
        except FailedPrecondition:
            return MASK

    def _open(self, organization_id: UUID, variable: SealedValue) -> str:
        try:
            return self._sealer.open(variable.value, _place(organization_id, variable.id)).decode()
        except UnreadableSecret as error:
            raise FailedPrecondition(
                f"The stored value of the environment variable {variable.key} cannot be read: {error}. Give it a new "
                f"value, or start the tool runner with the {ENCRYPTION_KEY} it was stored under (several are "
                "separated by commas).",
                reason="CREDENTIALS_UNREADABLE",
            ) from None


def _place(organization_id: UUID, variable_id: UUID) -> str:
    return f"tool_runner.variables/{organization_id}/{variable_id}"
