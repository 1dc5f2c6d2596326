"""Thousands of histories: whatever happens in compaction, the window fits, is sound, and nothing is lost."""

from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from services.agent.core.facts import Settings
from services.agent.core.messages import Message, Text, text_of
from services.agent.core.ports import BlockView, DirectoryView, FileView, MemoryView
from services.agent.core.ports_journal import Prompt
from services.agent.core.prompt.cuts import fit_prompt
from services.agent.core.prompt.system_prompt import compile_prompt
from services.agent.core.summaries.bare_summary import bare_summary
from services.agent.core.summaries.summary import clip_summary, pack, summary_of, summary_tokens
from services.agent.core.summaries.transcript import SummaryRequest, request, request_to_itself, transcript
from services.agent.core.window.budget import FILL, LEAST_ROOM
from services.agent.core.window.compaction import CompactionSettings, Mode, plan, plans
from services.agent.core.window.context import MOST_BYTES, fit, pinned_tokens, sendable, shortenings, waiting_place
from services.agent.core.window.sizes import estimate_text
from tests.unit.agent.histories import NOW, STATS, Story, load, message, sound, stories, tokens

SETTINGS = CompactionSettings()
NO_ID = UUID(int=0)
windows = st.integers(800, 200_000)
# The part of the window that the prompt takes.
prompts = st.floats(0, 0.95)
many = settings(max_examples=300, deadline=None)

Summariser = Callable[[SummaryRequest], str | None]


def words(sent: list[Message]) -> list[str]:
    """Returns the messages to the model, without the ids of calls."""
    return [f"{each.role} {text_of(each)}" for each in sent]


def says_nothing(asked: SummaryRequest) -> str | None:
    return None


def babbles(asked: SummaryRequest) -> str | None:
    return "bla " * 100_000


def lying(window: int) -> Summariser:
    """A model whose window is 40 % smaller than it says."""

    def answer(asked: SummaryRequest) -> str | None:
        size = tokens(asked.history) + estimate_text(asked.prompt or "")
        return "in short" if size <= 0.6 * window else None

    return answer


def compact(history: list[Message], mode: Mode, summarise: Summariser, window: int, fixed: int) -> list[Message]:
    """Compaction as the loop does it: each cut is tried, and what no model summarises, is summarised without one."""
    cut = None
    for cut in plans(history, mode, SETTINGS, window=window, fixed=fixed):
        asked: SummaryRequest | None = request(history[: cut.kept_from], SETTINGS, cut.mode, window=window)
        if cut.mode.by_itself:
            asked = request_to_itself(history[: cut.kept_from], SETTINGS, cut.mode, window=window, fixed=fixed)
        if asked is not None and (written := summarise(asked)) is not None:
            return [stored(clip_summary(written, SETTINGS.clip_chars, window)), *history[cut.kept_from :]]
    if cut is None:
        return history
    bare = bare_summary(history[: cut.kept_from], budget=summary_tokens(window))
    return [stored(bare), *history[cut.kept_from :]]


def stored(text: str) -> Message:
    return message(10_000, "summary", Text(pack(text, at=NOW, stats=STATS)))


@many
@given(stories, st.sampled_from(Mode), windows, prompts)
def test_a_cut_parts_no_pair_and_loses_nothing(story: Story, mode: Mode, window: int, prompt: float) -> None:
    history = story.history()
    cut = plan(history, mode, SETTINGS, window=window, fixed=int(window * prompt))
    if cut is None:
        return
    summarised, kept = history[: cut.kept_from], history[cut.kept_from :]
    assert kept or mode in (Mode.ALL, Mode.SELF_COMPACT_ALL)
    assert not kept or kept[0].role in ("user", "assistant")
    assert all(each.role != "summary" for each in kept)
    assert any(each.role != "summary" for each in summarised)
    assert cut.saved == tokens(summarised)
    assert words(sendable(summarised)) + words(sendable(kept)) == words(sendable(history))
    if (waiting := waiting_place(history)) is not None:
        assert waiting >= cut.kept_from


@many
@given(stories, windows, prompts, st.sampled_from((1, 2, 16)))
def test_whatever_is_stored_fits(story: Story, window: int, prompt: float, share: int) -> None:
    history = story.history()
    fixed = int(window * prompt)
    sent = sendable(history)
    shown = fit(sent, window=window, fixed=fixed, share=share)
    assert sound(sent)
    assert sound(shown)
    assert bool(shown) == bool(sent)
    assert tokens(shown) <= max((int(window * FILL) - fixed) // share, LEAST_ROOM)
    assert load(shown) <= MOST_BYTES // share
    left_out = [each for each in shown if "earlier messages do not fit" in text_of(each)]
    # A call and its return may have become one message.
    assert left_out or len(shown) >= len(sent) - 1


@many
@given(
    stories,
    st.sampled_from(Mode),
    windows,
    prompts,
    st.sampled_from((says_nothing, babbles, lying)),
)
def test_whatever_the_summariser_does_the_turn_goes_on(
    story: Story, mode: Mode, window: int, prompt: float, kind: Callable[..., Summariser] | Summariser
) -> None:
    history = story.history()
    fixed = int(window * prompt)
    summarise: Summariser = lying(window) if kind is lying else kind  # type: ignore[assignment]
    compacted = compact(history, mode, summarise, window, fixed)
    kept = [each for each in compacted if each.id != stored("").id]
    assert kept == history[len(history) - len(kept) :]
    shown = fit(sendable(compacted), window=window, fixed=fixed)
    assert sound(shown)
    assert tokens(shown) + fixed <= FILL * window or tokens(shown) <= LEAST_ROOM
    if len(kept) < len(history):
        assert shown[0].role in ("summary", "user")
        assert "conversation_search" in text_of(shown[0]) or tokens(shown) < 2 * LEAST_ROOM


@many
@given(stories, st.integers(1, 60_000), st.sampled_from((None, 50, 50_000)))
def test_what_a_summariser_is_shown_fits_it(story: Story, budget: int, most: int | None) -> None:
    history = story.history()
    assert estimate_text(transcript(history, most, budget=budget)) <= budget
    assert estimate_text(bare_summary(history, budget=budget)) <= budget
    if history and budget >= 2_000:
        asked = request(history, SETTINGS, Mode.ALL, window=budget)
        assert tokens(asked.history) + estimate_text(asked.prompt or "") <= 0.9 * budget


@many
@given(stories, windows)
def test_the_bare_summary_tells_of_what_was_summarised_before(story: Story, window: int) -> None:
    history = story.history()
    written = bare_summary(history, budget=summary_tokens(window))
    for each in history:
        if each.role == "summary":
            assert written[:20] == summary_of(each)[:20]
    assert all(each.role == "summary" for each in history) or "conversation_search" in written


@settings(max_examples=100, deadline=None)
@given(stories, windows, prompts)
def test_a_model_that_refuses_is_shown_less(story: Story, window: int, prompt: float) -> None:
    history = story.history()
    steps = list(shortenings(sendable(history), window=window, fixed=int(window * prompt), run_id=UUID(int=1)))
    sizes = [tokens(step) for step in steps]
    assert all(map(sound, steps))
    # A picture that becomes words may let more messages in, once.
    assert sizes[1:] == sorted(sizes[1:], reverse=True)


# Files ----------------------------------------------------------------------------------------------------------

opened = st.lists(st.integers(0, 60_000), max_size=4)
blocks = st.lists(st.integers(0, 30_000), max_size=3)


def shown_memory(files: list[int], values: list[int], names: int) -> MemoryView:
    """A memory with open files and blocks of these sizes, and so many files that are closed."""
    views = [
        FileView(
            UUID(int=place), f"docs/{place}", True, f"[Lines 1 to 900 of 900 are in view.]\n1: {place} {'f' * size}"
        )
        for place, size in enumerate(files)
    ]
    views += [FileView(UUID(int=100 + place), f"docs/closed-{place}") for place in range(names)]
    given_blocks = [BlockView(UUID(int=place), 1, f"b{place}", "b" * size, 50_000) for place, size in enumerate(values)]
    return MemoryView(tuple(given_blocks), directories=(DirectoryView("docs", files=tuple(views), file_count=99),))


def compile_for(view: MemoryView, window: int) -> Prompt:
    set_to = Settings(1, "loci/demo", "loci/hash", "Be kind.", window)
    return compile_prompt(set_to, view, agent_id=NO_ID, conversation_id=NO_ID, recalled=0, now=NOW, last=None)


@settings(max_examples=100, deadline=None)
@given(stories, windows, opened, blocks, st.integers(0, 100), st.floats(0, 0.3))
def test_files_give_way_before_the_newest_message_and_blocks_after_it(
    story: Story, window: int, files: list[int], values: list[int], names: int, tools: float
) -> None:
    history, of_tools = sendable(story.history()), int(window * tools)
    view = shown_memory(files, values, names)
    prompt = fit_prompt(
        view,
        lambda each: compile_for(each, window),
        window=window,
        of_tools=of_tools,
        newest=lambda: pinned_tokens(history),
    )
    fixed = estimate_text(prompt.text) + of_tools
    bare = compile_for(replace(view, blocks=(), directories=()), window).text
    assert fixed <= FILL * window - LEAST_ROOM or estimate_text(prompt.text) <= estimate_text(bare) + 600
    of_files = prompt.text.count("f") - compile_for(shown_memory([0] * len(files), values, names), window).text.count(
        "f"
    )
    # So long as lines of a file are in view, the newest messages and the blocks are whole.
    if of_files > 200:
        assert pinned_tokens(history) + fixed <= FILL * window + 2
        assert all("b" * size in prompt.text for size in values)
    shown = fit(history, window=window, fixed=fixed)
    assert sound(shown)
    assert tokens(shown) <= max(int(window * FILL) - fixed, LEAST_ROOM)
