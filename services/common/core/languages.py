"""The language of a text, as far as its words are stemmed by it. Pure.

A text is in the language of most of its small words. Who has too few of them, or as many of two languages, is stemmed
as English alone. The names are those of Snowball's stemmers in Postgres.
"""

import re
from collections import Counter
from collections.abc import Mapping

from services.common.core.words import index_words

_LOOKED_AT = 2_000
# Stems beside the English ones need room in the index, of which a text has a limit.
_LONGEST = 100_000
_SMALL_WORDS: Mapping[str, str] = {
    "english": "the and of to is was in it you that he she for with his her this have are not be on at they we i my "
    "me what where who when how does did do has had which their there would about from your",
    "german": "der die das und ist war nicht ich sie er es wir ein eine einen mit auf den dem des zu von im am was "
    "wo wer wann wie hat habe sind bei fur aus nach auch noch nur wenn",
    "french": "le la les un une des et est etait je tu il elle nous vous ne pas que qui ou quand comment du au aux "
    "dans sur pour avec ce cette son sa ses mon ma mes a ont",
    "spanish": "el la los las un una y es era yo tu ella nosotros no que quien donde cuando como del al en con por "
    "para su sus mi mis este esta se lo le ha han muy pero",
    "italian": "il lo la gli le un una e era io tu lui lei noi non che chi dove quando come del della dei delle nel "
    "nella con per su suo sua mio mia questo questa si ha hanno sono di",
    "portuguese": "o os as um uma e era eu ele ela nos nao que quem onde quando como do da dos das no na em com por "
    "para seu sua meu minha este esta se ao foi sao mas",
    "dutch": "de het een en is was ik jij hij zij wij niet wat waar wie wanneer hoe van in op met voor aan zijn "
    "haar mijn dit dat deze die heeft hebben naar ook nog",
    "swedish": "den det en ett och ar var jag du han hon vi inte vad vem hur av i pa med for till som att har hade "
    "min hans hennes denna detta fran eller",
    "danish": "den det en et og er var jeg du han hun vi ikke hvad hvor hvem hvornar hvordan af pa med til som har "
    "havde min hans hendes denne dette fra eller",
    "finnish": "ja on oli mina sina han me te he ei mika missa kuka milloin miten se tama etta kun mutta myos ovat "
    "minun hanen olen",
    "hungarian": "a az egy es van volt en te o mi nem mit hol ki mikor hogyan hogy ez azt meg is csak mert de",
    "turkish": "bir ve bu su o ben sen biz siz degil ne nerede kim zaman nasil ile icin de da mi cok gibi ama",
    "romanian": "si este era eu tu el ea noi nu ce unde cine cand cum un o de la in pe cu pentru care sau din lui",
    "russian": "и в не на я ты он она мы что где кто когда как это с по к у его ее мой был была было есть но из",
}
_LANGUAGES_OF: Mapping[str, tuple[str, ...]] = {
    word: tuple(language for language, words in _SMALL_WORDS.items() if word in words.split())
    for words in _SMALL_WORDS.values()
    for word in words.split()
}
# Whole scripts of one language that has a stemmer.
_SCRIPTS = (
    (re.compile("[\u0370-\u03ff]{3}"), "greek"),
    (re.compile("[\u0530-\u058f]{3}"), "armenian"),
    (re.compile("[\u0600-\u06ff]{3}"), "arabic"),
    (re.compile("[\u0900-\u097f]{3}"), "hindi"),
    (re.compile("[\u0b80-\u0bff]{3}"), "tamil"),
    (re.compile("[\u0400-\u04ff]{3}"), "russian"),
)
LANGUAGES = frozenset(_SMALL_WORDS) | {language for _, language in _SCRIPTS}


def language_of(text: str) -> str | None:
    """Returns the language whose stems find a text beside the English ones; None for English, and where none shows."""
    if len(text) > _LONGEST:
        return None
    beginning = text[:_LOOKED_AT]
    counts = Counter(
        language for word in index_words(beginning) for language in _LANGUAGES_OF.get(word, ())
    ).most_common(2)
    if counts and (len(counts) == 1 or counts[0][1] > counts[1][1]):
        language = counts[0][0]
        return None if language == "english" else language
    return next((language for script, language in _SCRIPTS if script.search(beginning)), None)
