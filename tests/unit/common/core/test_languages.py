"""The language that a text is stemmed in."""

import pytest

from services.common.core.languages import LANGUAGES, language_of


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Wo wohnt Ada jetzt?", "german"),
        ("Les enfants jouaient dans le jardin.", "french"),
        ("¿Dónde vive Ada?", "spanish"),
        ("Gli amici parlavano della partita.", "italian"),
        ("Waar woont Ada?", "dutch"),
        ("Где живёт Ада?", "russian"),
        ("Καλημέρα κόσμε", "greek"),
        ("हिन्दी भाषा", "hindi"),
        ("The cats were running in the garden.", None),
        ("invoice 4711", None),
        ("東京に行きました", None),
        ("a b c", None),
        ("", None),
        ("Der Hund und die Katze. " * 10_000, None),
    ],
)
def test_what_a_text_is_in(text: str, language: str | None) -> None:
    assert language_of(text) == language
    assert language is None or language in LANGUAGES


def test_a_long_text_is_told_by_its_beginning() -> None:
    assert language_of("Der Hund und die Katze sind im Haus. " + "The cat and the dog. " * 200) is None
    assert language_of("Der Hund und die Katze sind im Haus. " * 60 + "The cat and the dog. " * 1_000) == "german"
