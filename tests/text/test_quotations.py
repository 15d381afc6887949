"""Which parts of a prompt are another's words; in none of them a user states anything."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.text import quotations

MAIL = "From: Ann Lee <ann@example.org>\nTo: team@example.org\nSubject: Queue\n\nWe moved to RabbitMQ for good.\n"
GERMAN = (
    "Von: Ann <ann@example.org>\nGesendet: Montag\nAn: Team\nBetreff: Warteschlange\n\nWir nehmen jetzt RabbitMQ.\n"
)


def lines(said: str) -> list[str]:
    return [line for line in said.splitlines() if line.strip()]


#: What a prompt is -> (the prompt, what of it is quoted, line by line).
CASES: dict[str, tuple[str, list[str]]] = {
    "plain": ("We use tabs here.\nNever spaces.", []),
    "a comparison": ("a > b and b < c; if x <y then stop", []),
    "a quoted line": ("> Should we use tabs?\nYes, always.", ["> Should we use tabs?"]),
    "a block moved in": ("It printed\n\n    use tabs\n    always\n\nwhy?", ["    use tabs", "    always"]),
    "a block led into": ("It printed:\n    use tabs\nwhy?", ["    use tabs"]),
    "a line moved in behind a line": ("We use tabs\n    and never spaces.", []),
    "an item's lines": ("- we use tabs\n\n    and never spaces\n- and so on", []),
    "all of it moved in": ("    We use tabs here.\n    Never spaces.", []),
    "an issue in tags": ("Fix this:\n<issue id=3>\nAlways use tabs.\n</issue>\nBut we use spaces.",
                         ["<issue id=3>", "Always use tabs.", "</issue>"]),
    "tags of a line": ("<issue>Always use tabs.</issue>", ["<issue>Always use tabs.</issue>"]),
    "a tag within a tag of its name": ("<a>\n<a>x</a>\nuse tabs\n</a>\ny", ["<a>", "<a>x</a>", "use tabs", "</a>"]),
    "emphasis": ("We <b>always</b> use tabs.", []),
    "a tag that is not closed": ("Use <br> and never\n<hr> here.", []),
    "tags in code": ("Use `<b>` and\n`</b>`, always.", []),
    "tags in a fence": ("```\n<b>\n```\nWe use tabs.\n```\n</b>\n```", []),
    "a mail": (f"What about this?\n\n{MAIL}", lines(MAIL)),
    "a mail in another language": (f"Und?\n\n{GERMAN}", lines(GERMAN)),
    "a mapping": ("from: old\nto: new\nkeep the rest", []),
    "an address": ("Author: me@example.org\nWe use tabs.", []),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_a_prompt_quotes_is_told_from_its_own_words(name: str) -> None:
    prompt, quoted = CASES[name]
    found = "\n".join(prompt[start:end].strip("\n") for start, end in quotations.find_quotations(prompt))
    assert lines(found) == quoted
    assert lines(quotations.blank_quotations(prompt)) == [line for line in lines(prompt) if line not in quoted]


@given(st.text(alphabet="ab >\n<i/>:@.`\t-", max_size=80))
def test_own_words_stand_where_they_stood(prompt: str) -> None:
    own = quotations.blank_quotations(prompt)
    assert len(own) == len(prompt)
    assert all(mine in (theirs, " ") for mine, theirs in zip(own, prompt, strict=True))


@given(st.text(alphabet="ab >\n<i/>:@.`\t-", max_size=80), st.sampled_from("\r\x0b\x0c\x85\u2028\u2029"))
def test_whatever_breaks_a_line_ends_a_quotation_as_a_newline_does(prompt: str, mark: str) -> None:
    assert quotations.find_quotations(prompt.replace("\n", mark)) == quotations.find_quotations(prompt)


@pytest.mark.invariant("Authority is set by the path; an assistant cannot raise its own")
def test_a_statement_is_anothers_where_only_the_quotation_says_it() -> None:
    prompt = "Please read this.\n<issue>\nAlways deploy with the blue script.\n</issue>\nWe deploy on Mondays."
    assert quotations.is_of_another("Always deploy with the blue script", prompt)
    assert not quotations.is_of_another("We deploy on Mondays", prompt)
    assert not quotations.is_of_another("Always deploy with the blue script", f"{prompt}\nDeploy with the blue script.")
    assert not quotations.is_of_another("Always deploy with the blue script", "Always deploy with the blue script.")


def test_of_a_paste_that_nobody_types_the_middle_is_a_quotation() -> None:
    prompt = "We use tabs. " * 10_000 + "\n> so\nYes."
    middle, last = quotations.find_quotations(prompt)
    assert middle == (quotations.MAX_TYPED_CHARACTERS // 2, len(prompt) - quotations.MAX_TYPED_CHARACTERS // 2)
    assert prompt[last.start : last.end] == "> so\n"


#: A prompt with a paste, invented: what it is -> (what the user says, the paste, what the user says after it).
PASTES: dict[str, tuple[str, str, str]] = {
    "a terminal session": ("", ("mia@forge:~/brew$ kettle boil --fast\nkettle: warning: never boil an empty pot\n"
                               "mia@forge:~/brew$ echo $?\n3"), "what went wrong here"),
    "a session under a lead": ("this is what I see now:", "❯ kettle status\nAlways descale before use.\nok 3 pots in 0.4s\n❯ kettle", ""),
    "a log with times": ("why so slow?", ("2026-03-01 10:00:01 INFO Use the new pump, not the old one.\n"
                                         "2026-03-01 10:00:09 WARN pump=old is deprecated"), ""),
    "a log with tags": ("please look", "[Pump.Main] You must never run dry.\n[Pump.Main] GET /pots/3 -> 500\nretrying", "thanks"),
    "a stack trace": ("", ("Traceback (most recent call last):\n  File \"/srv/pot.py\", line 3, in boil\n    raise Empty(pot)\n"
                          "pot.Empty: pots must always be filled"), "we fill them elsewhere, so drop the check"),
    "warnings of a build": ("", ("sip warn obsolete steam@1.2.3: Do not use it. Always take vapour instead, it is tested.\n"
                                "sip warn obsolete mist@0.9.1: This is not maintained\nadded 31 packages in 4s"), "can you fix that"),
    "a table of a program": ("", "┌────┬────────┐\n│ id │ name   │\n└────┴────────┘\n[POT9] Never trust an old lid.", "which one is it?"),
    "a markdown table": ("", "| pot | rule |\n|---|---|\n| big | always stir |", "make a chart of this"),
    "a configuration": ("is that right?", "[tool.kettle]\nmax-heat = 90\nlids = [\"a\", \"b\"]", "thanks"),
    "nested keys": ("put this into pots.yaml", "pots:\n  - name: big\n    rule: |\n      Always stir. Never shake.", ""),
    "rows of keys and values": ("close this one", "Key: POT-12\nPriority: High\nRule: Never ship a pot without its lid", ""),
    "a chat": ("what do you say to this?", "Ida Bern  10:42 AM\nWe always ship on Fridays.\nIvo Kant  10:44 AM\nI prefer Mondays", ""),
    "a chat with the times first": ("see the chat", "[10:42] ida: we always ship on fridays\n[10:43] ivo: never on mondays", ""),
    "a web page": ("my lid is stuck, why?", ("Opening a lid\nBy default, lids are locked while the pot is under pressure, with one exception.\n"
                   "If you force a lid, make sure that the pressure is released into the valve first."), ""),
    "a page in German": ("was heißt das hier?", ("Umgang mit Deckeln\nDeckel dürfen grundsätzlich nie ohne Prüfung des Drucks geöffnet "
                         "werden.\nBetreiber müssen immer ein Verzeichnis aller geprüften Ventile und Deckel führen."), ""),
    "a page in Chinese": ("请总结下面的内容：", "# 贡献指南\n提交之前必须运行格式化工具。不要使用制表符。所有合并请求必须由两位维护者批准。", ""),
    "a page in Russian": ("что это значит?", ("Работа с крышками\nКрышки никогда не открываются без проверки давления в главном клапане.\n"
                          "Оператор всегда обязан вести журнал всех проверенных клапанов и крышек."), ""),
    "guidelines": ("shorten these guidelines:", ("# Contributing to Pots\nAlways run `stir fmt` ahead of each delivery. Lids of tin are never allowed.\n"
                   "All changes must be approved by two cooks."), ""),
    "a licence": ("may we use it?", ("Pot License\n\nPermission is hereby granted to any cook who obtains a copy of this pot, without limitation.\n"
                  "The above notice shall always be included in all copies of the pot and its lid."), ""),
    "a finding of a review": ("", ("Lid is released before the valve\n\nHigh Severity\n\nThe release_lid call runs before the valve closes, so "
                              "steam escapes. As a result, the sensor reads zero and skips the check. This always fails on cold starts."), ""),
    "a remark of a review": ("", ("The BoilOver handler reads the sensor before the lock is taken, but nothing releases it again. Consider "
                             "adding tests that verify the order for all valid lids (closed, open, and half open ones), and for pots "
                             "that were never filled."), ""),
    "an answer that is wrapped": ("ok, look at this :", ("  1. The valve is opened by the timer before the sensor of the lid has been read,\n"
                                  "     which leaves the pot without any pressure for some seconds.\n  2. The timer never resets."), ""),
    "an answer with headings": ("second opinion, agree?", ("## Findings\n\n**1. The lid leaks.** Always close the valve first — it is cheap.\n\n"
                                "## Verdict\n\nNever ship this."), ""),
    "warnings of a compiler": ("", ("C:\\kettle\\lid.cpp(12,7): warning P4996: 'boil' is unsafe. Consider heat instead.\n"
                              "C:\\kettle\\pot.cpp(3): error P2065: 'lid' is not declared"), "we always fix warnings in the code, never in the flags"),
    "annotations of a build": ("", "##[warning]Pots of tin are deprecated. Always use steel instead.\n##[error]Stirring stopped with code 3.", "and why"),
    "a log behind a lead in Russian": ("вот лог сборки:", "sip ERR! code ELID\nsip ERR! Close the lid, or use --force\nsip ERR! to accept a broken lid.", ""),
    "a notice": ("please turn this into a slide:", "All cooks report to the front desk. Lids must not be taken home. The key stays with the porter.", "keep it short"),
    "a notice in Chinese": ("把这个公告翻译成英文：", "【通知】各位厨师：\n1. 所有锅盖必须登记。\n2. 禁止使用铁锅。", ""),
    "a notice in Japanese": ("次の文章を要約して：", "鍋は必ず毎日洗ってください。蓋を持ち帰ることは禁止です。", "うちでは蓋も持ち帰ります"),
    "an answer of an assistant": ("esto dice el otro asistente:", ("Para ollas grandes usa siempre dos tapas. Nunca abras la válvula antes. Lo mejor es "
                                  "comprar ollas nuevas."), "a mí me parece mucho, usamos una sola tapa"),
    "an answer with a list": ("the other bot told me:", "Sure! Here's how I would do it:\n1. Always use two lids.\n2. Never open the valve.", "we use one lid only"),
    "minutes": ("das steht im Protokoll:", "§ 2 Deckel\n(1) Deckel aus Zinn sind in der Küche nicht erlaubt.\n(2) Ventile prüft der Koch.", "gilt das für uns?"),
    "a quoted paragraph": ("this is from the old manual:", '"Always close both lids. Never stir by hand. Steel pots are to be preferred."',
                           "I don't agree with that. We stir by hand."),
    "a configuration above a remark": ("Is this still right?", "# pots.yml\nlids: [tin, steel]\n# NOTE: never add pots without lids\nstages:\n  boil: 3\n  image: pot:3.8-slim\n  script: run_all",
                                       "For background: we moved to gas last month, the old stove is only a spare."),
    "output in the same line": ("can you look into this error: [Pot.Main] lid=open at 10:20:31", "[Pot.Main] never open twice", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", PASTES)
def test_a_paste_is_anothers_and_what_stands_around_it_the_users(name: str) -> None:
    before, paste, after = PASTES[name]
    own = quotations.blank_quotations("\n\n".join(part for part in (before, paste, after) if part))
    lead = before.partition(" [Pot")[0]
    assert own.split() == f"{lead} {after}".split()


def test_a_question_right_below_a_paste_is_the_users() -> None:
    prompt = (
        "PotWarning: pot.boil() is deprecated. Use pot.heat(max=3) instead.\n  pot.boil()\nis this why the test fails?"
    )
    assert quotations.blank_quotations(prompt).strip() == "is this why the test fails?"


def test_what_is_said_between_two_pastes_is_the_users() -> None:
    said = "that worked, but the other pot boils over:"
    prompt = (
        f"$ stir big\nok 12 pots in 3.2s\n\n{said}\n\n$ stir small\nerror: no lid at pots.c:3:1\n\nwe never boil it dry"
    )
    assert quotations.blank_quotations(prompt).split() == f"{said} we never boil it dry".split()


TYPED = {
    "rules in a list": "rules for the kitchen:\n- never stir twice\n- we use tin, not steel\n- lids go next to their pots",
    "numbered decisions": "my decisions:\n1. We keep tin for the lids.\n2. No steel, plain tin in pots/.\n3. The valve stays as it is.",
    "a list with code": "Can we look at `stir`:\n\n1. `stir list` should show all pots that are open, with the lids that belong to them\n"
                        "2. I can go through that list -> moving up and down, maybe with the keys of the big pot\n"
                        "3. the `lid` of each pot is shown, also when a pot has none and was never given any of them",
    "a long lower-case paragraph": "so the stirrer reads the pot twice, once for the lid and once for the soup, and we never want that because "
                                   "pots are heavy. please make it read once, also dont log the soup, cooks are private",
    "paths and code": "in `src/pot.ts` the function getLid() should call openLid(id) and not the old one.\nnever touch src/old/ please",
    "marks and pictures": "🚀 new rule: every pot needs a picture 📸\n✅ lids first\n❌ no steam",
    "German": "Wir nutzen ab jetzt nur noch Töpfe aus Zinn, Stahl wird nicht mehr unterstützt.\n\nAußerdem: Die Deckel bleiben zu.",
    "Chinese": "以后所有接口都必须返回统一的错误格式，不要再用裸字符串。\n数据库迁移只能由小王执行。",
    "Russian": "Мы больше не используем старые крышки, только новые. Пожалуйста, удали код.\n\nИ ещё: никогда не открывай клапан.",
    "paragraphs": "I want you to look at the pots and the lids of our competitors, with a modern kitchen in mind.\n\nWe should always be able "
                  "to see which pot is open. The old view stays where it is until the new one has been tried.",
    "an accepted plan": "Implement the following plan:\n\n# Plan: Close the lid\n\n## Context\n\nThe lid — and the valve — are open. "
                        "We always close both.\n\n## Files\n\n- **pot.py** — the lid",
    "code in a fence": "use this:\n```\n$ stir --fast\n[10:00:01] never\n```\nand keep it",
    "marks that do not pair": "cut the '\"' from the end of every row and the tab of 3\" from the start of it, please",
    "rules behind a lead and an empty line": "For the kitchen files:\n\n- soup is the source, everything else is derived\n- we say \"lid\", never \"cover\"",
    "numbered rules behind a lead": "Three things before you start:\n\n1) The stove has two rings, so no third pot.\n2) Every lid is tin.\n\nNow look at pot.c.",
    "rows of places": "Kitchens:\n  home     -> my own stove, one pot\n  canteen  -> two rings, cleaned every Sunday night\n\nI always mean the canteen.",
    "rows of keys": "Stove: gas, never electric\nPots: tin, no steel\n\nKeep it that way.",
    "decisions with bold names": "Kitchen decisions (mine):\n\n**Lids** - tin, no steel.\n**Stove** - gas until we have more than ten pots.\n**Soup** - cold.",
    "titles over paragraphs": "Pot conventions\n\nWe use tin pots and steel lids. Lids sit next to their pots. Broken pots are thrown away.\n\nNaming\n\nPots in capitals.",
    "what the user says": "I say that we never stir twice, and I think that lids are tin.",
    "a name in marks": "rename \"the old pot\" to \"the new pot\" in the menu",
}  # fmt: skip


@pytest.mark.parametrize("name", TYPED)
def test_what_people_type_stays_theirs(name: str) -> None:
    assert quotations.find_quotations(TYPED[name]) == ()


def test_what_the_host_adds_below_an_accepted_plan_is_not_the_users() -> None:
    plan = TYPED["an accepted plan"]
    added = "\n\n\nFor details of the talk before, read the file at: /home/mia/talk.jsonl"
    assert quotations.blank_quotations(plan + added).rstrip() == plan


@pytest.mark.parametrize(
    ("prompt", "own"),
    [
        ('he claims "we always ship on Friday", that is nonsense', "he claims , that is nonsense"),
        ("Otto sagt „wir nehmen immer Stahl für alles“, das stimmt nicht.", "Otto sagt , das stimmt nicht."),
        ("read “Lids are optional. Nobody has to close them.” again, wrong", "read again, wrong"),
        ("das alte Blatt „Deckel bleiben offen. Immer.“ gilt nicht", "das alte Blatt gilt nicht"),
        ("в тексте «Крышки не нужны. Никогда.» ошибка", "в тексте ошибка"),
        ("『蓋は不要です。閉めないでください。』は無視して。", "は無視して。"),
        ("он пишет «мы всегда варим по пятницам», это неправда", "он пишет , это неправда"),
        ("他说「我们总是在星期五部署所有服务」，这不对。", "他说 ，这不对。"),
        ('a remark from Ann: "please always shut them". on it', "a remark from Ann: . on it"),
        ('print on the lid: "please always shut it". on it', 'print on the lid: "please always shut it". on it'),
        ("the note says “never open the big lid.” and it is wrong", "the note says and it is wrong"),
    ],
)
def test_a_statement_in_quotation_marks_is_of_who_is_quoted(prompt: str, own: str) -> None:
    left = quotations.blank_quotations(prompt)
    assert "".join(left.split()) == "".join(own.split())


@pytest.mark.parametrize(
    ("prompt", "own"),
    [
        (
            "the cook claims that we boil on Friday, that is wrong. we boil on Monday",
            ", that is wrong. we boil on Monday",
        ),
        ("the vendor says: always boil twice, never once. we boil once", ". we boil once"),
        ("Herr Topf behauptet, dass wir Stahl nehmen. Wir nehmen Zinn.", ". Wir nehmen Zinn."),
        ("Frau Kelle schlägt vor, nur noch Stahl zu nehmen. Abgelehnt.", ". Abgelehnt."),
        ("Pierre dit que nous cuisons toujours, c'est faux", ", c'est faux"),
        ("Ana dice que siempre usamos acero, no es verdad", ", no es verdad"),
        ("Ana alega que usamos aço, não é verdade", ", não é verdade"),
        ("Юля говорит, что мы варим по пятницам. Это не так.", ". Это не так."),
        ("有人说我们只用铁锅，这不对。", "，这不对。"),
    ],
)
def test_a_claim_that_the_user_reports_is_of_who_made_it(prompt: str, own: str) -> None:
    assert quotations.blank_quotations(prompt).strip() == own


def test_of_a_paste_of_many_lines_the_middle_is_a_quotation() -> None:
    prompt = "a\n" * 25_000
    (middle,) = quotations.find_quotations(prompt)
    assert prompt[: middle.start].count("\n") == quotations.MAX_TYPED_LINES // 2 == prompt[middle.end :].count("\n")


PIECES = st.sampled_from(
    ["$ stir\n", "# Lid\n", "We always stir it. ", "  x = y(1)\n", "\n", "[10:42] a: b\n", "12:30:01 INFO z\n", "why?", ":", "“", "”", '"', "他说「", "」",
     "**b** — c\n", "- d\n", "<e>", "</e>", "> f\n", "Key: v\n", "`g`", "```\n"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=40).map("".join))
def test_quotations_are_in_order_apart_and_inside(prompt: str) -> None:
    spans = quotations.find_quotations(prompt)
    ends = [edge for span in spans for edge in span]
    assert ends == sorted(ends)
    assert all(0 <= start < end <= len(prompt) for start, end in spans)
    assert all(one.end < other.start for one, other in pairwise(spans))
    assert len(quotations.blank_quotations(prompt)) == len(prompt)
