"""One parse of a sentence: golden tables by property, each class of words needed by a row, and nothing that raises."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd import data
from csmd.text import sentence, trimming

#: The functions on sentences, whatever module they are in.
FUNCTIONS = SimpleNamespace(**vars(sentence) | vars(trimming))
#: What is asked of the parse: name -> a function of such functions and a text.
PROPERTIES: dict[str, Callable[[Any, str], object]] = {
    "kind": lambda module, text: module.parse(text).kind,
    "kind by an assistant": lambda module, text: module.parse(text, "assistant").kind,
    "lasting": lambda module, text: module.parse(text).lasting,
    "language": lambda module, text: module.parse(text).language,
    "body": lambda module, text: module.parse(text).body,
    "core": lambda module, text: module.parse(text).core,
    "refutes": lambda module, text: module.parse(text).refutes,
    "remembers": lambda module, text: module.parse(text).remembers,
    "goes on": lambda module, text: module.parse(text).is_continuation,
    "is of the moment": lambda module, text: module.parse(text).is_of_moment,
    "is musing": lambda module, text: module.parse(text).is_musing,
    "trimmed": lambda module, text: module.trim_statement(text),
    "clauses": lambda module, text: module.split_clauses(text),
    "states something": lambda module, text: module.states_something(text),
    "refers back": lambda module, text: module.refers_back(module.parse(text)),
    "request": lambda module, text: module.find_request(text),
    "objects": lambda module, text: module.is_objection(text),
    "bare order": lambda module, text: module.strip_order(text),
    "what it sets out on": lambda module, text: module.strip_order(text, sets_out=True),
    "tells what was done": lambda module, text: module.tells_what_was_done(text),
    "settles": lambda module, text: module.parse(text).settles,
    "is of a program": lambda module, text: module.is_of_program(module.parse(text).words),
    "is a task": lambda module, text: module.is_task(module.parse(text)),
    "is about an errand": lambda module, text: module.is_about_errand(module.parse(text, "assistant")),
    "leaves open": lambda module, text: module.parse(text).leaves_open,
    "complains": lambda module, text: module.complains(module.parse(text)),
}

# fmt: off
GOLDEN: dict[str, list[tuple[str, object]]] = {
    "is a task": [
        ("add a ledger that lists every till", True), ("show the sum of each till in the ledger", True),
        ("we need to update the ledger", True),
        ("whoops, we need to update the ledger", True), ("add a ledger, at most 40 rows", False),
        ("we need a second ledger", True), ("do not add a ledger", False), ("add a ledger before each release", False), ("use rows for ledgers", False),
        ("make sure that ledgers are closed", False), ("write ledgers as rows", False), ("the ledger needs a sum", False),
    ],
    "is about an errand": [
        ("should I commit the ledger or wait?", True), ("what should I look at?", True), ("which ledger is first?", True),
        ("should ledgers be rows or columns?", False), ("which ledger do you want?", False),
    ],
    "kind": [
        ("Merge notes: one line and the ledger", "states"),
        ("merge notes and ledgers", "orders"),
        ("The heron cache lives in memory", "states"),
        ("CI is green", "reports"),
        ("everything is green and verified, ready to merge", "reports"),
        ("CI and the builds passed again", "reports"),
        ("all tests must pass before a merge", "states"),
        ("CI is green only where the ledger is closed", "states"),
        ('"port": 8081, "host": null,', "printed"),
        ('"about": "the ledger of the sh', "printed"),
        ("{'port': 8081}", "printed"),
        ("[1, 2, 3]", "printed"),
        ("| port | the ledger's", "printed"),
        ("port | 8081 | staging", "printed"),
        ("<b>the ledger</b>", "printed"),
        ("the ledger keeps `a | b | c` in one row", "states"),
        ('the ledger answers {"port": 1} where it is open', "states"),
        ("let me think about whether ledgers are better", "asks"), ("I keep wondering if we need a ledger", "asks"),
        ("we check whether the ledger is open", "states"), ("you decide whether the ledger is open", "states"),
        ("which port does the gateway use", "asks"),
        ("Where is the ledger kept", "asks"),
        ("is the ledger shared", "asks"),
        ("wondering if the ledger is shared", "asks"),
        ("The ledger is shared, ok?", "asks"),
        ("does that hold (see the log)?", "asks"),
        ("What we need are two ledgers", "states"),
        ("rename the ledger to book", "orders"),
        ("could you rename the ledger", "orders"),
        ("a rename of the ledger is due, please", "states"),
        ("Test data belongs in the ledger", "states"),
        ("Read access to billing needs two people", "states"),
        ("Check ledgers are closed", "orders"),
        ("commit it as is", "orders"),
        ("Update jobs must not overlap", "states"),
        ("Run ledgers before each release", "states"),
        ("Run ledgers unless the bank is closed", "states"),
        ("don't close the ledger yet", "orders"),
        ("don't close the ledger now", "orders"),
        ("don't close the ledger on Mondays", "states"),
        ("`make ledger` (it takes a while)", "orders"),
        ("yes, thanks", "assents"),
        ("oh ok", "assents"),
        ("fatal: no ledger was found", "printed"),
        ("ledger ⎿ 3 files", "printed"),
        ("--", "printed"),
        ("all 14 tests passed", "reports"),
        ("Warum ist das Hauptbuch leer", "asks"),
        ("Öffne bitte das Hauptbuch", "orders"),
        ("Das Hauptbuch ist leer", "states"),
        ("por qué está vacío el libro", "asks"),
        ("abre el libro de la tienda", "orders"),
        ("pourquoi le livre est vide", "asks"),
        ("ouvre le livre de la boutique", "orders"),
        ("por que o livro não está aqui", "asks"),
        ("abra o livro da loja", "orders"),
        ("почему книга пуста", "asks"),
        ("открой книгу", "orders"),
        ("账本为什么是空的", "asks"),
        ("帳簿はどこにある", "asks"),
        ("장부가 왜 비어 있지", "asks"),
    ],
    "kind by an assistant": [
        ("Let me look at the ledger", "narrates"),
        ("I've added a ledger for the shop", "reports"), ("we have also set up a ledger", "reports"),
        ("ledger.py: added two tests", "reports"),
        ("The ledger is shared", "states"),
    ],
    "lasting": [
        ("No stamps, the clerk is away", ""), ("No stamps since Tuesday, the clerk forgets them", ""),
        ("I told you twice: no loose ledgers", "ban"),
        ("as I said, it is late", ""),
        ("I told you about the ledger", ""),
        ("could you please stop folding each ledger", "ban"),
        ("could you please stop it", ""),
        ("can you stop the till please", ""),
        ("would you please not fold the ledgers", "ban"),
        ("could you not find the ledger?", ""),
        ("rename the ledger everywhere in till.go", ""),
        ("rename the ledger everywhere", "rule"),
        ("no to the pizza", ""),
        ("no paper ledgers, the clerks have wet hands", "ban"),
        ("no ledgers came back, the clerks have wet hands", ""),
        ("no paper ledgers, so the shelf is empty", ""),
        ("I can't stand it when a ledger is torn", "taste"),
        ("no problem with the ledger", ""),
        ("ledgers stand close to each other", ""), ("the till is almost always open", ""), ("nothing that moves a ledger", "ban"),
        ("never closes in time", ""), ("add a till to verify that it must be shut", ""), ("no the ledger", ""), ("ledgers, hands off", "ban"), ("ana has the final say on ledgers", "role"),
        ("I'd close it in favour of the clerk", "choice"), ("das Buch gilt erst im Mai", "rule"),
        ("no lifecycle rule on the bucket", "ban"),
        ("The ledger is open", ""),
        ("Ledgers are closed every evening", "rule"),
        ("Ledgers are never closed at noon", "ban"),
        ("no ledgers in the shop", "ban"),
        ("We decided on two ledgers", "choice"),
        ("No, take the blue ledger", "choice"),
        ("No, take the second ledger, not the first", ""),
        ("never seen such a ledger", ""), ("Never mind the ledger", ""), ("we never closed a ledger", ""),
        ("I don't see the ledger", ""), ("better late than never", ""), ("Secrets are never printed", "ban"),
        ("don't close it, open it", ""), ("don't close it, open it as in the other shops", "ban"), ("do not close", ""),
        ("don't worry about ledgers", ""), ("don't print it", ""), ("don't print anything", "ban"), ("don't push for me", ""), ("no need to close the ledger", ""),
        ("Stop closing ledgers", "ban"), ("stop closing that", ""),
        ("Make small ledgers, I carry them home", "taste"), ("Make small ledgers, I need one", "need"),
        ("Make the ledger smaller, I carry it home", ""), ("Keep your answers short", "taste"),
        ("I'd rather read short ledgers", "taste"),
        ("The ledger needs two keys", "need"),
        ("Ana owns the ledger", "role"),
        ("The goal is a smaller ledger", "plan"),
        ("Wir schließen das Buch immer am Abend", "rule"),
        ("Wir schließen das Buch nie", "ban"), ("Das Buch habe ich noch nie gesehen", ""),
        ("Wir haben uns für das Buch entschieden", "choice"),
        ("Ich mag das Buch lieber", "taste"),
        ("Das Buch benötigt zwei Schlüssel", "need"),
        ("Ana ist für das Buch zuständig", "role"),
        ("Das Ziel ist ein Buch", "plan"),
        ("El libro se cierra siempre por la noche", "rule"),
        ("El libro nunca se cierra", "ban"), ("Nunca había visto el libro de la tienda", ""),
        ("Decidimos usar el libro de la tienda", "choice"),
        ("Prefiero el libro de la tienda", "taste"),
        ("El libro requiere dos llaves para la tienda", "need"),
        ("Ana es la responsable del libro", "role"),
        ("El objetivo es un libro", "plan"),
        ("Le livre est toujours dans la boutique", "rule"),
        ("Le livre est interdit dans la boutique", "ban"), ("Je ne vois pas de livre dans la boutique", ""),
        ("Nous avons choisi le livre", "choice"),
        ("Je préfère le livre de la boutique", "taste"),
        ("Le livre a besoin de la boutique", "need"),
        ("Ana est propriétaire de la boutique", "role"),
        ("Un livre est un objectif de la boutique", "plan"),
        ("O livro sempre está na loja", "rule"),
        ("O livro nunca está na loja", "ban"), ("O livro da loja eu nunca vi", ""),
        ("Escolhemos o livro da loja", "choice"),
        ("Prefiro o livro da loja", "taste"),
        ("O livro requer uma loja", "need"),
        ("Ela cuida do livro da loja", "role"),
        ("O objetivo é um livro", "plan"),
        ("Книга всегда открыта", "rule"),
        ("Книгу нельзя закрыть", "ban"), ("Я никогда не закрывал книгу", ""),
        ("Мы выбрали книгу", "choice"),
        ("Я предпочитаю книгу", "taste"),
        ("Для книги нужен ключ", "need"),
        ("За книгу отвечает Аня", "role"),
        ("Наша цель это книга", "plan"),
        ("账本始终打开", "rule"),
        ("账本禁止关闭", "ban"), ("从来没见过不能打开的账本", ""),
        ("我们选择了账本", "choice"),
        ("我喜欢账本", "taste"),
        ("账本依赖钥匙", "need"),
        ("安娜负责账本", "role"),
        ("目标是账本", "plan"),
        ("帳簿は常に開く", "rule"),
        ("帳簿の削除は禁止", "ban"), ("開かないで済む帳簿は見たことない", ""),
        ("帳簿を採用", "choice"),
        ("帳簿が好き", "taste"),
        ("帳簿に鍵が必要", "need"),
        ("帳簿の担当はアナ", "role"),
        ("帳簿の目標", "plan"),
        ("장부는 항상 연다", "rule"),
        ("장부 삭제 금지", "ban"), ("절대 장부를 본 적 없어", ""),
        ("장부로 결정", "choice"),
        ("장부를 선호", "taste"),
        ("장부에 열쇠가 필요", "need"),
        ("장부 담당은 아나", "role"),
        ("장부의 목표", "plan"),
    ],
    "language": [
        ('Never skip e2e tests', 'en'),
        ("Never push to Jürgen's branch", 'en'),
        ('use es modules', 'en'),
        ("The ledger is open", "en"), ("Das Buch ist im Laden", "de"), ("El libro está en la tienda", "es"),
        ("Le livre est dans la boutique", "fr"), ("O livro não está na loja", "pt"), ("Книга на столе", "ru"), ("npm frobnicate deploy quux printer gateway но не", "ru"),
        ("账本在桌子上", "zh"), ("帳簿は机の上", "ja"), ("장부는 책상 위", "ko"), ("το βιβλίο", ""),
        ("il libro della nonna non è qui", "it"), ("het boek is niet van de winkel", "nl"), ("książka nie jest na stole", "pl"),
        ("kitap ve defter için bir masa değil", "tr"), ("boken är inte för att läsa", "sv"), ("kniha je na stole nebo ve skříni, ale ne vždy", "cs"),
    ],
    "body": [
        ('No build artifacts go into the archive', 'No build artifacts go into the archive'),
        ("ok, so the ledger is open", "the ledger is open"),
        ("Thanks! However, the ledger is open", "the ledger is open"),
        ("that's wrong, the ledger is open", "the ledger is open"),
        ("great ledgers are open", "great ledgers are open"),
        ("remember that the ledger is open", "the ledger is open"),
        ("by the way the ledger is open", "the ledger is open"),
        ("yes", ""),
    ],
    "core": [("then maybe the ledger is open", "the ledger is open"), ("the ledger is open", "the ledger is open")],
    "refutes": [
        ("no usar la tabla vieja", False),
        ("no, the ledger is open", True), ("not true: the ledger is open", True), ("the ledger is open", False),
        ("nein, das Buch ist offen", True), ("no, el libro está aquí", True), ("non, le livre est ici", True),
        ("não, o livro está aqui", True), ("нет, книга здесь", True), ("错了，账本在这里", True), ("違い、帳簿はここ", True),
        ("틀렸어요, 장부는 여기", True),
    ],
    "remembers": [
        ("keep in mind that the ledger is open", True), ("remember when the ledger was open", False),
        ("the ledger is open", False),
    ],
    "goes on": [("But the ledger is open", True), ("The ledger is open", False)],
    "is of the moment": [
        ("stop, close the ledger", True), ("stop at the ledger", False), ("wait, ledgers are always closed", False),
        ("leave the ledger open, I'll close it", True), ("leave ledgers open, I close them", False),
        ("don't close it", True), ("don't close it without a count", False), ("don't release", True),
        ("don't release, I do that myself", False), ("don't moralise", False), ("never met that", True),
        ("never rounded by hand", False), ("never need a second ledger", False),
        ("don't round pence, I'm reading them aloud", False),
        ("the ledger is open for now", True), ("the ledger is open", False), ("Das Buch ist vorerst offen", True),
        ("el libro está de momento en la tienda", True), ("le livre est pas encore dans la boutique", True), ("o livro por enquanto não está na loja", True),
        ("книга пока что открыта", True), ("账本暂时打开", True), ("帳簿はとりあえず開く", True), ("장부는 아직 열려", True),
    ],
    "is musing": [("I wonder whether the ledger is open", True), ("the ledger is open", False)],
    "trimmed": [
        ("ok, the ledger is open, thanks", "the ledger is open"),
        ("the ledger is closed, right?", "the ledger is closed"),
        ("the ledger drops pence, fix it", "the ledger drops pence"),
        ("the ledger drops pence, so fix it", "the ledger drops pence"),
        ("the ledger holds 90 rows, so make it 60", "the ledger holds 90 rows, so make it 60"),
        ("the ledger is read all day, so close it at night", "the ledger is read all day, so close it at night"),
        ("the ledger must keep its order, so close it again", "the ledger must keep its order"),
        ("thanks", "thanks"),
    ],
    "clauses": [
        ("Merge notes: short, and always name the ledger", ["Merge notes: short, and always name the ledger"]),
        ("rename the ledger, btw it is open", ["rename the ledger", "btw it is open"]),
        ("rename the ledger, and we never close it", ["rename the ledger", "we never close it"]),
        ("the ledger is open, and we read it", ["the ledger is open, and we read it"]),
    ],
    "states something": [
        ("let's drop the ledger", True),
        ("let's check the ledger", False),
        ("Keep a ledger", True),
        ("Put ledgers under books/", True), ("Put the ledgers under books/", False), ("Put ledgers and pens away", False),
        ("from books.txt can you make one more ledger", False), ("the ledger is open", True),
    ],
    "refers back": [
        ("It could close at noon", True),
        ("It was closed at noon", True), ("The bug is in the ledger", True), ("The ledger is open", False),
    ],
    "request": [
        ("the ledger is open, could you close it", "could you close it"), ("the ledger where you can write", ""),
    ],
    "objects": [
        ("you forgot the ledger", True), ("the second ledger is not right", True), ("it still fails", True),
        ("the ledger reads wrong sums", False), ("wrong, the other ledger", True), ("that's wrong", True),
    ],
    "bare order": [
        ("hello, make sure to close the ledger", "close the ledger"), ("we need to close the ledger", "close the ledger"),
        ("then close the ledger", "close the ledger"), ("first ledgers are closed", "first ledgers are closed"),
        ("`close()` the ledger", "`close()` the ledger"), ("(a ledger)", "(a ledger)"),
        ("can you please now close the ledger?", "close the ledger?"), ("can you", "can you"),
        ("start with the ledger", "start with the ledger"),
    ],
    "what it sets out on": [
        ("get going on the ledger", "the ledger"), ("let's continue with the ledger", "the ledger"), ("close the ledger", "close the ledger"),
    ],
    "settles": [("let's represent ledgers as rows", True), ("no more Redis talk, Valkey it is", False)],
    "is of a program": [
        ("the Go client times out", True), ("our worker is late", True), ("the server team is late", False),
        ("ines owns the client", False), ("the clerk is late", False),
    ],
    "leaves open": [
        ("We need somewhere to file the receipts.", True), ("the ledger still needs a better way of sorting", True),
        ("We have to find a solution for the till", True), ("We need to file the receipts somewhere.", True),
        ("We need a clerk for the ledger.", False), ("We need something like Redis for the ledger.", False),
        ("We need a place for the receipts, so we use the ledger.", False), ("The receipts are somewhere.", False),
        ("We never need a solution for tills", False), ("We need the ledger to file the receipts in one place.", False),
    ],
    "complains": [
        ("it still shows two ledgers", True), ("it fails", True), ("it is never read", False), ("the ledger fails", False),
    ],
    "tells what was done": [
        ("Renamed the ledger", True), ("Both ledgers are committed", True), ("The ledger is open", False),
    ],
}
#: A phrase of a class that callers look for with has, opens and behind, and what follows it.
LOOKED_FOR: dict[str, str] = {
    "wanted.en": "what should a ledger be", "wanted.de": "was soll ein Buch sein", "options.en": "there are two ways",
    "options.de": "es gibt zwei Wege", "may_choose.en": "we could close it", "may_choose.de": "man könnte es schließen",
    "wish_asked.en": "should I close it", "dislikes.en": "I can't stand ledgers",
    "handed_on.en": "a remark from the clerk", "handed_on.de": "eine Nachricht vom Amt", "received.en": "the following remark",
    "received.de": "diese Nachricht kam gestern", "severity.en": "critical finding", "unnamed.en": "I promised her something",
    "unnamed.de": "ich habe ihr etwas versprochen", "in_context.en": "in that case close it", "in_context.de": "in dem Fall zu",
    "courtesy.en": "it might be useful to close it", "courtesy_tail.en": "close it, if you don't mind", "opines.en": "I believe I'd rather close it",
    "of_reply.en": "you seem to miss the ledger", "asks_fact.en": "where did the till stop", "weighs.en": "a ledger costs more", "greets.en": "good morning, the ledger", "forbids.de": "keine Bücher", "nothing.de": "Problem gelöst", "unfailing.de": "das Buch bleibt zu",
    "amends.en": "correction: it is closed", "adds_to.en": "the clerk too", "remains.en": "it waits for a clerk",
    "done.en": "I mailed the chart", "unfinished.en": "Once I mailed the chart",
    "settled.en": "we agreed on ledgers", "of_work.en": "what did we do about the ledger", "for_people.en": "nobody closes it",
    "at_all_times.en": "close no ledger at any time",
    "says.en": "the clerk claims that it is closed", "says.de": "er behauptet dass es zu ist", "says.es": "ella dice que no hay libro",
    "says.fr": "il affirme que le livre ne marche pas", "says.pt": "ela alega que o livro não existe", "says.ru": "он утверждает что книга закрыта",
    "says.zh": "有人说账本没了",
    "corrects.en": "wait, the ledger", "agrees.en": "sounds good, the ledger", "praise.en": "excellent ledger",
    "presses.en": "as soon as possible", "leave.en": "no need to close the ledger", "adds.en": "plus the ledger",
    "routine.en": "rebase the ledger", "handover.en": "open a pull request", "ails.en": "the till is too slow", "fault.en": "the ledger drops pence",
    "advice.en": "the ledger should be closed", "first_person.en": "we closed the ledger", "strict.en": "from now on it is closed",
    "hedge.en": "it is probably closed", "unfailing.en": "it is closed everywhere",
    "present.en": "currently it is closed", "opens_present.en": "the current ledger", "mends.en": "improve that",
    "doubt.en": "I'm not really convinced", "changed.en": "it used to be open", "left.en": "the ledger is out of scope",
    "later.en": "I close it later", "offers.en": "shall I close it", "leave_asked.en": "all good?", "own.en": "I tend to forget",
    "inquire.en": "confirm the ledger", "everywhere.en": "in general ledgers are closed", "supposes.en": "if the ledger is open",
    "earlier.en": "as in the last session", "failure.en": "an exception", "sure_cause.en": "it turned out otherwise",
    "fix.en": "removing the ledger", "cause.en": "the ledger was missing", "symptom.en": "I got two ledgers", "disputes.en": "but the problem was the ledger", "persists.en": "the same error again",
    "retracts.en": "I misread the ledger", "concedes.en": "you are right",
    "reported.en": "Updated it at noon", "hangs_on.en": "because the ledger is open", "trouble.en": "the ledger crashes", "trouble.de": "das Buch funktioniert nicht", "trouble.es": "el libro no funciona", "trouble.fr": "le livre ne marche", "trouble.pt": "o livro não funciona", "trouble.ru": "книга не работает", "trouble.zh": "账本失败", "trouble.ja": "帳簿が失敗", "trouble.ko": "장부가 실패", "now.en": "close it again", "now.de": "mach es nochmal", "proposes.en": "I'd suggest a ledger",
    "proposes.de": "Ich schlage ein Buch vor", "proposes.es": "propongo un libro", "proposes.fr": "je propose un livre",
    "proposes.pt": "proponho um livro", "proposes.ru": "предлагаю книгу", "proposes.zh": "建议账本", "proposes.ja": "帳簿を推奨",
    "proposes.ko": "장부를 추천",
    "of_kind.en": "which rule is there for ledgers", "of_kind.de": "welche Regel gilt für Bücher", "of_kind.fr": "quelle règle pour les livres",
    "of_kind.es": "qué regla hay para los libros",
}
#: What only extraction/acceptance.py reads; its tests need them.
OF_ACCEPTANCE = {"value_refused", "value_lead", "takes", "keeping", "assent", "ordinal.1", "ordinal.2", "ordinal.3", "ordinal.4", "ordinal.5"}
# fmt: on
ROWS = [(name, text, expected) for name, rows in GOLDEN.items() for text, expected in rows]
CLASSES = sorted(set(data.word_table("sentence_words.txt")) - OF_ACCEPTANCE)


def check(module: Any, name: str, text: str, expected: object) -> None:
    assert PROPERTIES[name](module, text) == expected


@pytest.mark.parametrize(("name", "text", "expected"), ROWS, ids=[f"{name}: {text}" for name, text, _ in ROWS])
def test_a_sentence_has_the_properties_of_the_golden_table(name: str, text: str, expected: object) -> None:
    check(FUNCTIONS, name, text, expected)


#: What reads the words, each after those that it imports.
READERS = ("sentence_words", "language", "momentary_orders", "printed_text", "sentence", "trimming")


def parse_without(word_class: str) -> SimpleNamespace:
    """The functions on sentences as they would be without a class of words."""
    words = data.word_table("sentence_words.txt")
    names = [f"csmd.text.{name}" for name in READERS]
    kept = {name: sys.modules[name] for name in names}
    whole = data.word_table
    functions = {}
    try:
        data.word_table = lambda name: (
            words | {word_class: frozenset()} if name == "sentence_words.txt" else whole(name)
        )
        for name in names:
            spec = importlib.util.find_spec(name)
            assert spec is not None and spec.loader is not None
            sys.modules[name] = module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            functions |= vars(module)
    finally:
        sys.modules.update(kept)
        data.word_table = whole
    return SimpleNamespace(**functions)


@pytest.mark.parametrize("word_class", CLASSES)
def test_each_class_of_words_is_needed(word_class: str) -> None:
    name, _, language = word_class.partition(".")
    if (text := LOOKED_FOR.get(word_class)) is not None:
        assert sentence.has(name, language, text)
        return
    phrases = {word.replace("_", " ") for word in data.word_table("sentence_words.txt")[word_class]}
    without = parse_without(word_class)
    used = [row for row in ROWS if any(phrase in row[1].casefold() for phrase in phrases)]
    assert any(PROPERTIES[name](without, text) != expected for name, text, expected in used)


@given(st.text(max_size=700))
def test_whatever_is_said_is_parsed_and_its_body_ends_it(text: str) -> None:
    read = sentence.parse(text)
    assert text.endswith(read.body) and read.body.endswith(read.core)
    for property_ in PROPERTIES.values():
        property_(FUNCTIONS, text)


@given(
    st.lists(
        st.sampled_from(
            ["ok, ", "no, ", "can you ", "please ", "remember that ", "the ledger ", "is open", " (", ")", "?", "“", "`a b` ", "do ", ", and we never "]
        ),
        max_size=12,
    ).map("".join),
    st.sampled_from(["user", "assistant"]),
)  # fmt: skip
def test_whatever_words_come_first_the_body_ends_the_sentence(text: str, speaker: sentence.Speaker) -> None:
    read = sentence.parse(text, speaker)
    assert text.endswith(read.body) and read.body.endswith(read.core)
    assert all(clause in text for clause in trimming.split_clauses(text))
    assert trimming.trim_statement(text) in text


@pytest.mark.parametrize(
    ("text", "only"),
    [
        ("My registry password is [redacted:password] by the way.", True),
        ("The key for the print queue is [redacted:api-key], keep it to yourself", True),
        ("[redacted:github-token] is the token of the mirror", True),
        ("The mirror reads its key [redacted:api-key] from vault.toml whenever a job begins", False),
        ("Never paste [redacted:api-key] into tickets, take it from the vault", False),
        ("The mirror is rebuilt at night", False),
    ],
)
def test_a_sentence_that_only_tells_a_redacted_secret_is_known(text: str, only: bool) -> None:
    assert sentence.holds_only_redacted(text) is only


@pytest.mark.parametrize(
    ("text", "kind", "lasting"),
    [
        ("Add a footer, and show me which font we use there.", "orders", ""),
        ("explain how we decided on the retry limit", "orders", ""),
        ("Before you tag, tell Mira which font we use.", "states", "rule"),
    ],
)
def test_what_somebody_asks_to_be_told_lays_nothing_down(text: str, kind: str, lasting: str) -> None:
    parsed = sentence.parse(text)
    assert (parsed.kind, parsed.lasting) == (kind, lasting)
