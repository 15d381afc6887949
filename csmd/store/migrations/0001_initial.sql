-- Rows are joined by integer `seq` keys; ids that people see are text. Times are UTC ISO-8601 with ms and Z.
-- autoincrement where a stage's cursor is a row key: a new row with a deleted row's key would stand behind the cursor.

create table meta (key text primary key, value blob not null);

create table projects (
  seq integer primary key,
  key text not null unique,
  root text not null,
  name text not null,
  kind text not null,
  created_at text not null,
  remote text not null default '',
  -- What the directory is recognised by when it was moved; '' for nothing that could not be another's.
  fingerprint text not null default '',
  -- The row of the workspace it is walled in, of the project it was merged into or split from; 0 for none.
  workspace_seq integer not null default 0,
  merged_into integer not null default 0,
  part_of integer not null default 0
);
create index projects_by_root on projects (root);
create index projects_by_kind on projects (kind);
create index projects_by_fingerprint on projects (fingerprint);
create index projects_by_workspace on projects (workspace_seq);
create index projects_by_target on projects (merged_into);
create index projects_by_whole on projects (part_of);
-- Row 0 is the scope of what holds in every project, so that vectors can be partitioned by project_seq.
-- A workspace has such a row of its own (kind 'workspace'): what holds everywhere in it.
insert into projects (seq, key, root, name, kind, created_at) values (0, 'everywhere', '', 'everywhere', 'path', '');

-- Further identities that count to a project: its place before and after a move, places that the user named.
create table aliases (
  seq integer primary key,
  key text not null unique,
  project_seq integer not null references projects (seq),
  path text not null,
  why text not null,
  created_at text not null
);
create index aliases_by_project on aliases (project_seq);

-- Where turns were said, and the project it was identified as, whatever that was merged into since.
create table directories (
  seq integer primary key,
  path text not null,
  project_seq integer not null references projects (seq),
  unique (path, project_seq)
);
create index directories_by_project on directories (project_seq);

create table sessions (
  seq integer primary key,
  id text not null unique,
  parent text not null default '',
  host text not null,
  project_seq integer not null references projects (seq),
  path text not null default '',
  cwd text not null default '',
  title text not null default '',
  version text not null default '',
  model text not null default '',
  started_at text not null,
  last_at text not null,
  settled_at text not null default '',
  turns integer not null default 0,
  directory_seq integer not null default 0,
  bytes integer not null default 0,
  -- Tokens that the assistant's latest message was made from; 0 where its transcript does not say.
  context integer not null default 0
);
create index sessions_by_project on sessions (project_seq, last_at);
create index sessions_by_parent on sessions (parent);
create index sessions_by_start on sessions (started_at) where parent = '';
-- A few rows of many, looked for again and again: what `csmd doctor` sends.
create index sessions_of_probes on sessions (started_at) where host = 'probe';
create index sessions_latest on sessions (last_at) where parent = '';

create table turns (
  seq integer primary key autoincrement,
  uuid text not null unique,
  session_seq integer not null references sessions (seq),
  project_seq integer not null references projects (seq),
  kind text not null,
  text text not null,
  text_hash text not null,
  at text not null,
  parent_uuid text not null default '',
  message_id text not null default '',
  tool_name text not null default '',
  tool_id text not null default '',
  tokens integer not null default 0,
  source text not null,
  provisional integer not null default 0,
  searchable integer not null default 0,
  dropped integer,
  directory_seq integer not null default 0
);
-- The hash first: a fork lists turns that are stored under another session.
create index turns_by_hash on turns (text_hash, session_seq);
-- A few rows of many: what waits for its line, what never had one, what is searched.
create index turns_of_hooks on turns (provisional, at) where source = 'hook';
-- Tool traffic that still has its text, the oldest first: what is dropped when it is old or when room is short.
create index turns_of_tools on turns (at) where kind in ('tool_call', 'tool_result') and dropped is null;
create index turns_searchable on turns (searchable) where searchable = 1;

-- A turn is stored once and listed in every session that holds it (forks copy lines with the same uuid).
create table session_turn (
  session_seq integer not null references sessions (seq),
  ordinal integer not null,
  turn_seq integer not null references turns (seq) on delete cascade,
  primary key (session_seq, ordinal)
) without rowid;
create unique index session_turn_once on session_turn (session_seq, turn_seq);
create index session_turn_by_turn on session_turn (turn_seq);

-- What was put into the host's queue of prompts, by a key of its line; the turn has the uuid of the line that said it
-- again. What has left into a turn under way (absorbed) may never be said again.
create table queued (
  key text primary key,
  session_seq integer not null references sessions (seq),
  turn_seq integer not null references turns (seq) on delete cascade,
  at text not null,
  left_at text not null default '',
  absorbed integer not null default 0
);
create index queued_by_session on queued (session_seq, left_at);
create index queued_by_turn on queued (turn_seq);

-- What hooks reported; no text, only hashes, so that a replay is known.
create table events (
  seq integer primary key autoincrement,
  id text not null unique,
  host text not null,
  name text not null,
  session_id text not null,
  stream text not null,
  text_hash text not null default '',
  payload_hash text not null default '',
  source text not null default '',
  at text not null
);
create index events_by_payload on events (session_id, name, payload_hash);
create index events_by_hash on events (stream, text_hash);
create index events_by_name on events (name, at);

-- Sessions that ran and that no hook reported, and the latest event when that was noticed: a later one takes them back.
create table unheard (session_id text primary key, at text not null, after_event integer not null);

create table statements (
  seq integer primary key autoincrement,
  turn_seq integer not null references turns (seq) on delete cascade,
  session_seq integer not null references sessions (seq),
  project_seq integer not null references projects (seq),
  text text not null,
  text_hash text not null,
  gate text not null,
  category text not null,
  confidence real not null,
  authority text not null,
  reasons text not null,
  -- Uuids of further turns that are its other half, with spaces between.
  also text not null default '',
  at text not null,
  unique (turn_seq, text_hash)
);
create index statements_by_hash on statements (text_hash);

create table memories (
  seq integer primary key autoincrement,
  id text not null unique,
  text text not null,
  text_hash text not null,
  gate text not null,
  category text not null,
  type text not null,
  tier text not null,
  decay text not null,
  authority text not null,
  origin text not null,
  confidence real not null,
  scope text not null,
  project_seq integer not null references projects (seq),
  session_id text not null,
  created_at text not null,
  confirmed_at text not null,
  hot_until integer not null,
  warm_until integer not null,
  archive_at integer not null,
  pinned integer not null default 0,
  version integer not null default 1,
  superseded_by text not null default '',
  -- The project it was merged out of, and the memory that says the same for both since; 0 for none.
  origin_seq integer not null default 0,
  twin_of integer not null default 0,
  -- When a session last made use of it: its age begins again, as after a confirmation; '' for never.
  used_at text not null default ''
);
create index memories_by_twin on memories (twin_of) where twin_of > 0;
create index memories_by_hash on memories (project_seq, text_hash);
create index memories_superseded on memories (superseded_by) where superseded_by <> '';
create index memories_replaced on memories (project_seq, confirmed_at) where superseded_by <> '';
create index memories_by_scope on memories (project_seq, gate, confidence);
create index memories_by_gate on memories (gate, tier);
create index memories_by_tier on memories (project_seq, tier);

create table provenance (
  memory_seq integer not null references memories (seq) on delete cascade,
  uuid text not null,
  session_id text not null,
  at text not null,
  role text not null,
  primary key (memory_seq, uuid)
) without rowid;
create index provenance_by_uuid on provenance (uuid);
create index provenance_by_session on provenance (session_id, at);

create table links (
  from_seq integer not null references memories (seq) on delete cascade,
  to_seq integer not null references memories (seq) on delete cascade,
  relationship text not null,
  weight real not null,
  created_at text not null,
  primary key (from_seq, to_seq, relationship)
) without rowid;
create index links_by_to on links (to_seq);

-- What memories of a project are about: found among them, or said by somebody (`by_whom`). A weight of 0 keeps a topic off.
create table topics (
  seq integer primary key autoincrement,
  project_seq integer not null references projects (seq),
  name text not null,
  unique (project_seq, name)
);
create index topics_by_name on topics (name);
create table memory_topics (
  memory_seq integer not null references memories (seq) on delete cascade,
  topic_seq integer not null references topics (seq) on delete cascade,
  by_whom text not null,
  weight real not null,
  primary key (memory_seq, topic_seq)
) without rowid;
create index memory_topics_by_topic on memory_topics (topic_seq);
-- Projects whose memories have changed since their topics were looked for, and how often.
create table topics_due (project_seq integer primary key, changes integer not null);

-- Why a belief is no longer what it was: merged, archived, superseded, edited; undone or in force.
create table belief_changes (
  seq integer primary key autoincrement,
  memory_id text not null,
  change text not null,
  before text not null,
  after text not null,
  reason text not null,
  by_whom text not null,
  at text not null,
  undone_at text not null default ''
);
create index belief_changes_by_memory on belief_changes (memory_id, seq);

-- What was observed in a session, by fixed names: orders, commands, milestones, errors. The words stay with their turn.
create table packets (
  seq integer primary key autoincrement,
  session_seq integer not null references sessions (seq),
  project_seq integer not null references projects (seq),
  uuid text not null,
  ordinal integer not null,
  kind text not null,
  subject text not null,
  outcome text not null,
  at text not null,
  words integer not null,
  frustration real not null,
  energy real not null,
  stance text not null,
  urgency real not null,
  unique (uuid, kind, subject)
);
create index packets_by_project on packets (project_seq, at);
create index packets_by_session on packets (session_seq, ordinal);

-- One queue of what may become a memory or be done to memories, whichever rule put it there; of one that waits there is one.
create table candidates (
  seq integer primary key autoincrement,
  id text not null unique,
  kind text not null,
  source text not null,
  project_seq integer not null references projects (seq),
  fingerprint text not null,
  text text not null,
  reason text not null,
  gate text not null,
  category text not null,
  confidence real not null,
  reinforcement integer not null,
  contradicted integer not null,
  status text not null,
  memory_ids text not null default '',
  created_at text not null,
  updated_at text not null,
  version integer not null default 1
);
create unique index candidates_once on candidates (project_seq, kind, fingerprint)
  where status in ('open', 'needs_review');
create index candidates_by_status on candidates (status, kind, project_seq);
create table candidate_evidence (
  candidate_seq integer not null references candidates (seq) on delete cascade,
  uuid text not null,
  session_id text not null,
  at text not null,
  against integer not null default 0,
  primary key (candidate_seq, uuid)
) without rowid;
create index candidate_evidence_by_uuid on candidate_evidence (uuid);

-- What a person answered to what waited for one, or changed by hand; `item` is the memory or candidate it was about.
create table answers (
  seq integer primary key autoincrement,
  id text not null unique,
  item text not null,
  answer text not null,
  made text not null,
  was text not null,
  project_seq integer not null references projects (seq),
  at text not null,
  undone_at text not null default ''
);
create index answers_by_item on answers (item);
-- Each memory that an answer touched as it was before, for undoing it; `state` is all but its text, '' where it was not there.
create table answer_befores (
  seq integer primary key,
  answer_seq integer not null references answers (seq) on delete cascade,
  memory_id text not null,
  text text not null,
  state text not null,
  more text not null,
  version_after integer not null
);
create index answer_befores_by_answer on answer_befores (answer_seq);
-- What failed: the same failure is one row, in whichever projects it was seen.
create table errors (
  seq integer primary key,
  fingerprint text not null unique,
  command text not null,
  exit_code integer not null,
  message text not null
);
create index errors_by_message on errors (message);
-- Each time it was seen, by the turn that says so; its project is the turn's.
create table error_seen (
  error_seq integer not null references errors (seq) on delete cascade,
  turn_seq integer not null references turns (seq) on delete cascade,
  session_seq integer not null references sessions (seq),
  at text not null,
  primary key (error_seq, turn_seq)
) without rowid;
create index error_seen_by_turn on error_seen (turn_seq);
create index error_seen_by_session on error_seen (session_seq);
-- What mended it: the turn in which the same command went well, the files edited before, what the assistant said it was.
create table error_fixes (
  seq integer primary key,
  error_seq integer not null references errors (seq) on delete cascade,
  turn_seq integer not null references turns (seq) on delete cascade,
  session_seq integer not null references sessions (seq),
  uuid text not null,
  at text not null,
  files text not null,
  text text not null,
  unique (error_seq, turn_seq)
);
create index error_fixes_by_turn on error_fixes (turn_seq);
create index error_fixes_by_uuid on error_fixes (uuid);

-- In whose words somebody will ask for a memory that names a cause: what was reported, in which turn.
create table symptoms (
  seq integer primary key autoincrement,
  memory_seq integer not null references memories (seq) on delete cascade,
  uuid text not null,
  at text not null,
  text text not null,
  fingerprint text not null default '',
  unique (memory_seq, uuid)
);
create index symptoms_by_uuid on symptoms (uuid);
create index symptoms_by_error on symptoms (fingerprint) where fingerprint <> '';
-- What was said, or happened, against a cause; `lowered` is by how much its confidence went down.
create table refutations (
  memory_seq integer not null references memories (seq) on delete cascade,
  uuid text not null,
  at text not null,
  reason text not null,
  lowered real not null,
  primary key (memory_seq, uuid)
) without rowid;
create index refutations_by_uuid on refutations (uuid);

-- How far a stage has come: `position` is a row key or an ordinal of `subject`.
create table cursors (
  stage text not null,
  subject text not null,
  position integer not null,
  primary key (stage, subject)
) without rowid;

-- How far a transcript has been read, and enough of it to notice that it was replaced.
create table files (
  path text primary key,
  device integer not null,
  inode integer not null,
  position integer not null,
  head text not null,
  foot text not null default '',
  mtime_ns integer not null default 0,
  bad_lines integer not null default 0,
  read_at text not null
);
create index files_by_mtime on files (mtime_ns);
create index files_by_time on files (read_at);

create table injections (
  seq integer primary key autoincrement,
  id text not null unique,
  session_id text not null,
  event text not null,
  project_seq integer not null references projects (seq),
  at text not null,
  tokens integer not null,
  text_hash text not null,
  -- Whether it was decided what the session made use of.
  judged integer not null default 0
);
create index injections_by_session on injections (session_id, at);
create index injections_by_project on injections (project_seq, at);
create index injections_by_time on injections (at);
create index injections_unjudged on injections (session_id, at) where judged = 0;

create table injection_items (
  injection_seq integer not null references injections (seq) on delete cascade,
  memory_id text not null,
  score real not null,
  reason text not null,
  -- Whether the session made use of it, null while nobody can say; and by which kind of mark that was told.
  used integer,
  used_by text not null default '',
  primary key (injection_seq, memory_id)
) without rowid;
create index injection_items_by_memory on injection_items (memory_id);

-- What a model's messages took, each once for each session whose transcript has it; a line that comes again says the latest.
create table usage (
  session_seq integer not null,
  message_id text not null,
  input integer not null,
  output integer not null,
  cache_read integer not null,
  cache_write integer not null,
  primary key (session_seq, message_id)
) without rowid;

-- What was composed for an event, also where it came to nothing; no text. The latest only.
create table context_log (
  seq integer primary key autoincrement,
  at text not null,
  session_id text not null,
  event text not null,
  chosen integer not null,
  cut integer not null,
  tokens integer not null,
  degraded integer not null,
  ms integer not null
);
create index context_log_by_session on context_log (session_id);
create index context_log_by_time on context_log (at);

-- What was looked for: no words, a keyed hash by which it is told that the same was asked again. The latest only.
create table memory_recall_events (
  seq integer primary key autoincrement,
  at text not null,
  kind text not null,
  query_hash text not null,
  results integer not null,
  top real not null,
  ms integer not null
);
create index memory_recall_events_by_time on memory_recall_events (at);

-- Days on which a project had a turn: ages are counted in these.
create table activity (
  project_seq integer not null,
  day text not null,
  -- The project whose merge brought the day; 0 for one of its own.
  from_seq integer not null default 0,
  primary key (project_seq, day)
) without rowid;

-- Keyed hashes of what the user made csmd forget or purge. `anchor`: a small keyed hash of a text's longest word.
create table tombstones (
  kind text not null,
  hash text not null,
  part_of text not null default '',
  words integer not null default 0,
  anchor integer not null default 0,
  anchor_at integer not null default 0,
  authority text not null default 'user',
  created_at text not null,
  primary key (kind, hash, part_of)
);

-- Keyed hashes of the file names of transcripts that a recorded tool call has written: their lines prove nothing.
create table tampered (name_hash text primary key, at text not null);

-- What the assistant is told by its instruction files and its own memory's index: the latest of each file.
create table instructions (
  seq integer primary key,
  project_seq integer not null references projects (seq),
  path text not null,
  kind text not null,
  root text not null,
  ordinal integer not null,
  text text not null,
  text_hash text not null,
  read_at text not null,
  gone integer not null default 0,
  unique (project_seq, path)
);

-- The versions of the assistant that wrote transcripts, and when last; its directories that hooks named and nobody reads.
create table clients (version text primary key, last_at text not null);
create table elsewhere (path text primary key, last_at text not null);

create table counters (name text primary key, value integer not null);

-- How large the database was on the days when csmd ran, the latest days only.
create table sizes (day text primary key, bytes integer not null);

-- How many rows the long tables have, kept by triggers: counting a million takes longer than `csmd status` may.
create table tallies (name text primary key, value integer not null);
insert into tallies (name, value) values
  ('turns', 0), ('events', 0), ('statements', 0), ('injections', 0), ('vectors', 0);

create table vector_models (
  seq integer primary key,
  name text not null unique,
  dim integer not null,
  created_at text not null
);
create table vectors (
  seq integer primary key,
  model_seq integer not null references vector_models (seq),
  kind text not null,
  row_seq integer not null,
  start_at integer not null,
  end_at integer not null,
  unique (model_seq, kind, row_seq, start_at)
);
create index vectors_by_row on vectors (kind, row_seq);
-- Rows behind the cursor whose words have changed since: their vectors are gone and made again.
create table embed_again (
  model_seq integer not null,
  kind text not null,
  row_seq integer not null,
  primary key (kind, row_seq, model_seq)
) without rowid;

-- One bit for each number of a vector: what a large store is looked through by before vectors are compared whole.
create table vector_codes (
  model_seq integer not null,
  kind text not null,
  project_seq integer not null,
  seq integer not null,
  code blob not null,
  primary key (model_seq, kind, project_seq, seq)
) without rowid;

-- External content over views: what is indexed of a text is its words and the terms derived from them and from its
-- time (csmd/text.py). A change of what is derived needs a migration that rebuilds these four indexes.
-- Of turns only what people search for is indexed.
create view turn_text as select seq, csmd_indexed(text, at) as text from turns where searchable = 1;
create virtual table turns_fts using fts5 (
  text, content = 'turn_text', content_rowid = 'seq', tokenize = 'porter unicode61 remove_diacritics 2'
);
create trigger turns_fts_insert after insert on turns when new.searchable = 1 begin
  insert into turns_fts (rowid, text) values (new.seq, csmd_indexed(new.text, new.at));
end;
create trigger turns_fts_delete after delete on turns when old.searchable = 1 begin
  insert into turns_fts (turns_fts, rowid, text) values ('delete', old.seq, csmd_indexed(old.text, old.at));
end;
create trigger turns_fts_update after update of text, searchable, at on turns begin
  insert into turns_fts (turns_fts, rowid, text)
    select 'delete', old.seq, csmd_indexed(old.text, old.at) where old.searchable = 1;
  insert into turns_fts (rowid, text) select new.seq, csmd_indexed(new.text, new.at) where new.searchable = 1;
end;

create view memory_text as select seq, csmd_indexed(text, created_at) as text from memories;
create virtual table memories_fts using fts5 (
  text, content = 'memory_text', content_rowid = 'seq', tokenize = 'porter unicode61 remove_diacritics 2'
);
create trigger memories_fts_insert after insert on memories begin
  insert into memories_fts (rowid, text) values (new.seq, csmd_indexed(new.text, new.created_at));
end;
create trigger memories_fts_delete after delete on memories begin
  insert into memories_fts (memories_fts, rowid, text) values ('delete', old.seq, csmd_indexed(old.text, old.created_at));
end;
create trigger memories_fts_update after update of text, created_at on memories begin
  insert into memories_fts (memories_fts, rowid, text) values ('delete', old.seq, csmd_indexed(old.text, old.created_at));
  insert into memories_fts (rowid, text) values (new.seq, csmd_indexed(new.text, new.created_at));
end;

-- The fingerprint too: who has it from `csmd errors` finds what explains it.
create view symptom_text as select seq, csmd_indexed(text || ' ' || fingerprint, at) as text from symptoms;
create virtual table symptoms_fts using fts5 (
  text, content = 'symptom_text', content_rowid = 'seq', tokenize = 'porter unicode61 remove_diacritics 2'
);
create trigger symptoms_fts_insert after insert on symptoms begin
  insert into symptoms_fts (rowid, text) values (new.seq, csmd_indexed(new.text || ' ' || new.fingerprint, new.at));
end;
create trigger symptoms_fts_delete after delete on symptoms begin
  insert into symptoms_fts (symptoms_fts, rowid, text) values ('delete', old.seq, csmd_indexed(old.text || ' ' || old.fingerprint, old.at));
end;
create trigger symptoms_fts_update after update of text, fingerprint, at on symptoms begin
  insert into symptoms_fts (symptoms_fts, rowid, text) values ('delete', old.seq, csmd_indexed(old.text || ' ' || old.fingerprint, old.at));
  insert into symptoms_fts (rowid, text) values (new.seq, csmd_indexed(new.text || ' ' || new.fingerprint, new.at));
end;

-- A topic's name is made of what memories say: it goes with the last of them.
create trigger topics_last after delete on memory_topics begin
  delete from topics where seq = old.topic_seq
    and not exists (select 1 from memory_topics t where t.topic_seq = old.topic_seq);
end;
create trigger topics_due_insert after insert on memories begin
  insert into topics_due (project_seq, changes) values (new.project_seq, 1)
    on conflict (project_seq) do update set changes = changes + 1;
end;
create trigger topics_due_delete after delete on memories begin
  insert into topics_due (project_seq, changes) values (old.project_seq, 1)
    on conflict (project_seq) do update set changes = changes + 1;
end;
create trigger topics_due_update after update of text, project_seq, session_id, twin_of, tier on memories
when new.text <> old.text or new.project_seq <> old.project_seq or new.session_id <> old.session_id
  or new.twin_of <> old.twin_of or (new.tier = 'archive') <> (old.tier = 'archive') begin
  insert into topics_due (project_seq, changes) values (old.project_seq, 1)
    on conflict (project_seq) do update set changes = changes + 1;
  insert into topics_due (project_seq, changes) values (new.project_seq, 1)
    on conflict (project_seq) do update set changes = changes + 1;
end;

create trigger belief_changes_delete after delete on memories begin
  delete from belief_changes where memory_id = old.id;
end;

create trigger turns_tally_insert after insert on turns when new.source <> 'probe' begin
  update tallies set value = value + 1 where name = 'turns';
end;
create trigger turns_tally_delete after delete on turns when old.source <> 'probe' begin
  update tallies set value = value - 1 where name = 'turns';
end;

create trigger events_tally_insert after insert on events begin
  update tallies set value = value + 1 where name = 'events';
end;
create trigger events_tally_delete after delete on events begin
  update tallies set value = value - 1 where name = 'events';
end;

create trigger statements_tally_insert after insert on statements begin
  update tallies set value = value + 1 where name = 'statements';
end;
create trigger statements_tally_delete after delete on statements begin
  update tallies set value = value - 1 where name = 'statements';
end;

create trigger injections_tally_insert after insert on injections begin
  update tallies set value = value + 1 where name = 'injections';
end;
create trigger injections_tally_delete after delete on injections begin
  update tallies set value = value - 1 where name = 'injections';
end;

create trigger vectors_tally_insert after insert on vectors begin
  update tallies set value = value + 1 where name = 'vectors';
end;
create trigger vectors_tally_delete after delete on vectors begin
  update tallies set value = value - 1 where name = 'vectors';
end;

-- What is told of a session: a version up to each compaction and a last one, made of its turns and statements alone.
create table digests (
  seq integer primary key autoincrement,
  session_seq integer not null references sessions (seq),
  version integer not null,
  why text not null,
  upto integer not null,
  at text not null,
  text text not null,
  outcome text not null,
  prompts integer not null,
  calls integer not null,
  tokens integer not null,
  unique (session_seq, version)
);
-- What a digest was made of, and what sessions are compared by.
create table digest_items (
  seq integer primary key autoincrement,
  digest_seq integer not null references digests (seq) on delete cascade,
  kind text not null,
  text text not null,
  uuid text not null,
  state text not null default '',
  amount integer not null default 1
);
create index digest_items_by_digest on digest_items (digest_seq, kind);

create view digest_text as select seq, csmd_indexed(text, at) as text from digests;
create virtual table digests_fts using fts5 (
  text, content = 'digest_text', content_rowid = 'seq', tokenize = 'porter unicode61 remove_diacritics 2'
);
create trigger digests_fts_insert after insert on digests begin
  insert into digests_fts (rowid, text) values (new.seq, csmd_indexed(new.text, new.at));
end;
create trigger digests_fts_delete after delete on digests begin
  insert into digests_fts (digests_fts, rowid, text) values ('delete', old.seq, csmd_indexed(old.text, old.at));
end;
create trigger digests_fts_update after update of text, at on digests begin
  insert into digests_fts (digests_fts, rowid, text) values ('delete', old.seq, csmd_indexed(old.text, old.at));
  insert into digests_fts (rowid, text) values (new.seq, csmd_indexed(new.text, new.at));
end;

-- How a session builds on an earlier one; from_seq is 0 where that was not captured (a gap).
create table session_links (
  seq integer primary key autoincrement,
  from_seq integer not null,
  to_seq integer not null references sessions (seq),
  kind text not null,
  rule text not null,
  about text not null,
  weight real not null
);
create index session_links_by_to on session_links (to_seq);
create index session_links_by_from on session_links (from_seq);
create table session_link_evidence (
  link_seq integer not null references session_links (seq) on delete cascade,
  uuid text not null,
  primary key (link_seq, uuid)
) without rowid;

-- How work of a kind ended in a session: what the self model counts.
create table self_capabilities (
  seq integer primary key autoincrement,
  session_seq integer not null references sessions (seq),
  capability text not null,
  outcome text not null,
  why text not null,
  uuid text not null,
  at text not null,
  unique (session_seq, capability)
);
-- What a session was worked with.
create table self_continuity (
  session_seq integer primary key references sessions (seq),
  host text not null,
  version text not null,
  model text not null,
  since text not null,
  until text not null
);

-- What a session stood at, before a compaction or when somebody asked for it; its words are copies of its turns'.
create table checkpoints (
  seq integer primary key autoincrement,
  id text not null unique,
  session_seq integer not null references sessions (seq),
  -- compaction, or asked for by a person or an assistant.
  why text not null,
  -- The turn with the summary of its compaction; '' for none, or while it was not read.
  summary_uuid text not null default '',
  -- When a hook or somebody asked for it; '' where only the transcript told of the compaction.
  asked_at text not null default '',
  -- How far it goes: the last turn's place and time.
  upto integer not null,
  at text not null,
  -- Turns and distilled turns of its session when it was made, while more may come that belongs to it; '' when whole.
  awaits text not null default '',
  note text not null default '',
  -- When somebody asked that the next session be told it, and which ('' for the next of its project).
  restored_at text not null default '',
  restored_for text not null default ''
);
create index checkpoints_by_session on checkpoints (session_seq, at);
create index checkpoints_awaiting on checkpoints (awaits) where awaits <> '';
create index checkpoints_restored on checkpoints (restored_at) where restored_at <> '';
create table checkpoint_items (
  seq integer primary key autoincrement,
  checkpoint_seq integer not null references checkpoints (seq) on delete cascade,
  kind text not null,
  text text not null,
  uuid text not null,
  state text not null,
  amount integer not null
);
create index checkpoint_items_by_checkpoint on checkpoint_items (checkpoint_seq);
create index checkpoint_items_by_uuid on checkpoint_items (uuid);
-- The last turns before it as they were stored: here they outlive the dropping of tool output.
create table checkpoint_raw_captures (
  seq integer primary key autoincrement,
  checkpoint_seq integer not null references checkpoints (seq) on delete cascade,
  uuid text not null,
  kind text not null,
  tool text not null,
  at text not null,
  text text not null
);
create index checkpoint_raw_captures_by_checkpoint on checkpoint_raw_captures (checkpoint_seq);
create index checkpoint_raw_captures_by_uuid on checkpoint_raw_captures (uuid);
-- Summaries are few among the turns, and each tells of a compaction.
create index turns_of_summaries on turns (seq) where kind = 'summary';

-- What a person, or an assistant, said a project or one session (session_id) is for; `origin_seq` as in memories.
create table goals (
  seq integer primary key autoincrement,
  id text not null unique,
  project_seq integer not null references projects (seq),
  origin_seq integer not null default 0,
  session_id text not null default '',
  text text not null,
  authority text not null,
  created_at text not null,
  done_at text not null default ''
);
create index goals_by_project on goals (project_seq, done_at);
create index goals_by_session on goals (session_id);

-- Dreams, the latest last: what began one, and what became of it (running, done, failed, cancelled, undoing, undone).
create table dreams (
  seq integer primary key autoincrement,
  id text not null unique,
  why text not null,
  state text not null,
  begun_at text not null,
  ended_at text not null default '',
  undone_at text not null default '',
  -- New sessions that it found, and what went wrong ("" for nothing).
  sessions integer not null default 0,
  error text not null default ''
);
create index dreams_by_state on dreams (state, begun_at);
-- Each action it carried out, with its reason; evidence are ids and uuids with spaces between.
create table dream_changes (
  seq integer primary key autoincrement,
  dream_seq integer not null references dreams (seq) on delete cascade,
  kind text not null,
  project_seq integer not null,
  reason text not null,
  evidence text not null,
  at text not null,
  undone_at text not null default ''
);
create index dream_changes_by_dream on dream_changes (dream_seq);
-- Every memory and candidate that an action touched, before and after, as in answer_befores; '' where it was not there.
-- `kept`: why it is not what it was, though the dream was undone.
create table dream_rows (
  seq integer primary key autoincrement,
  change_seq integer not null references dream_changes (seq) on delete cascade,
  item text not null,
  text text not null,
  state text not null,
  more text not null,
  text_after text not null,
  state_after text not null,
  more_after text not null,
  kept text not null default ''
);
create index dream_rows_by_change on dream_rows (change_seq);
create index dream_rows_by_item on dream_rows (item);
-- Every file that it wrote, before and after, and whether it was there. `path` is below the home.
create table dream_files (
  seq integer primary key autoincrement,
  change_seq integer not null references dream_changes (seq) on delete cascade,
  path text not null,
  before text not null,
  after text not null,
  was_there integer not null,
  is_there integer not null,
  kept text not null default ''
);
create index dream_files_by_change on dream_files (change_seq);
create index dream_files_by_path on dream_files (path);

-- Which sessions a day's file tells, by which digest, up to which turn's time, behind which wall; what is due of it: to leave its file, to move
-- behind another wall, or nothing ('').
create table told_days (
  seq integer primary key autoincrement,
  session_seq integer not null references sessions (seq),
  day text not null,
  digest_seq integer not null,
  last_at text not null,
  workspace_seq integer not null,
  due text not null default '',
  unique (session_seq, day)
);
create index told_days_due on told_days (due) where due <> '';

-- The markdown that people read and edit, as csmd wrote it last or read it back: an edit is what is other in the file.
create table pages (
  seq integer primary key autoincrement,
  path text not null unique,
  text text not null,
  at text not null,
  -- What the file may say besides: what is about to be written, or a person's words as they wrote them.
  also text not null default '',
  -- The file with the whole page beside one that lost too much at once, and what could not be read; '' for nothing.
  held text not null default '',
  problem text not null default '',
  -- Hashes of counted sentences that a person took off the page, with spaces between.
  left_out text not null default ''
);
