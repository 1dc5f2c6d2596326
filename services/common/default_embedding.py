"""The embedding model of who names none, by the environment."""

from services.common.settings import Env


def default_embedding(env: Env) -> str:
    """Returns a handle: the one that is set, else that of the model on this machine, else `loci/hash`.

    Raises SettingsError.
    """
    place = env.text("LOCI_LOCAL_EMBEDDING", default="")
    return env.text("LOCI_DEFAULT_EMBEDDING", default=f"local/{local_name(place)}" if place else "loci/hash")


def local_name(place: str) -> str:
    """Returns the name of a model by its folder, or by its name on a hub: `owner/name@revision`."""
    return place.rstrip("/").rpartition("/")[2].partition("@")[0]
