"""Tombstones: keyed hashes of what was forgotten or purged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, islice
from typing import Literal, NamedTuple

from csmd.cache import cached
from csmd.privacy.fingerprints import HASHED_NAME_PREFIX, Mark, Marks, hash_name, make_mark, remove_purged
from csmd.store import project_merges, projects
from csmd.store.sqlite import Rows
from csmd.text import similarity, tokens
from csmd.vocabulary import Authority

#: Rows that one transaction of a pass over a table reads.
ROWS_PER_PASS = 400
#: memory, near: a statement's words, and all but a few of them. secret: a secret of the session whose hash is `place`.
#: tampered: the name of a transcript that a tool wrote (store/tampered_transcripts.py). Every other kind was purged.
Kind = Literal["memory", "near", "text", "turn", "session", "project", "file", "secret", "tampered"]
MAX_SECRETS = 500
#: A statement that lacks up to so many content words of a forgotten one is kept out, too.
MAX_LEFT_OUT = 2
#: Above so many content words only one may be missing: the combinations are too many.
MAX_WORDS_WITHOUT_TWO = 20


def forget(
    rows: Rows, text: str, *, correction: bool, by: Authority, key: bytes, now: str, scope: int | None = None
) -> None:
    """Keeps a statement out in the same or nearly the same words.

    In a scope (the row of a project or of everywhere) if it was said until now; without a scope wherever and whenever
    it is said.
    """
    exact = hash_statement(text, key)
    whole, *near = [*hash_gist(text, correction=correction, key=key)] or [exact]
    hashes = [("memory", exact), ("memory", whole), *(("near", hash_) for hash_ in near)]
    for scope_hash in [""] if scope is None else _hash_scopes(rows, text, scope, key):
        for kind, hash_ in dict.fromkeys(hashes):
            _insert(
                rows, kind, hash_, by=by, part_of=_make_part_name(exact, scope_hash, now), place=scope_hash, now=now
            )


def _hash_scopes(rows: Rows, text: str, scope: int, key: bytes) -> list[str]:
    return [
        _hash_scope(rows, seq, key)
        for seq in list_scopes_of_forgetting(rows, scope, text_hash=tokens.keyed_hash(text, key))
    ]


def _hash_scope(rows: Rows, scope: int, key: bytes) -> str:
    return hash_name("scope", projects.read_key(rows, scope), key)


def _make_part_name(exact: str, scope_hash: str, at: str) -> str:
    """Returns the `part_of` of all tombstones of one forgetting; a later one in the same place has another."""
    return f"{exact}:{scope_hash}:{at}" if scope_hash else exact


def _insert(
    rows: Rows,
    kind: str,
    hash_: str,
    *,
    now: str,
    by: Authority = "user",
    part_of: str = "",
    place: str = "",
    mark: Mark | None = None,
) -> None:
    mark = mark or Mark("", 0, 0, 0)
    of = {"kind": kind, "hash": hash_, "part_of": part_of, "place": place, "authority": by, "created_at": now}
    conflict = """on conflict (kind, hash, part_of) do update set authority = case when excluded.authority = 'user'
        then 'user' else tombstones.authority end, created_at = excluded.created_at, again_at = ''"""
    rows.insert("tombstones", conflict, **of, words=mark.words, anchor=mark.anchor, anchor_at=mark.anchor_at)


class _Tombstone(NamedTuple):
    """A tombstone that matches a statement's words."""

    by: str
    part_of: str
    place: str
    at: str
    again_at: str


def _match_statement(rows: Rows, text: str, *, correction: bool, key: bytes) -> list[_Tombstone]:
    """Returns the tombstones of any place that match a statement's words."""
    if not has_kind(rows, "memory"):
        return []
    exact = hash_statement(text, key)
    whole, *near = [*hash_gist(text, correction=correction, key=key)] or [exact]
    # The statement may have a word more or less than what was forgotten, but not another word in its place.
    marks = ", ".join(f"'{hash_}'" for hash_ in (exact, whole, *near))
    sql = f"""select authority, part_of, place, created_at, again_at
        from tombstones where kind = 'memory' and hash in ({marks}) or kind = 'near' and hash = :whole"""  # noqa: S608
    return rows.read(_Tombstone, sql, whole=whole)


def _filter_by_scope(
    rows: Rows, tombstones: Sequence[_Tombstone], scopes: Iterable[int], key: bytes
) -> list[_Tombstone]:
    """Returns those of the tombstones that apply in some places, or everywhere."""
    scope_hashes = (
        {"", *(_hash_scope(rows, scope, key) for scope in scopes)}
        if any(tombstone.place for tombstone in tombstones)
        else {""}
    )
    return [tombstone for tombstone in tombstones if tombstone.place in scope_hashes]


def is_statement_forgotten(
    rows: Rows,
    text: str,
    *,
    correction: bool,
    authority: Authority,
    project: int | None,
    at: str,
    key: bytes,
    home: int | None = None,
) -> bool:
    """Whether a statement was forgotten: by the user for all speakers, by an assistant for assistants.

    `project` is where it was said (None: anywhere), `home` the scope it applies to (None: the project), and `at` when
    it was said, "" for what is not said at any time, such as counted facts.
    """
    matching = [
        tombstone
        for tombstone in _match_statement(rows, text, correction=correction, key=key)
        if _applies(tombstone, authority, at)
    ]
    if not matching or project is None:
        return bool(matching)
    scopes = find_applicable_scopes(rows, project, home=home)
    return scopes is None or bool(_filter_by_scope(rows, matching, scopes, key))


def _applies(tombstone: _Tombstone, authority: Authority, at: str) -> bool:
    if authority == "user" and (tombstone.by != "user" or (tombstone.place and at > tombstone.at)):
        return False
    return not tombstone.place or not tombstone.again_at or at < tombstone.again_at


def record_restated(rows: Rows, text: str, *, correction: bool, project: int, at: str, key: bytes) -> None:
    """Records that the user says a forgotten statement again, which is allowed for all speakers from then on."""
    scopes = find_scopes_to_reopen(rows, project, home=projects.everywhere_of(rows, project))
    for tombstone in _filter_by_scope(rows, _match_statement(rows, text, correction=correction, key=key), scopes, key):
        if tombstone.place and at > tombstone.at and (not tombstone.again_at or at < tombstone.again_at):
            rows.run("update tombstones set again_at = :at where part_of = :part_of", at=at, part_of=tombstone.part_of)


def is_forgotten(
    rows: Rows, text: str, *, authority: Authority = "user", project: int | None = None, at: str = "", key: bytes
) -> bool:
    """Whether a sentence was forgotten, as a correction or as a statement."""
    return any(
        is_statement_forgotten(rows, text, correction=correction, authority=authority, project=project, at=at, key=key)
        for correction in (False, True)
    )


def match_hashes(rows: Rows, hashes: Iterable[str]) -> frozenset[str]:
    """Returns those of these hashes (see `hash_gist`) that a forgotten statement has, in any place."""
    return frozenset(hash_ for hash_, _ in _find_tombstones(rows, "('memory', 'near')", hashes))


def _find_tombstones(rows: Rows, kinds: str, hashes: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yields (hash, time of the tombstone) of those hashes that have a tombstone of some kinds."""
    sorted_hashes = sorted(set(hashes))
    for start in range(0, len(sorted_hashes), 500):
        marks = ", ".join(f"'{hash_}'" for hash_ in sorted_hashes[start : start + 500])
        yield from rows.all(f"select hash, created_at from tombstones where kind in {kinds} and hash in ({marks})")  # noqa: S608


def count_forgotten(rows: Rows) -> int:
    """Returns the number of forgotten statements."""
    parts = rows.column("select distinct part_of from tombstones where kind = 'memory'")
    return len({part.partition(":")[0] for part in parts})


def forgetting_state(rows: Rows) -> tuple[int, str]:
    """Returns (how many statements were forgotten, when last); data read before a change may hold a forgotten one."""
    (state,) = rows.all("select count(*), coalesce(max(created_at), '') from tombstones where kind = 'memory'")
    return state


def list_forgotten_hashes(rows: Rows) -> frozenset[str]:
    """Returns the hashes of forgotten statements."""
    return frozenset(rows.column("select hash from tombstones where kind = 'memory'"))


def remove_statement(rows: Rows, text: str, *, correction: bool, project: int, home: int, key: bytes) -> None:
    """Deletes the tombstones of a statement that the user states again on purpose in a project, to apply in `home`."""
    scopes = find_scopes_to_reopen(rows, project, home=home)
    for tombstone in _filter_by_scope(rows, _match_statement(rows, text, correction=correction, key=key), scopes, key):
        sql = "delete from tombstones where kind in ('memory', 'near') and part_of = :part_of"
        rows.run(sql, part_of=tombstone.part_of)


def remove_forgetting(rows: Rows, text: str, *, scope: int, at: str, key: bytes) -> None:
    """Deletes the tombstones of one forgetting: this exact text, in a scope, at a time."""
    exact = hash_statement(text, key)
    # In every place where it may be recorded, even if the text has become a memory there since.
    for scope_hash in (_hash_scope(rows, seq, key) for seq in list_scopes_of_forgetting(rows, scope, text_hash="")):
        sql = "delete from tombstones where kind in ('memory', 'near') and part_of = :part_of"
        rows.run(sql, part_of=_make_part_name(exact, scope_hash, at))


def copy_to_project(rows: Rows, workspace: int, project: int, *, key: bytes) -> None:
    """Copies what was forgotten in a workspace to a project that leaves it."""
    _copy_scope(rows, _hash_scope(rows, workspace, key), _hash_scope(rows, project, key))


def rename_project(rows: Rows, project: int, name: str, *, key: bytes) -> None:
    """Changes a project's key; what was forgotten there stays forgotten."""
    old = _hash_scope(rows, project, key)
    rows.update("projects", project, key=name)
    _copy_scope(rows, old, _hash_scope(rows, project, key))
    rows.delete("tombstones", place=old)


def _copy_scope(rows: Rows, old: str, new: str) -> None:
    sql = """insert into tombstones (kind, hash, part_of, place, words, anchor, anchor_at,
        authority, created_at, again_at) select kind, hash, substr(part_of, 1, 33) || :new || substr(part_of, :rest),
        :new, words, anchor, anchor_at, authority, created_at, again_at from tombstones where place = :old
        on conflict (kind, hash, part_of) do update set authority = case when excluded.authority = 'user' then 'user'
        else tombstones.authority end, created_at = excluded.created_at, again_at = excluded.again_at
        where excluded.created_at >= tombstones.created_at"""
    rows.run(sql, old=old, new=new, rest=34 + len(old))


def has_kind(rows: Rows, kind: Kind) -> bool:
    """Whether there is any tombstone of a kind."""
    return rows.has("tombstones", kind=kind)


def has_purged(rows: Rows) -> bool:
    """Whether anything was ever purged; if not, nothing needs to be checked."""
    return rows.exists("select 1 from tombstones where kind in ('text', 'turn', 'session', 'project', 'file') limit 1")


def read_purge_state(rows: Rows) -> tuple[int, str]:
    """Returns (how much was purged, when last); data read before a change must not be written."""
    sql = """select count(*), coalesce(max(created_at), '')
        from tombstones where kind in ('text', 'turn', 'session', 'project', 'file')"""
    (state,) = rows.all(sql)
    return state


def purge_text(rows: Rows, text: str, *, key: bytes, now: str, found_by: str = "") -> None:
    """Keeps a text out of everything; `found_by` is the purged text that this longer one contains."""
    mark = make_mark(text, key)
    part_of = make_mark(found_by, key).hash if found_by else ""
    _insert(rows, "text", mark.hash, mark=mark, now=now, part_of=part_of)


def purge_names(rows: Rows, kind: Kind, names: Iterable[str], *, key: bytes, now: str) -> None:
    """Keeps turns, sessions, projects (by key) or file names out."""
    for name in names:
        _insert(rows, kind, hash_name(kind, name, key), now=now)


def remove_text(rows: Rows, text: str, *, key: bytes) -> int:
    """Deletes the tombstones of a purged text and of the longer ones that contain it; returns how many."""
    hash_ = make_mark(text, key).hash
    return rows.run("delete from tombstones where kind = 'text' and (hash = :hash or part_of = :hash)", hash=hash_)


def remove_name(rows: Rows, kind: Kind, name: str, *, key: bytes) -> int:
    """Deletes the tombstone of a purged turn, session or project; returns how many there were."""
    return rows.delete("tombstones", kind=kind, hash=hash_name(kind, name, key))


def purged_marks(rows: Rows, key: bytes) -> Marks:
    """Returns every purged text; returns the same object while they are the same, which caches what it has learned."""
    stored = rows.all(
        "select distinct hash, words, anchor, anchor_at from tombstones where kind = 'text' order by hash"
    )
    return _cached_marks(tuple(Mark(*row) for row in stored), key)


@cached(4)
def _cached_marks(stored: tuple[Mark, ...], key: bytes) -> Marks:
    return Marks(stored, key)


def record_secrets(rows: Rows, session: str, secrets: Iterable[str], *, key: bytes, now: str) -> bool:
    """Keeps secrets out of a session, also where they appear alone; returns whether any of them is new.

    At most MAX_SECRETS: a session that prints a key store has more than will ever be repeated.
    """
    session_hash = hash_name("session", session, key)
    is_new = False
    sql = "select count(*) from tombstones where place = :session_hash and place <> ''"
    room = MAX_SECRETS - rows.number(sql, session_hash=session_hash)
    for secret in sorted(secrets):
        mark = make_mark(secret, key)
        sql = "select 1 from tombstones where kind = 'secret' and hash = :hash and part_of = :session_hash"
        if room > 0 and not rows.exists(sql, hash=mark.hash, session_hash=session_hash):
            _insert(rows, "secret", mark.hash, mark=mark, now=now, part_of=session_hash, place=session_hash)
            is_new = True
            room -= 1
    return is_new


def secrets_of(rows: Rows, sessions: Sequence[str], key: bytes) -> Marks:
    """Returns the known secrets of some sessions; returns the same object while they are the same."""
    session_hashes = [hash_name("session", session, key) for session in sessions] if has_kind(rows, "secret") else []
    stored: set[tuple[str, int, int, int]] = set()
    for session_hash in dict.fromkeys(session_hashes):
        sql = """select hash, words, anchor, anchor_at
            from tombstones where place = :session_hash and place <> '' and kind = 'secret'"""
        stored |= set(rows.all(sql, session_hash=session_hash))
    return _cached_marks(tuple(Mark(*row) for row in sorted(stored)), key)


def list_sessions_with_secrets(rows: Rows, key: bytes) -> list[str]:
    """Returns the stored sessions with known secrets."""
    if not has_kind(rows, "secret"):
        return []
    session_hashes = set(rows.column("select distinct place from tombstones where kind = 'secret'"))
    ids = rows.column("select id from sessions where parent = ''")
    return [session_id for session_id in ids if hash_name("session", session_id, key) in session_hashes]


def purged_names(rows: Rows, kind: Kind, names: Sequence[str], *, key: bytes) -> dict[str, str]:
    """Returns those of these names that were purged, with the time."""
    if not names or not has_kind(rows, kind):
        return {}
    by_hash = {hash_name(kind, name, key): name for name in names}
    return {by_hash[hash_]: at for hash_, at in _find_tombstones(rows, f"('{kind}')", by_hash)}


def find_purged_projects(rows: Rows, key: bytes) -> dict[int, str]:
    """Returns the purged projects: everything in them up to the time is purged."""
    if not has_kind(rows, "project"):
        return {}
    seqs: dict[str, int] = dict(rows.all("select key, seq from projects where seq > 0"))
    return {seqs[name]: at for name, at in purged_names(rows, "project", list(seqs), key=key).items()}


def list_turn_names(uuid: str, stream: str, text_hash: str) -> tuple[str, ...]:
    """Returns the names under which a turn may have been purged: its own, its line's, a hook's report of it."""
    return tuple(dict.fromkeys((uuid, uuid.partition("/")[0], f"{stream}:{text_hash}")))


def cursor_name(rows: Rows, path: str, *, key: bytes) -> str:
    """Returns the name under which a transcript's cursor is stored: its path, or a keyed hash if it was purged."""
    if not has_purged(rows):
        return path
    hidden = remove_purged(path, purged_marks(rows, key))[1] or purged_names(rows, "file", [path], key=key)
    return make_hidden_name("file", path, key) if hidden else path


def make_hidden_name(kind: Kind, name: str, key: bytes) -> str:
    """Returns the keyed hash that replaces a purged name, so that the name is recognized."""
    return HASHED_NAME_PREFIX + hash_name(kind, name, key)


def hash_statement(text: str, key: bytes) -> str:
    """Returns the keyed hash of a statement's normalised words."""
    return hash_name("statement", tokens.normalise(text), key)


def hash_gist(text: str, *, correction: bool, key: bytes) -> Iterator[str]:
    """Returns the hash of a statement's gist, then the hashes without a word or two; none if it has no words.

    By the rule of `similarity.repeats`: negations and the like must be the same, and at least MIN_SAME_SHARE of the other
    words. A correction is compared with corrections only.
    """
    gist = similarity.gist(text)
    stems = sorted(gist.stems)
    head = f"{'correction' if correction else 'statement'}:{' '.join(gist.turns)}:"
    if not stems:
        return
    yield hash_name("gist", head + " ".join(stems), key)
    max_missing = 1 if len(stems) > MAX_WORDS_WITHOUT_TWO else MAX_LEFT_OUT
    for missing in range(1, max_missing + 1):
        if len(stems) - missing < similarity.MIN_SAME_SHARE * len(stems):
            return
        for words in combinations(stems, len(stems) - missing):
            yield hash_name("gist", head + " ".join(words), key)


def hash_texts(wordings: Mapping[str, bool], key: bytes) -> frozenset[str]:
    """Returns every hash by which texts may be forgotten; True also adds the hashes without a word or two."""
    hashes = set[str]()
    for text, nearly in wordings.items():
        hashes.add(hash_statement(text, key))
        for correction in (False, True):
            hashes.update(islice(hash_gist(text, correction=correction, key=key), None if nearly else 1))
    return frozenset(hashes)


def is_everywhere(rows: Rows, scope: int) -> bool:
    """Whether a scope applies to several projects: a workspace's or everything's."""
    return projects.everywhere_of(rows, scope) == scope


def list_scopes_of_forgetting(rows: Rows, scope: int, *, text_hash: str) -> list[int]:
    """Returns the places in which a forgetting is recorded: its own, those merged into it, and all in its workspace.

    Also what it was split off from, because an older state knows only that. Places where the same text is a memory are
    left out.
    """
    inside = {scope, *_list_workspace_projects(rows, scope)}
    own = {scope}.union(*(projects.find_merged_projects(rows, seq) for seq in inside if seq))
    related = own.union(*(project_merges.find_lineage(rows, seq) for seq in inside)) - own
    sql = "select 1 from memories where text_hash = :hash and project_seq = :seq"
    return sorted(own.union(seq for seq in related if rows.value(sql, hash=text_hash, seq=seq) is None))


def find_applicable_scopes(rows: Rows, project: int, *, home: int | None = None) -> frozenset[int] | None:
    """Returns the scopes whose forgettings apply to a statement of a project that holds in `home` (None: the project).

    None if all do. The project's, those of what it is or was a part of, and those of everywhere inside and outside its
    workspace; if it applies everywhere, also those of the projects that would see it.
    """
    scopes = project_merges.find_lineage(rows, project) | {projects.everywhere_of(rows, project), 0}
    if home is None or not is_everywhere(rows, home):
        return scopes
    return (
        scopes.union(*(project_merges.find_lineage(rows, seq) for seq in _list_workspace_projects(rows, home)))
        if home
        else None
    )


def find_scopes_to_reopen(rows: Rows, project: int, *, home: int) -> frozenset[int]:
    """Returns the places whose forgettings end when a person states in a project what applies in `home`."""
    return project_merges.find_lineage(rows, project) | {home}


def _list_workspace_projects(rows: Rows, scope: int) -> list[int]:
    return rows.column("select seq from projects where workspace_seq = :scope and :scope > 0 order by seq", scope=scope)
