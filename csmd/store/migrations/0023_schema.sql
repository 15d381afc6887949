-- The whole schema. It replaces the migrations 0001 to 0022; upgrade_0022.sql upgrades a database from the last of them.
-- Rows refer to each other by integer `seq` keys; ids that people see are text. Times are UTC ISO-8601 with ms and Z.
-- `autoincrement`: a stage's cursor is a row key, so the key of a deleted row must not be given out again.

-- Settings of the database itself, among them the key of the keyed hashes.
create table meta (key text primary key, value blob not null);

-- ---- Projects and sessions

-- Row 0 holds what applies in every project, so that vectors can be partitioned by project_seq. A workspace is a
-- row of the kind 'workspace', which holds what applies everywhere in it.
create table projects (
  seq integer primary key,
  key text not null unique,
  root text not null,
  name text not null,
  kind text not null,
  created_at text not null,
  remote text not null default '',
  -- How a moved directory is recognized; '' if nothing in it is unique.
  fingerprint text not null default '',
  -- Rows of its workspace, of the project that it was merged into or split from, of its lens; 0 for none.
  workspace_seq integer not null default 0,
  merged_into integer not null default 0,
  part_of integer not null default 0,
  lens_seq integer not null default 0,
  -- How often its memories changed since its topics were computed.
  topics_due integer not null default 0
);
create index projects_by_root on projects (root);
create index projects_by_kind on projects (kind);
create index projects_by_fingerprint on projects (fingerprint);
create index projects_by_workspace on projects (workspace_seq);
create index projects_by_target on projects (merged_into);
create index projects_by_whole on projects (part_of);
create index projects_by_lens on projects (lens_seq) where lens_seq > 0;
insert into projects (seq, key, root, name, kind, created_at) values (0, 'everywhere', '', 'everywhere', 'path', '');

-- Topics that a lens ranks first. A lens is a workspace with `lens_seq` set on the projects that it ranks first.
create table lens_topics (
  seq integer primary key,
  lens_seq integer not null references projects (seq) on delete cascade,
  name text not null,
  unique (lens_seq, name)
);

-- Further identities of a project: its path before it was moved, a removed worktree, paths that the user named.
create table aliases (
  seq integer primary key,
  key text not null unique,
  project_seq integer not null references projects (seq),
  path text not null,
  why text not null,
  created_at text not null
);
create index aliases_by_project on aliases (project_seq);

-- Directories in which turns were said, with the project as it was first identified, before any merge.
create table directories (
  seq integer primary key,
  path text not null,
  project_seq integer not null references projects (seq),
  unique (path, project_seq)
);
create index directories_by_project on directories (project_seq);

-- Conversations. A sub-agent's has its parent's id.
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
  -- Input tokens of the assistant's latest message; 0 if the transcript does not say.
  context integer not null default 0,
  -- Up to when the conversation was dropped for its age; '' for never.
  emptied_at text not null default '',
  -- When no hook had reported it although it ran, and the latest event then: a later event clears both.
  unreported_at text not null default '',
  unreported_after integer not null default 0
);
create index sessions_by_project on sessions (project_seq, last_at);
create index sessions_by_parent on sessions (parent);
create index sessions_by_start on sessions (started_at) where parent = '';
-- Of `csmd doctor`: few rows that are looked up often.
create index sessions_of_probes on sessions (started_at) where host = 'probe';
create index sessions_unreported on sessions (unreported_at) where unreported_at > '';
create index sessions_latest on sessions (last_at) where parent = '';

-- Entries of conversations, each once; sources are hooks, transcripts and probes of `csmd doctor`.
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
  -- How many bytes of what was said are not stored, and whether none are; null if all are.
  dropped integer,
  directory_seq integer not null default 0,
  gone integer not null default 0,
  -- Tokens as tiktoken counts them; null until they are counted.
  counted integer,
  -- How much the assistant may do without asking, in its host's words; '' if unknown.
  mode text not null default '',
  -- Whether memory/speakers.py is to review the turn: a transcript corrected its speaker after it was distilled.
  speaker_due integer not null default 0
);
-- The hash first: a fork lists turns that are stored under another session.
create index turns_by_hash on turns (text_hash, session_seq);
-- Few rows of many: prompts whose transcript line has not come.
create index turns_of_hooks on turns (provisional, at) where source = 'hook';
-- Summaries are few among the turns, and each reports a compaction.
create index turns_of_summaries on turns (seq) where kind = 'summary';
-- The project of a searchable turn, looked up for thousands of rows without reading their text.
create index turns_of_projects on turns (project_seq) where searchable = 1;
-- With the kind: the exchange around a turn is found without reading the texts between.
create index turns_searchable on turns (searchable, seq, kind) where searchable = 1;
-- Of two prompts with the same parent the later replaced the earlier.
create index turns_by_parent on turns (parent_uuid) where parent_uuid <> '' and kind in ('user', 'relayed', 'command');
-- Tool traffic that still has its text, oldest first: what is dropped for age or room.
create index turns_of_tools on turns (at) where kind in ('tool_call', 'tool_result') and gone = 0;
create index turns_of_speakers_due on turns (seq) where speaker_due = 1;
create index turns_uncounted on turns (seq) where counted is null and gone = 0;

-- The turns of a session in order. A forked session lists turns that are stored under another session.
create table session_turn (
  session_seq integer not null references sessions (seq),
  ordinal integer not null,
  turn_seq integer not null references turns (seq) on delete cascade,
  -- Left behind by a rewind (store/rewinds.py): listed, and nothing is made of it.
  rewound integer not null default 0,
  primary key (session_seq, ordinal)
) without rowid;
create unique index session_turn_once on session_turn (session_seq, turn_seq);
create index session_turn_by_turn on session_turn (turn_seq);

-- Prompts in the assistant's queue, by a key of their transcript line. `absorbed`: the prompt went into a running turn
-- and may never appear again.
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

-- Turns of which less is stored than was said. Tokens were counted by tiktoken if `is_counted`, else estimated.
-- Causes: size (trimmed when stored), session (its limit was reached), age, room (the database's limit).
create table compactions (
  turn_seq integer not null references turns (seq) on delete cascade,
  outcome text not null,
  cause text not null,
  bytes_before integer not null,
  bytes_after integer not null,
  tokens_before integer not null,
  tokens_after integer not null,
  is_counted integer not null default 0,
  primary key (turn_seq)
) without rowid;

-- Events that hooks reported, as hashes: a replayed event is recognized.
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

-- Tokens that a model's message took, once for each session whose transcript has it; a repeated line replaces it.
create table usage (
  session_seq integer not null,
  message_id text not null,
  input integer not null,
  output integer not null,
  cache_read integer not null,
  cache_write integer not null,
  primary key (session_seq, message_id)
) without rowid;

-- Days on which a project had a turn: ages are counted in these.
create table activity (
  project_seq integer not null,
  day text not null,
  -- The project whose merge brought the day; 0 for its own.
  from_seq integer not null default 0,
  primary key (project_seq, day)
) without rowid;

-- ---- Statements, memories and what supports them

-- Passages chosen from turns, before they become memories.
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
  -- Uuids of the turns that are its other half, separated by spaces.
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
  -- The project before a merge, and the memory that says the same for both projects since; 0 for none.
  origin_seq integer not null default 0,
  twin_of integer not null default 0,
  -- When a session last used it, which restarts its age as a confirmation does; '' for never.
  used_at text not null default ''
);
create index memories_by_twin on memories (twin_of) where twin_of > 0;
create index memories_by_hash on memories (project_seq, text_hash);
create index memories_superseded on memories (superseded_by) where superseded_by <> '';
create index memories_replaced on memories (project_seq, confirmed_at) where superseded_by <> '';
create index memories_by_scope on memories (project_seq, gate, confidence);
create index memories_by_gate on memories (gate, tier);
create index memories_by_tier on memories (project_seq, tier);
create index memories_of_projects on memories (project_seq);
create index memories_by_session on memories (session_id);

-- Turns that state or confirm a memory (`role`), or are the other half of the exchange ('beside').
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

-- Weighted relationships between memories.
create table links (
  from_seq integer not null references memories (seq) on delete cascade,
  to_seq integer not null references memories (seq) on delete cascade,
  relationship text not null,
  weight real not null,
  created_at text not null,
  primary key (from_seq, to_seq, relationship)
) without rowid;
create index links_by_to on links (to_seq);

-- Where a memory was said: the file at hand or the question asked, and the turn that shows it.
create table scenes (
  seq integer primary key,
  memory_seq integer not null unique references memories (seq) on delete cascade,
  uuid text not null,
  text text not null
);
create index scenes_by_uuid on scenes (uuid);

-- Topics of a project's memories, found by rule or set by somebody (`by_whom`). A weight of 0 keeps a topic off.
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
create index memory_topics_by_topic on memory_topics (topic_seq, memory_seq, weight, by_whom);

-- Why a belief changed: merged, archived, superseded, edited; undone or in force.
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

-- What happened to memories, for `csmd tail`: the name of a belief change, 'undone' (`about` names the change), or
-- 'forgotten'. No text.
create table memory_events (
  seq integer primary key autoincrement,
  at text not null,
  act text not null,
  about text not null default '',
  memory_id text not null,
  project_seq integer not null,
  by_whom text not null
);

-- What a person or an assistant said that a project, or one session (`session_id`), is for.
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

-- ---- Patterns and candidates

-- Observations of a session by fixed names: orders, commands, milestones, errors. The words stay in their turn.
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

-- What may become a memory, or be done to memories; at most one waits for each fingerprint.
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

-- ---- Failures

-- Failures; the same failure in several projects is one row.
create table errors (
  seq integer primary key,
  fingerprint text not null unique,
  command text not null,
  exit_code integer not null,
  message text not null
);
create index errors_by_message on errors (message);

create table error_seen (
  error_seq integer not null references errors (seq) on delete cascade,
  turn_seq integer not null references turns (seq) on delete cascade,
  session_seq integer not null references sessions (seq),
  at text not null,
  primary key (error_seq, turn_seq)
) without rowid;
create index error_seen_by_turn on error_seen (turn_seq);
create index error_seen_by_session on error_seen (session_seq);

-- What fixed a failure: the turn in which the command succeeded, the files edited before, the assistant's explanation.
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

-- Reports of a failure that a memory explains, in the user's words.
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

-- Turns that speak against a memory; `lowered` is how much each took off its confidence.
create table refutations (
  memory_seq integer not null references memories (seq) on delete cascade,
  uuid text not null,
  at text not null,
  reason text not null,
  lowered real not null,
  primary key (memory_seq, uuid)
) without rowid;
create index refutations_by_uuid on refutations (uuid);

-- ---- Digests, checkpoints and the self model

-- Summaries of sessions: a version up to each compaction and a last one.
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

-- The parts that a digest was made of; sessions are compared by them.
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

-- Earlier sessions that a session continues; `from_seq` is 0 for one that was not captured.
create table session_links (
  seq integer primary key autoincrement,
  from_seq integer not null,
  to_seq integer not null references sessions (seq),
  kind text not null,
  rule text not null,
  about text not null,
  weight real not null,
  -- Uuids of the turns that show it, separated by spaces.
  evidence text not null default ''
);
create index session_links_by_to on session_links (to_seq);
create index session_links_by_from on session_links (from_seq);

-- How each kind of work ended in a session.
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

-- The state of a session before a compaction, or when somebody asked for it, copied from its turns.
create table checkpoints (
  seq integer primary key autoincrement,
  id text not null unique,
  session_seq integer not null references sessions (seq),
  -- 'compaction', or who asked for it.
  why text not null,
  -- The turn with the compaction's summary; '' for none, or until it is read.
  summary_uuid text not null default '',
  -- When a hook or somebody asked for it; '' if only the transcript reported the compaction.
  asked_at text not null default '',
  -- The ordinal and time of its last turn.
  upto integer not null,
  at text not null,
  -- The session's turns and distilled turns when it was made, while later rows may belong to it; '' when complete.
  awaits text not null default '',
  note text not null default '',
  -- When somebody asked to restore it, and in which session ('' for the next of its project).
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

-- The last turns before a checkpoint, as stored: they outlive the trimming of tool output.
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

-- ---- Injection and recall

-- Receipts: what was injected into a session.
create table injections (
  seq integer primary key autoincrement,
  id text not null unique,
  session_id text not null,
  event text not null,
  project_seq integer not null references projects (seq),
  at text not null,
  tokens integer not null,
  text_hash text not null,
  -- Whether the session's use of the items has been determined.
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
  -- Whether the session used it, null while unknown; `used_by` is the kind of evidence.
  used integer,
  used_by text not null default '',
  primary key (injection_seq, memory_id)
) without rowid;
create index injection_items_by_memory on injection_items (memory_id);

-- What was composed for an event, including nothing; no text. Kept for 90 days.
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

-- Searches, as keyed hashes of the query: a repeated search is recognized. Kept for 90 days.
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

-- ---- Reading transcripts, instruction files and hosts

-- How far a stage has come; `position` is a row key or an ordinal of `subject`.
create table cursors (
  stage text not null,
  subject text not null,
  position integer not null,
  primary key (stage, subject)
) without rowid;

-- How far a transcript has been read, with hashes by which a replaced file is recognized.
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

-- Instruction files and the assistant's own memory index, as last read.
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
  -- Names of the assistants that load the file, separated by spaces: only the others are told its content.
  hosts text not null default 'claude',
  unique (project_seq, path)
);

-- Versions of assistants that wrote transcripts.
create table clients (version text primary key, last_at text not null);

-- Configuration directories that hooks named and csmd does not read.
create table elsewhere (path text primary key, last_at text not null);

-- Keyed hashes of what the user had csmd forget or purge, of secrets, and of the names of transcripts that a tool call wrote.
create table tombstones (
  kind text not null,
  hash text not null,
  part_of text not null default '',
  words integer not null default 0,
  -- A small keyed hash of the text's longest word, and the word's position.
  anchor integer not null default 0,
  anchor_at integer not null default 0,
  authority text not null default 'user',
  created_at text not null,
  -- Where a statement was forgotten: the keyed hash of a project's key; '' for everywhere.
  place text not null default '',
  -- Since when the user says it again; earlier sources stay out.
  again_at text not null default '',
  primary key (kind, hash, part_of)
);
create index tombstones_by_place on tombstones (place) where place <> '';

-- How often something happened: bad lines, redactions by kind.
create table counters (name text primary key, value integer not null);

-- The database's size by day, for the latest days.
create table sizes (day text primary key, bytes integer not null);

-- ---- Dreams and pages

-- Consolidations: what started each, and its state (running, done, failed, cancelled, undoing, undone).
create table dreams (
  seq integer primary key autoincrement,
  id text not null unique,
  why text not null,
  state text not null,
  begun_at text not null,
  ended_at text not null default '',
  undone_at text not null default '',
  -- New sessions since the dream before, and the failure ('' for none).
  sessions integer not null default 0,
  error text not null default ''
);
create index dreams_by_state on dreams (state, begun_at);

-- The journal: a set is one act, an answer of a person or an action of a dream, with its reason; `evidence` holds ids and
-- uuids separated by spaces. Sets of dreams have no id and are deleted with their dream.
create table change_sets (
  seq integer primary key autoincrement,
  id text unique,
  dream_seq integer references dreams (seq) on delete cascade,
  by_whom text not null,
  kind text not null,
  item text not null default '',
  made text not null default '',
  project_seq integer not null,
  reason text not null default '',
  evidence text not null default '',
  at text not null,
  undone_at text not null default ''
);
create index change_sets_by_item on change_sets (item);
create index change_sets_by_made on change_sets (made);
create index change_sets_by_dream on change_sets (dream_seq);

-- Memories and candidates before and after an act; `state` is '' for a row that did not exist. `kept`: why undo left it.
create table changed_rows (
  seq integer primary key autoincrement,
  set_seq integer not null references change_sets (seq) on delete cascade,
  item text not null,
  text text not null,
  state text not null,
  more text not null,
  text_after text not null,
  state_after text not null,
  more_after text not null,
  kept text not null default ''
);
create index changed_rows_by_set on changed_rows (set_seq);
create index changed_rows_by_item on changed_rows (item);

-- Files before and after an act; `path` is below the home.
create table changed_files (
  seq integer primary key autoincrement,
  set_seq integer not null references change_sets (seq) on delete cascade,
  path text not null,
  before text not null,
  after text not null,
  was_there integer not null,
  is_there integer not null,
  kept text not null default ''
);
create index changed_files_by_set on changed_files (set_seq);
create index changed_files_by_path on changed_files (path);

-- A digest of the memories of a scope after comparing them found nothing: they are not compared until it changes.
create table dreamt_scopes (
  project_seq integer primary key references projects (seq) on delete cascade,
  digest text not null
) without rowid;

-- Sessions in the file of a day: by which digest, up to which time, in which workspace. `due`: what the file still needs:
-- to lose the session, to move to another workspace, or nothing ('').
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

-- Pages that people read and edit, as last written or read back: an edit is what differs in the file.
create table pages (
  seq integer primary key autoincrement,
  path text not null unique,
  text text not null,
  at text not null,
  -- Other content that is not an edit: what is about to be written, or a person's words as typed.
  also text not null default '',
  -- The copy of a page whose file lost too much at once, and what could not be read; '' for none.
  held text not null default '',
  problem text not null default '',
  -- Hashes of counted sentences that a person deleted from the page, separated by spaces.
  left_out text not null default ''
);

-- ---- Language models

-- Language models that a person added. The key is never stored, only where it is read from.
create table providers (
  seq integer primary key,
  name text not null unique,
  place text not null,
  model text not null,
  key_from text not null,
  added_at text not null,
  answered_at text not null default '',
  failed_at text not null default '',
  failing_since text not null default '',
  failure text not null default ''
);

-- Calls of a language model, written before the call with the estimate as its tokens: a killed call counts in full.
create table calls (
  seq integer primary key,
  at text not null,
  day text not null,
  project_seq integer not null,
  purpose text not null,
  provider text not null,
  model text not null,
  estimate_in integer not null,
  tokens_in integer not null,
  tokens_out integer not null,
  is_estimated integer not null default 1,
  state text not null default 'asked'
);
create index calls_by_day on calls (day);

-- Sessions that a language model was asked about, up to which turn, with the result: nothing is asked twice.
create table curations (
  session_seq integer not null primary key references sessions (seq) on delete cascade,
  turns integer not null,
  at text not null,
  questions integer not null,
  candidates integer not null,
  notes integer not null,
  -- Why parts of the answer were rejected, as name=count pairs; '' for none.
  dropped text not null default ''
) without rowid;

-- Answers of a language model until a dream has carried them out.
create table kept_answers (
  seq integer primary key,
  session_seq integer not null references sessions (seq) on delete cascade,
  -- A keyed hash of the question.
  question_hash text not null,
  text text not null,
  at text not null,
  unique (session_seq, question_hash)
);

-- When a memory is worth injecting, as a language model judged and csmd accepted: starts, tasks, never; 'noted' if a note
-- takes its place (see the link curated_as). Goes with an undone dream.
create table judgements (
  memory_seq integer not null references memories (seq) on delete cascade,
  uuid text not null,
  tell text not null,
  at text not null,
  primary key (memory_seq, uuid)
) without rowid;
create index judgements_by_uuid on judgements (uuid);

-- Memories that say in what state a session left the work, up to which turn. Go with an undone dream.
create table stands (
  memory_seq integer not null references memories (seq) on delete cascade,
  uuid text not null,
  session_seq integer not null references sessions (seq) on delete cascade,
  turns integer not null,
  at text not null,
  primary key (memory_seq, uuid)
) without rowid;
create index stands_by_uuid on stands (uuid);
create index stands_by_session on stands (session_seq);

-- ---- A team's server

-- The server that was joined: at most one row. `author` is this home's role there, `epoch` the server's own id: a server
-- with another epoch starts empty.
create table team (
  seq integer primary key check (seq = 1),
  url text not null,
  author text not null,
  epoch text not null,
  joined_at text not null,
  reached_at text not null default '',
  failing_since text not null default '',
  failure text not null default ''
);

-- Shared projects. `readers` are roles separated by spaces, '*' for everybody, '' for nobody else.
create table team_shares (
  project_seq integer primary key references projects (seq),
  name text not null unique,
  readers text not null,
  shared_at text not null
);

-- Ids of what changed since it was sent, and how often. The content is read when it is sent.
create table team_outbox (
  kind text not null,
  id text not null,
  changes integer not null default 1,
  primary key (kind, id)
) without rowid;

-- How far colleagues' projects have been received, by their row on the server.
create table team_places (
  seq integer primary key,
  author text not null,
  project_seq integer not null references projects (seq),
  xid integer not null default 0,
  item integer not null default 0
);
create index team_places_by_project on team_places (project_seq);

-- Memories that belong to a colleague, with their id on the server.
create table team_memories (
  memory_seq integer not null primary key references memories (seq) on delete cascade,
  place_seq integer not null references team_places (seq),
  author text not null,
  remote_id text not null,
  unique (place_seq, remote_id)
) without rowid;

-- ---- Passages, full text and vectors

-- Neighbouring sentences of a turn: the unit that is found and injected (csmd/text/prose.py). `text` is '' for the
-- characters start_at to end_at of the turn; otherwise it holds words of a tool call (a plan, a commit's message).
create table passages (
  seq integer primary key autoincrement,
  turn_seq integer not null references turns (seq) on delete cascade,
  session_seq integer not null,
  project_seq integer not null,
  start_at integer not null,
  end_at integer not null,
  text text not null default ''
);
create index passages_by_turn on passages (turn_seq, start_at);
create index passages_by_session on passages (session_seq, turn_seq, start_at);
create index passages_of_projects on passages (project_seq);

-- Passages on the same matter, the newer linked to the older.
create table passage_threads (
  older_seq integer not null references passages (seq) on delete cascade,
  newer_seq integer not null references passages (seq) on delete cascade,
  weight real not null,
  primary key (older_seq, newer_seq)
) without rowid;
create index passage_threads_by_newer on passage_threads (newer_seq);

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

-- Rows behind the cursor whose text changed: their vectors were deleted and are made again.
create table embed_again (
  model_seq integer not null,
  kind text not null,
  row_seq integer not null,
  primary key (kind, row_seq, model_seq)
) without rowid;

-- One bit for each number of a vector: a large store is searched by these before whole vectors are compared.
create table vector_codes (
  model_seq integer not null,
  kind text not null,
  project_seq integer not null,
  seq integer not null,
  code blob not null,
  primary key (model_seq, kind, project_seq, seq)
) without rowid;

-- Indexed are a text's words and the terms derived from them and from its time (csmd/text/tokens.py). A change of what
-- is derived needs a migration that rebuilds these indexes.
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

-- With the fingerprint: `csmd errors` prints it, and it finds the explanation.
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

-- Without content: the words are in the turns.
create virtual table passages_fts using fts5 (
  text, content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
);

-- csmd_passages returns [[start, end, words], ...]; the second statement looks up the rows that the first inserted.
create trigger turns_passages_insert after insert on turns when new.searchable = 1 begin
  insert into passages (turn_seq, session_seq, project_seq, start_at, end_at)
    select new.seq, new.session_seq, new.project_seq, j.value ->> 0, j.value ->> 1 from json_each(csmd_passages(new.text)) j;
  insert into passages_fts (rowid, text)
    select p.seq, csmd_indexed(j.value ->> 2, new.at) from json_each(csmd_passages(new.text)) j
    cross join passages p on p.turn_seq = new.seq and p.start_at = j.value ->> 0 and p.text = '';
end;

-- Words of a tool call outlive the trimming of its input; every other passage goes with its turn's text.
create trigger turns_passages_update after update of text, searchable, gone on turns
when old.text <> new.text or old.searchable <> new.searchable begin
  delete from passages where turn_seq = old.seq and (text = '' or old.gone = 1 or new.gone = 0);
  insert into passages (turn_seq, session_seq, project_seq, start_at, end_at)
    select new.seq, new.session_seq, new.project_seq, j.value ->> 0, j.value ->> 1 from json_each(csmd_passages(new.text)) j
    where new.searchable = 1;
  insert into passages_fts (rowid, text)
    select p.seq, csmd_indexed(j.value ->> 2, new.at) from json_each(csmd_passages(new.text)) j
    cross join passages p on p.turn_seq = new.seq and p.start_at = j.value ->> 0 and p.text = ''
    where new.searchable = 1;
end;

create trigger turns_passages_at after update of at on turns
when old.at <> new.at and old.text = new.text and old.searchable = new.searchable begin
  delete from passages_fts where rowid in (select seq from passages where turn_seq = new.seq);
  insert into passages_fts (rowid, text)
    select seq, csmd_indexed(case when text <> '' then text else csmd_slice(new.text, start_at, end_at) end, new.at)
    from passages where turn_seq = new.seq;
end;
create trigger turns_passages_move after update of session_seq, project_seq on turns
when old.session_seq <> new.session_seq or old.project_seq <> new.project_seq begin
  update passages set session_seq = new.session_seq, project_seq = new.project_seq where turn_seq = new.seq;
end;
create trigger passages_insert after insert on passages when new.text <> '' begin
  insert into passages_fts (rowid, text) select new.seq, csmd_indexed(new.text, t.at) from turns t where t.seq = new.turn_seq;
end;
create trigger passages_update after update of text on passages when old.text <> new.text begin
  delete from passages_fts where rowid = old.seq;
  insert into passages_fts (rowid, text) select new.seq, csmd_indexed(new.text, t.at) from turns t where t.seq = new.turn_seq;
  insert into embed_again (model_seq, kind, row_seq)
    select distinct v.model_seq, 'passage', new.seq from vectors v where v.kind = 'passage' and v.row_seq = new.seq
    on conflict do nothing;
  delete from vectors where kind = 'passage' and row_seq = old.seq;
end;

-- Deleting a row of `vectors` deletes its vector and codes: that trigger is made with each model's tables (store/vectors.py).
create trigger passages_delete after delete on passages begin
  delete from passages_fts where rowid = old.seq;
  delete from vectors where kind = 'passage' and row_seq = old.seq;
  delete from embed_again where kind = 'passage' and row_seq = old.seq;
end;

-- ---- Rows that follow from others

-- A topic's name comes from the text of memories: it is deleted with the last of them.
create trigger topics_last after delete on memory_topics begin
  delete from topics where seq = old.topic_seq
    and not exists (select 1 from memory_topics t where t.topic_seq = old.topic_seq);
end;

create trigger topics_due_insert after insert on memories begin
  update projects set topics_due = topics_due + 1 where seq = new.project_seq;
end;
create trigger topics_due_delete after delete on memories begin
  update projects set topics_due = topics_due + 1 where seq = old.project_seq;
end;
create trigger topics_due_update after update of text, project_seq, session_id, twin_of, tier on memories
when new.text <> old.text or new.project_seq <> old.project_seq or new.session_id <> old.session_id
  or new.twin_of <> old.twin_of or (new.tier = 'archive') <> (old.tier = 'archive') begin
  update projects set topics_due = topics_due + 1 where seq in (old.project_seq, new.project_seq);
end;

create trigger belief_changes_delete after delete on memories begin
  delete from belief_changes where memory_id = old.id;
end;

-- Row counts of the long tables, kept by triggers: `csmd status` has no time to count a million rows.
create table tallies (name text primary key, value integer not null);
insert into tallies (name, value) values ('turns', 0), ('events', 0), ('statements', 0), ('injections', 0), ('vectors', 0);

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

-- A change of a memory of a shared project is noted for the team's server.
create trigger team_memory_insert after insert on memories
when exists (select 1 from team_shares where project_seq = new.project_seq) begin
  insert into team_outbox (kind, id) values ('memory', new.id) on conflict (kind, id) do update set changes = changes + 1;
end;
create trigger team_memory_update after update of text, gate, category, type, tier, decay, authority, origin, confidence, scope,
  project_seq, confirmed_at, pinned, superseded_by, twin_of on memories
when exists (select 1 from team_shares where project_seq in (old.project_seq, new.project_seq)) begin
  insert into team_outbox (kind, id) values ('memory', new.id) on conflict (kind, id) do update set changes = changes + 1;
end;
create trigger team_memory_delete before delete on memories
when exists (select 1 from team_shares where project_seq = old.project_seq)
  and not exists (select 1 from team_memories where memory_seq = old.seq) begin
  insert into team_outbox (kind, id) values ('memory', old.id) on conflict (kind, id) do update set changes = changes + 1;
end;

-- So is a change of what belongs to a memory or digest.
create trigger team_source_insert after insert on provenance when exists (select 1 from team_shares) begin
  insert into team_outbox (kind, id) select 'memory', m.id from memories m join team_shares s on s.project_seq = m.project_seq
    where m.seq = new.memory_seq
    on conflict (kind, id) do update set changes = changes + 1;
end;
create trigger team_source_delete after delete on provenance when exists (select 1 from team_shares) begin
  insert into team_outbox (kind, id) select 'memory', m.id from memories m join team_shares s on s.project_seq = m.project_seq
    where m.seq = old.memory_seq
    on conflict (kind, id) do update set changes = changes + 1;
end;
create trigger team_link_insert after insert on links when exists (select 1 from team_shares) begin
  insert into team_outbox (kind, id) select 'memory', m.id from memories m join team_shares s on s.project_seq = m.project_seq
    where m.seq = new.from_seq
    on conflict (kind, id) do update set changes = changes + 1;
end;
create trigger team_link_delete after delete on links when exists (select 1 from team_shares) begin
  insert into team_outbox (kind, id) select 'memory', m.id from memories m join team_shares s on s.project_seq = m.project_seq
    where m.seq = old.from_seq
    on conflict (kind, id) do update set changes = changes + 1;
end;
create trigger team_topic_insert after insert on memory_topics when exists (select 1 from team_shares) begin
  insert into team_outbox (kind, id) select 'memory', m.id from memories m join team_shares s on s.project_seq = m.project_seq
    where m.seq = new.memory_seq
    on conflict (kind, id) do update set changes = changes + 1;
end;
create trigger team_topic_delete after delete on memory_topics when exists (select 1 from team_shares) begin
  insert into team_outbox (kind, id) select 'memory', m.id from memories m join team_shares s on s.project_seq = m.project_seq
    where m.seq = old.memory_seq
    on conflict (kind, id) do update set changes = changes + 1;
end;
create trigger team_topic_update after update on memory_topics when exists (select 1 from team_shares) begin
  insert into team_outbox (kind, id) select 'memory', m.id from memories m join team_shares s on s.project_seq = m.project_seq
    where m.seq = new.memory_seq
    on conflict (kind, id) do update set changes = changes + 1;
end;
create trigger team_symptom_insert after insert on symptoms when exists (select 1 from team_shares) begin
  insert into team_outbox (kind, id) select 'memory', m.id from memories m join team_shares s on s.project_seq = m.project_seq
    where m.seq = new.memory_seq
    on conflict (kind, id) do update set changes = changes + 1;
end;
create trigger team_symptom_delete after delete on symptoms when exists (select 1 from team_shares) begin
  insert into team_outbox (kind, id) select 'memory', m.id from memories m join team_shares s on s.project_seq = m.project_seq
    where m.seq = old.memory_seq
    on conflict (kind, id) do update set changes = changes + 1;
end;
create trigger team_symptom_update after update of text on symptoms when exists (select 1 from team_shares) begin
  insert into team_outbox (kind, id) select 'memory', m.id from memories m join team_shares s on s.project_seq = m.project_seq
    where m.seq = new.memory_seq
    on conflict (kind, id) do update set changes = changes + 1;
end;
create trigger team_refutation_insert after insert on refutations when exists (select 1 from team_shares) begin
  insert into team_outbox (kind, id) select 'memory', m.id from memories m join team_shares s on s.project_seq = m.project_seq
    where m.seq = new.memory_seq
    on conflict (kind, id) do update set changes = changes + 1;
end;
create trigger team_refutation_delete after delete on refutations when exists (select 1 from team_shares) begin
  insert into team_outbox (kind, id) select 'memory', m.id from memories m join team_shares s on s.project_seq = m.project_seq
    where m.seq = old.memory_seq
    on conflict (kind, id) do update set changes = changes + 1;
end;
create trigger team_refutation_update after update of reason on refutations when exists (select 1 from team_shares) begin
  insert into team_outbox (kind, id) select 'memory', m.id from memories m join team_shares s on s.project_seq = m.project_seq
    where m.seq = new.memory_seq
    on conflict (kind, id) do update set changes = changes + 1;
end;
create trigger team_scene_insert after insert on scenes when exists (select 1 from team_shares) begin
  insert into team_outbox (kind, id) select 'memory', m.id from memories m join team_shares s on s.project_seq = m.project_seq
    where m.seq = new.memory_seq
    on conflict (kind, id) do update set changes = changes + 1;
end;
create trigger team_scene_delete after delete on scenes when exists (select 1 from team_shares) begin
  insert into team_outbox (kind, id) select 'memory', m.id from memories m join team_shares s on s.project_seq = m.project_seq
    where m.seq = old.memory_seq
    on conflict (kind, id) do update set changes = changes + 1;
end;
create trigger team_scene_update after update of text on scenes when exists (select 1 from team_shares) begin
  insert into team_outbox (kind, id) select 'memory', m.id from memories m join team_shares s on s.project_seq = m.project_seq
    where m.seq = new.memory_seq
    on conflict (kind, id) do update set changes = changes + 1;
end;
create trigger team_change_insert after insert on belief_changes when exists (select 1 from team_shares) begin
  insert into team_outbox (kind, id) select 'memory', m.id from memories m join team_shares s on s.project_seq = m.project_seq
    where m.id = new.memory_id
    on conflict (kind, id) do update set changes = changes + 1;
end;
create trigger team_change_delete after delete on belief_changes when exists (select 1 from team_shares) begin
  insert into team_outbox (kind, id) select 'memory', m.id from memories m join team_shares s on s.project_seq = m.project_seq
    where m.id = old.memory_id
    on conflict (kind, id) do update set changes = changes + 1;
end;
create trigger team_change_update after update of before, after, reason, undone_at on belief_changes when exists (select 1 from team_shares) begin
  insert into team_outbox (kind, id) select 'memory', m.id from memories m join team_shares s on s.project_seq = m.project_seq
    where m.id = new.memory_id
    on conflict (kind, id) do update set changes = changes + 1;
end;
create trigger team_vector_insert after insert on vectors when new.kind = 'memory' and exists (select 1 from team_shares) begin
  insert into team_outbox (kind, id) select 'memory', m.id from memories m join team_shares s on s.project_seq = m.project_seq
    where m.seq = new.row_seq
    on conflict (kind, id) do update set changes = changes + 1;
end;
create trigger team_digest_insert after insert on digests when exists (select 1 from team_shares) begin
  insert into team_outbox (kind, id) select 'digest', m.id from sessions m join team_shares s on s.project_seq = m.project_seq
    where m.seq = new.session_seq
    on conflict (kind, id) do update set changes = changes + 1;
end;
create trigger team_digest_update after update of text on digests when exists (select 1 from team_shares) begin
  insert into team_outbox (kind, id) select 'digest', m.id from sessions m join team_shares s on s.project_seq = m.project_seq
    where m.seq = new.session_seq
    on conflict (kind, id) do update set changes = changes + 1;
end;
create trigger team_digest_delete after delete on digests when exists (select 1 from team_shares) begin
  insert into team_outbox (kind, id) select 'digest', m.id from sessions m join team_shares s on s.project_seq = m.project_seq
    where m.seq = old.session_seq
    on conflict (kind, id) do update set changes = changes + 1;
end;
create trigger team_item_update after update of text on digest_items when exists (select 1 from team_shares) begin
  insert into team_outbox (kind, id) select 'digest', m.id from digests d join sessions m on m.seq = d.session_seq
    join team_shares s on s.project_seq = m.project_seq where d.seq = new.digest_seq
    on conflict (kind, id) do update set changes = changes + 1;
end;
create trigger team_session_delete before delete on sessions
when exists (select 1 from team_shares where project_seq = old.project_seq) begin
  insert into team_outbox (kind, id) values ('digest', old.id) on conflict (kind, id) do update set changes = changes + 1;
end;
create trigger team_session_move after update of project_seq on sessions
when exists (select 1 from team_shares where project_seq in (old.project_seq, new.project_seq)) begin
  insert into team_outbox (kind, id) values ('digest', new.id) on conflict (kind, id) do update set changes = changes + 1;
end;

-- Counts of the graph by project: memories, topics of some memory, sessions, and the edges TAGGED and PRODUCED.
-- Memories with `twin_of` do not count.
create table graph_counts (
  project_seq integer primary key,
  memories integer not null default 0,
  topics integer not null default 0,
  sessions integer not null default 0,
  tagged integer not null default 0,
  produced integer not null default 0
);

-- Links by the projects of their two ends.
create table link_counts (
  from_project integer not null,
  to_project integer not null,
  relationship text not null,
  number integer not null,
  primary key (from_project, to_project, relationship)
) without rowid;

-- The same counts from the rows, to compare with.
create view graph_counted as
  select project_seq, sum(memories) as memories, sum(topics) as topics, sum(sessions) as sessions, sum(tagged) as tagged,
    sum(produced) as produced
  from (
    select m.project_seq, count(*) as memories, 0 as topics, 0 as sessions, 0 as tagged, 0 as produced
    from memories m where m.twin_of = 0 group by m.project_seq
    union all
    select t.project_seq, 0, count(*), 0, 0, 0 from topics t where exists (
      select 1 from memory_topics x join memories m on m.seq = x.memory_seq
      where x.topic_seq = t.seq and x.weight > 0 and m.twin_of = 0) group by t.project_seq
    union all
    select s.project_seq, 0, 0, count(*), 0, 0 from sessions s where s.parent = '' and s.host <> 'probe' group by s.project_seq
    union all
    select m.project_seq, 0, 0, 0, count(*), 0 from memory_topics x join memories m on m.seq = x.memory_seq
    where x.weight > 0 and m.twin_of = 0 group by m.project_seq
    union all
    select p.project_seq, 0, 0, 0, 0, count(*) from (
      select distinct m.project_seq, p.memory_seq, p.session_id from provenance p join memories m on m.seq = p.memory_seq
      where p.session_id <> '' and p.role <> 'beside' and m.twin_of = 0) p group by p.project_seq
  ) c group by project_seq;
create view links_counted as
  select a.project_seq as from_project, b.project_seq as to_project, l.relationship, count(*) as number
  from links l join memories a on a.seq = l.from_seq join memories b on b.seq = l.to_seq
  where a.twin_of = 0 and b.twin_of = 0 group by a.project_seq, b.project_seq, l.relationship;

create trigger graph_session_insert after insert on sessions when new.parent = '' and new.host <> 'probe' begin
  insert into graph_counts (project_seq, sessions) values (new.project_seq, 1)
    on conflict (project_seq) do update set sessions = sessions + 1;
end;
create trigger graph_session_delete after delete on sessions when old.parent = '' and old.host <> 'probe' begin
  update graph_counts set sessions = sessions - 1 where project_seq = old.project_seq;
end;
create trigger graph_session_update after update of project_seq, parent, host on sessions begin
  update graph_counts set sessions = sessions - 1
    where project_seq = old.project_seq and old.parent = '' and old.host <> 'probe';
  insert into graph_counts (project_seq, sessions) select new.project_seq, 1 where new.parent = '' and new.host <> 'probe'
    on conflict (project_seq) do update set sessions = sessions + 1;
end;

-- A tag counts if its weight is positive; its topic counts from the first memory with such a tag.
create trigger graph_tag_insert after insert on memory_topics when new.weight > 0 begin
  update graph_counts set tagged = tagged + 1
    where project_seq = (select project_seq from memories where seq = new.memory_seq and twin_of = 0);
  update graph_counts set topics = topics + 1
    where project_seq = (select project_seq from topics where seq = new.topic_seq)
    and exists (select 1 from memories where seq = new.memory_seq and twin_of = 0)
    and not exists (select 1 from memory_topics x join memories m on m.seq = x.memory_seq
      where x.topic_seq = new.topic_seq and x.memory_seq <> new.memory_seq and x.weight > 0 and m.twin_of = 0);
end;
create trigger graph_tag_delete before delete on memory_topics when old.weight > 0 begin
  update graph_counts set tagged = tagged - 1
    where project_seq = (select project_seq from memories where seq = old.memory_seq and twin_of = 0);
  update graph_counts set topics = topics - 1
    where project_seq = (select project_seq from topics where seq = old.topic_seq)
    and exists (select 1 from memories where seq = old.memory_seq and twin_of = 0)
    and not exists (select 1 from memory_topics x join memories m on m.seq = x.memory_seq
      where x.topic_seq = old.topic_seq and x.memory_seq <> old.memory_seq and x.weight > 0 and m.twin_of = 0);
end;
create trigger graph_tag_update after update of weight on memory_topics when (old.weight > 0) <> (new.weight > 0) begin
  update graph_counts set tagged = tagged + (new.weight > 0) - (old.weight > 0)
    where project_seq = (select project_seq from memories where seq = new.memory_seq and twin_of = 0);
  update graph_counts set topics = topics + (new.weight > 0) - (old.weight > 0)
    where project_seq = (select project_seq from topics where seq = new.topic_seq)
    and exists (select 1 from memories where seq = new.memory_seq and twin_of = 0)
    and not exists (select 1 from memory_topics x join memories m on m.seq = x.memory_seq
      where x.topic_seq = new.topic_seq and x.memory_seq <> new.memory_seq and x.weight > 0 and m.twin_of = 0);
end;
create trigger graph_topic_delete before delete on topics begin
  update graph_counts set topics = topics - 1 where project_seq = old.project_seq
    and exists (select 1 from memory_topics x join memories m on m.seq = x.memory_seq
      where x.topic_seq = old.seq and x.weight > 0 and m.twin_of = 0);
end;

-- A session that states a memory in several turns counts once.
create trigger graph_source_insert after insert on provenance when new.session_id <> '' and new.role <> 'beside' begin
  update graph_counts set produced = produced + 1
    where project_seq = (select project_seq from memories where seq = new.memory_seq and twin_of = 0)
    and not exists (select 1 from provenance p where p.memory_seq = new.memory_seq and p.session_id = new.session_id
      and p.role <> 'beside' and p.uuid <> new.uuid);
end;
create trigger graph_source_delete after delete on provenance when old.session_id <> '' and old.role <> 'beside' begin
  update graph_counts set produced = produced - 1
    where project_seq = (select project_seq from memories where seq = old.memory_seq and twin_of = 0)
    and not exists (select 1 from provenance p where p.memory_seq = old.memory_seq and p.session_id = old.session_id
      and p.role <> 'beside');
end;
create trigger graph_source_update after update of role on provenance
when new.session_id <> '' and (old.role = 'beside') <> (new.role = 'beside') begin
  update graph_counts set produced = produced + (old.role = 'beside') - (new.role = 'beside')
    where project_seq = (select project_seq from memories where seq = new.memory_seq and twin_of = 0)
    and not exists (select 1 from provenance p where p.memory_seq = new.memory_seq and p.session_id = new.session_id
      and p.role <> 'beside' and p.uuid <> new.uuid);
end;

create trigger graph_link_insert after insert on links begin
  insert into link_counts (from_project, to_project, relationship, number)
    select a.project_seq, b.project_seq, new.relationship, 1 from memories a, memories b
    where a.seq = new.from_seq and b.seq = new.to_seq and a.twin_of = 0 and b.twin_of = 0
    on conflict (from_project, to_project, relationship) do update set number = number + 1;
end;
create trigger graph_link_delete after delete on links begin
  update link_counts set number = number - 1 where relationship = old.relationship
    and from_project = (select project_seq from memories where seq = old.from_seq and twin_of = 0)
    and to_project = (select project_seq from memories where seq = old.to_seq and twin_of = 0);
end;

create trigger graph_memory_insert after insert on memories when new.twin_of = 0 begin
  insert into graph_counts (project_seq, memories) values (new.project_seq, 1)
    on conflict (project_seq) do update set memories = memories + 1;
end;

-- Inserting here adds (`by` 1) or subtracts (-1) everything that a memory counts for in its project.
create view graph_shift as select 0 as memory_seq, 0 as project_seq, 0 as by where false;
create trigger graph_shifted instead of insert on graph_shift begin
  insert into graph_counts (project_seq, memories, tagged, produced) values (
    new.project_seq, new.by,
    new.by * (select count(*) from memory_topics where memory_seq = new.memory_seq and weight > 0),
    new.by * (select count(distinct session_id) from provenance
      where memory_seq = new.memory_seq and session_id <> '' and role <> 'beside')
  ) on conflict (project_seq) do update set memories = memories + excluded.memories, tagged = tagged + excluded.tagged,
    produced = produced + excluded.produced;
  insert into graph_counts (project_seq, topics)
    select t.project_seq, new.by from memory_topics x join topics t on t.seq = x.topic_seq
    where x.memory_seq = new.memory_seq and x.weight > 0
    and not exists (select 1 from memory_topics y join memories m on m.seq = y.memory_seq
      where y.topic_seq = x.topic_seq and y.memory_seq <> x.memory_seq and y.weight > 0 and m.twin_of = 0)
    on conflict (project_seq) do update set topics = topics + excluded.topics;
  insert into link_counts (from_project, to_project, relationship, number)
    select case when l.from_seq = new.memory_seq then new.project_seq else a.project_seq end,
      case when l.to_seq = new.memory_seq then new.project_seq else b.project_seq end, l.relationship, new.by
    from links l join memories a on a.seq = l.from_seq join memories b on b.seq = l.to_seq
    where (l.from_seq = new.memory_seq or l.to_seq = new.memory_seq)
    and (a.twin_of = 0 or a.seq = new.memory_seq) and (b.twin_of = 0 or b.seq = new.memory_seq)
    on conflict (from_project, to_project, relationship) do update set number = number + excluded.number;
end;

-- Before the delete: afterwards nothing says to which project the memory's rows belonged.
create trigger graph_memory_delete before delete on memories when old.twin_of = 0 begin
  insert into graph_shift (memory_seq, project_seq, by) values (old.seq, old.project_seq, -1);
end;

create trigger graph_memory_update after update of project_seq, twin_of on memories
when old.project_seq <> new.project_seq or (old.twin_of = 0) <> (new.twin_of = 0) begin
  insert into graph_shift (memory_seq, project_seq, by) select old.seq, old.project_seq, -1 where old.twin_of = 0;
  insert into graph_shift (memory_seq, project_seq, by) select new.seq, new.project_seq, 1 where new.twin_of = 0;
end;
