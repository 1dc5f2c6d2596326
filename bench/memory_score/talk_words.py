"""What people talk about in `talk.py`. Pure."""

from bench.memory_score.vocabulary import Vocabulary

PEOPLE = ("Caroline", "Melanie", "Jon", "Gina", "Tim", "Nora", "Deborah", "Evan", "Sam", "Priya", "Marcus", "Lena")
PETS = (
    "puppy",
    "kitten",
    "parrot",
    "tortoise",
    "hamster",
    "rabbit",
    "goldfish",
    "pony",
    "lizard",
    "hedgehog",
    "canary",
    "goat",
)
NAMES = ("Biscuit", "Oscar", "Pepper", "Luna", "Toast", "Shadow", "Pixel", "Mango", "Clover", "Waffles")
HOBBIES = (
    "pottery",
    "salsa",
    "yoga",
    "painting",
    "chess",
    "guitar",
    "sewing",
    "fencing",
    "archery",
    "calligraphy",
    "juggling",
    "swimming",
    "boxing",
    "knitting",
)
PLACES = ("Bristol", "Leeds", "Porto", "Ghent", "Lyon", "Malmo", "Turin", "Cork", "Basel", "Gdansk", "Bergen", "Vienna")
# Words that mean the same.
CONCEPTS = (
    ("car", "automobile", "vehicle"),
    ("couch", "sofa", "settee"),
    ("bike", "bicycle", "two-wheeler"),
    ("laptop", "notebook", "computer"),
    ("phone", "mobile", "handset"),
    ("fridge", "refrigerator", "icebox"),
    ("jacket", "coat", "parka"),
    ("oven", "stove", "cooker"),
    ("telly", "television", "screen"),
    ("rug", "carpet", "mat"),
    ("cottage", "cabin", "lodge"),
    ("camera", "camcorder", "webcam"),
)
THINGS = tuple(word for group in CONCEPTS for word in group[:2])
SCENES = (
    "a lighthouse at dusk",
    "a wedding cake with roses",
    "two children on a swing",
    "a red kayak on a lake",
    "a bookshelf full of comics",
    "a mural of a whale",
    "a snowman with a scarf",
    "a vineyard in autumn",
    "a market stall with lemons",
    "a waterfall behind a bridge",
    "a birthday party with balloons",
    "an old tram in the rain",
)
LIKES = (
    "jazz records",
    "horror films",
    "crossword puzzles",
    "camping trips",
    "karaoke nights",
    "board games",
    "spicy noodles",
    "long hikes",
    "science fiction",
    "gardening shows",
    "football matches",
    "stand-up comedy",
)
VERDICTS = (
    "Honestly, not for me. I get bored after five minutes.",
    "Same here, it's the best part of my week!",
    "Hmm, it depends on my mood.",
    "I used to, but not any more.",
    "Ugh, please no.",
)
DISHES = (
    "lasagne",
    "dumplings",
    "paella",
    "goulash",
    "ratatouille",
    "pancakes",
    "ramen",
    "moussaka",
    "chili",
    "risotto",
)
CHATTER = (
    "Hey {other}! How have you been?",
    "Haha, right?",
    "That sounds great, {other}!",
    "Thanks, {other}. That means a lot.",
    "Tell me more!",
    "What is new with you?",
    "I know what you mean.",
    "Oh no. What happened?",
    "Long week. You know how it is.",
    "Where does the time go?",
    "Anyway, what did you think of it?",
    "Good to hear from you, {other}!",
    "Who would have thought?",
    "We should catch up in person some time.",
    "Did you get some rest at last?",
    "It is what it is.",
)
# What an embedding knows: that words mean the same, and that they mean something at all.
_CONTENT = (
    *PETS,
    *HOBBIES,
    *DISHES,
    *(word for phrase in (*SCENES, *LIKES) for word in phrase.split() if len(word) > 3),
)
WORDS = Vocabulary(
    (*CONCEPTS, *((word,) for word in dict.fromkeys(_CONTENT))),
    [name.lower() for name in (*PEOPLE, *NAMES)],
    [name.lower() for name in PLACES],
    (),
)
