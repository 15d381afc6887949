"""What was purged is found again however it is written, and nothing else is touched."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from csmd.errors import BadInput
from csmd.privacy.fingerprints import (
    PURGED,
    Marks,
    Needle,
    check_text,
    make_mark,
    remove_purged,
    replace_spans,
    split_words,
)
from csmd.store import byte_search

KEY = b"k" * 32

#: (what was purged, a text, what is stored of it)
CASES = [
    ("hunter2 is it", "The pass, HUNTER2 is it.", "The pass, [purged]."),
    ("Zanzibar Quokka", "a zanzibar\n  > **quokka** b", "a [purged]** b"),
    ("Zanzibar Quokka", '{"x":"Zanzibar\\nQuokka\\n"}', '{"x":"[purged]\\n"}'),
    ("Zanzibar Quokka", "ZanzibarQuokka, Zanzibar and a Quokka, Quokka Zanzibar", None),
    ("Zanzibar Quokka", "zanzibars quokka, zanzibar quokkas", None),
    ("zanzibar-quokka", "the zanzibar_quokka", "the [purged]"),
    ("Café au lait", "cafe\u0301 AU\u00a0lait!", "[purged]!"),
    ("Straße 12", "STRASSE 12", "[purged]"),
    ("秘密の言葉", "これは秘密の言葉です", "これは[purged]です"),
    ("soft hyphen", "so\u00adft hy\u200bphen", "[purged]"),
    ("aaaa aaaa", "aaaa aaaa aaaa", "[purged]"),
    ("four", "four four", "[purged] [purged]"),
    ("purged once", "[purged] once", "[[purged]"),
    ("secret words", "[purged] words", None),
]


@pytest.mark.parametrize(("purged", "text", "stored"), CASES)
def test_purged_text_is_known_in_whatever_form_it_comes(purged: str, text: str, stored: str | None) -> None:
    marks = Marks([make_mark(purged, KEY)], KEY)
    assert remove_purged(text, marks)[0] == (text if stored is None else stored)
    assert remove_purged(text, Marks([make_mark(purged, b"another key" * 3)], KEY))[0] == text


@pytest.mark.parametrize(
    ("purged", "text", "stored"),
    [
        ("unter2", "my Hunter2x!", "my [purged]!"),
        ("bar quo", "Zanzibar\tQUOKKA", "[purged]"),
        ("密の言", "これは秘密の言葉です", "これは秘[purged]葉です"),
        ("unter2", "hun ter2", "hun ter2"),
    ],
)
def test_a_part_of_a_word_takes_the_whole_word_and_comes_back_as_little(purged: str, text: str, stored: str) -> None:
    spans = Needle(purged).spans(text)
    assert replace_spans(text, spans)[0] == stored
    marks = Marks([make_mark(text[start:end], KEY) for start, end in spans], KEY)
    assert remove_purged(text, marks)[0] == stored


@pytest.mark.parametrize(
    ("text", "held", "times"),
    [
        ("Café au lait", "x CAFÉ  au\nlait y", 1),
        ("Café", "x café y cafe\u0301 z", 2),
        ("Straße", "strasse STRASSE Straße", 3),
        ("秘密の言葉", "これは秘密の言葉です", 1),
        ("Zanzibar quokka", '{"a":"zanzibar\\nQUOKKA"}', 1),
        ("Zanzibar quokka", "zanzibar, and a quokka", 0),
    ],
)
def test_a_text_is_found_in_the_bytes_of_a_file_across_every_seam(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, held: str, times: int
) -> None:
    file = tmp_path / "held"
    for before in (0, 90, 99, 100, 101, 140, 150, 200):
        file.write_bytes(b"\xff" * before + b" " + held.encode() + b" " + b"." * 250)
        for size, overlap in ((4096, 1024), (100, 60)):
            monkeypatch.setattr(byte_search, "CHUNK_BYTES", size)
            monkeypatch.setattr(byte_search, "OVERLAP_BYTES", overlap)
            assert byte_search.count_in_bytes(file, [Needle(text)]) == times, (before, size)


def test_what_is_left_is_looked_for_in_csmds_files_and_in_no_package_or_model_that_lies_beside_them(
    tmp_path: Path,
) -> None:
    held = ("note.md", "memory/deep/page.md", "venv/lib/python3/site-packages/other/words.py", "models/words.txt",
            "tools/env/bin/words")  # fmt: skip
    for name in (*held, "venv/pyvenv.cfg", "tools/env/pyvenv.cfg"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("Berlin\n")
    left, there, _ = byte_search.scan_files(["Berlin"], [], own=[tmp_path], hosts=[tmp_path / "venv"])
    assert sorted(note.path for note in left) == [str(tmp_path / name) for name in ("memory/deep/page.md", "note.md")]
    assert len(there) == 2, "the assistant's files are named wherever they lie"
    left, _, _ = byte_search.scan_files(["Berlin"], [], own=[tmp_path / "venv"], hosts=[])
    assert len(left) == 2, "a home that is itself an environment is looked at"


@pytest.mark.parametrize("little", ["", "abc", "....", "a b c", " [purged] ", "12 3"])
def test_what_would_take_too_much_with_it_is_refused(little: str) -> None:
    with pytest.raises(BadInput):
        check_text(little)
    assert check_text("12 34") == "12 34"


#: Letters of several kinds: with accents, that fold to two, of a script without spaces, of two bytes and of four.
LETTERS = st.text(alphabet="abcdeABCDEéßıKſ漢字кЖ𝒳19", min_size=2, max_size=6)
PHRASES = st.lists(LETTERS, min_size=1, max_size=4).filter(
    lambda phrase: sum(map(len, split_words(" ".join(phrase)))) >= 4
)
GAPS = st.text(alphabet=" \n\t\r\u00a0\u2028-_*.\"'>|", min_size=1, max_size=4)
AROUND = st.text(alphabet="abcde ABC\n.,漢é\\n[]", max_size=30)


@settings(max_examples=60)
@drawn(phrase=PHRASES, gaps=st.lists(GAPS, min_size=3, max_size=3), around=st.tuples(AROUND, AROUND, AROUND),
       change=st.sampled_from([str, str.upper, str.lower, str.title, str.swapcase]))  # fmt: skip
def test_no_occurrence_survives_in_any_form(
    phrase: list[str], gaps: list[str], around: tuple[str, str, str], change: object
) -> None:
    purged = " ".join(phrase)
    form = "".join(part for pair in zip(phrase, [*gaps[: len(phrase) - 1], ""], strict=True) for part in pair)
    form = change(form)  # type: ignore[operator]
    if split_words(form) != split_words(purged):  # upper case makes another word of it, as of a dotless i
        return
    text = f"{around[0]} {form} {around[1]} {form} {around[2]}"
    marks = Marks([make_mark(purged, KEY)], KEY)
    left, hits = remove_purged(text, marks)
    assert hits >= 1 and PURGED in left
    assert marks.spans(left) == []
    for start, end in Needle(purged).spans(left):
        # The very words are gone; they may only be a part of longer ones.
        assert split_words(left[start:end]) != split_words(purged)


@settings(max_examples=60)
@drawn(st.text(), PHRASES)
def test_a_text_without_it_is_the_very_same(text: str, phrase: list[str]) -> None:
    purged = f"{' '.join(phrase)} neverintext"
    assert remove_purged(text, Marks([make_mark(purged, KEY)], KEY)) == (text, 0)
    assert remove_purged(text, Marks([], KEY)) == (text, 0)


@settings(max_examples=60)
@drawn(st.text(alphabet="ab é漢ß\\n.\u00ad", max_size=40), st.text(alphabet="ab é漢ß", min_size=4, max_size=8))
def test_what_stands_around_a_match_is_left_byte_by_byte(text: str, purged: str) -> None:
    try:
        check_text(purged)
    except BadInput:
        return
    for spans in (Needle(purged).spans(text), Marks([make_mark(purged, KEY)], KEY).spans(text)):
        pieces = replace_spans(text, spans)[0].split(PURGED)
        at = 0
        for piece in pieces:
            assert text.startswith(piece, at) or piece in text[at:]
            at = text.index(piece, at) + len(piece)
        assert all(0 <= start < end <= len(text) for start, end in spans)
