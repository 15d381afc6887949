-- The tables of a team's server: those of a home that hold beliefs (csmd/store/migrations), with an author on each, and
-- rules for its rows. Run once, in one transaction, by whoever joins first.
-- A role sees its own rows, and those of projects that it is a reader of. `csmd.of` narrows this to one author.
create schema csmd;
set local search_path = csmd, public;
-- As SQLite compares: byte by byte.
create domain str as text collate "C";

create table server (version int not null, epoch text not null);
insert into server values (1, gen_random_uuid()::text);

create table projects (
  seq bigint generated always as identity primary key,
  author str not null default session_user,
  name str not null,
  -- What the wall is called that it stands behind in its author's home; '' for none.
  workspace str not null default '',
  -- The roles that may read it besides its author: null for all.
  readers text[],
  unique (author, name)
);
create table sessions (
  seq bigint generated always as identity primary key,
  author str not null default session_user,
  project_seq bigint not null references projects (seq) on delete cascade,
  id str not null,
  parent str not null default '',
  host str not null default '',
  last_at str not null default '',
  unique (author, id)
);
create table memories (
  seq bigint generated always as identity primary key,
  author str not null default session_user,
  id str not null,
  project_seq bigint not null references projects (seq) on delete cascade,
  text str not null,
  text_hash str not null default '',
  gate str not null,
  category str not null,
  type str not null,
  tier str not null,
  decay str not null,
  authority str not null,
  origin str not null,
  confidence double precision not null,
  scope str not null,
  session_id str not null,
  created_at str not null,
  confirmed_at str not null,
  used_at str not null default '',
  hot_until bigint not null default 0,
  warm_until bigint not null default 0,
  archive_at bigint not null default 0,
  pinned int not null default 0,
  version int not null default 1,
  superseded_by str not null default '',
  origin_seq bigint not null default 0,
  twin_of bigint not null default 0,
  -- The transaction that changed it last: what a reader has not seen is what is not older than its snapshot's oldest.
  changed xid8 not null default pg_current_xact_id(),
  -- No index: the rules for rows come before an operator that is not known to keep secrets. Words as they stand, and the parts of names (job_queue, JobQueue, src/api).
  words tsvector generated always as (to_tsvector('english', text || ' ' ||
    regexp_replace(text, '[_./-]+|(?<=[a-z])(?=[A-Z])', ' ', 'g'))) stored,
  unique (author, id)
);
create index memories_changed on memories (project_seq, changed, seq);
-- Memories that are gone: colleagues remove theirs. Ids, no words.
create table gone (
  seq bigint generated always as identity primary key,
  author str not null default session_user,
  project_seq bigint not null references projects (seq) on delete cascade,
  id str not null,
  changed xid8 not null default pg_current_xact_id(),
  unique (author, project_seq, id)
);
create function note_move() returns trigger language plpgsql as $$
begin
  insert into gone (author, project_seq, id) values (old.author, old.project_seq, old.id)
    on conflict (author, project_seq, id) do update set changed = pg_current_xact_id();
  return null;
end $$;
create trigger moved after update of project_seq on memories for each row
  when (old.project_seq <> new.project_seq) execute function note_move();

create table provenance (
  memory_seq bigint not null references memories (seq) on delete cascade,
  uuid str not null, session_id str not null, at str not null, role str not null,
  primary key (memory_seq, uuid)
);
create table links (
  from_seq bigint not null references memories (seq) on delete cascade,
  to_seq bigint not null references memories (seq) on delete cascade,
  relationship str not null, weight double precision not null, created_at str not null,
  primary key (from_seq, to_seq, relationship)
);
create index links_by_to on links (to_seq);
create table topics (
  seq bigint generated always as identity primary key,
  project_seq bigint not null references projects (seq) on delete cascade,
  name str not null,
  unique (project_seq, name)
);
create table memory_topics (
  memory_seq bigint not null references memories (seq) on delete cascade,
  topic_seq bigint not null references topics (seq) on delete cascade,
  by_whom str not null, weight double precision not null,
  primary key (memory_seq, topic_seq)
);
create table belief_changes (
  seq bigint generated always as identity primary key,
  author str not null default session_user,
  memory_id str not null, change str not null, before str not null, after str not null, reason str not null,
  by_whom str not null, at str not null, undone_at str not null default '',
  foreign key (author, memory_id) references memories (author, id) on delete cascade
);
create index belief_changes_by_memory on belief_changes (author, memory_id);
create table memory_events (
  seq bigint generated always as identity primary key,
  author str not null default session_user,
  at str not null, act str not null, about str not null default '', memory_id str not null,
  project_seq bigint not null, by_whom str not null
);
create table symptoms (
  memory_seq bigint not null references memories (seq) on delete cascade,
  uuid str not null, at str not null, text str not null, fingerprint str not null default '',
  primary key (memory_seq, uuid)
);
create table refutations (
  memory_seq bigint not null references memories (seq) on delete cascade,
  uuid str not null, at str not null, reason str not null, lowered double precision not null,
  primary key (memory_seq, uuid)
);
create table scenes (
  memory_seq bigint primary key references memories (seq) on delete cascade,
  uuid str not null, text str not null
);
create table judgements (
  memory_seq bigint not null references memories (seq) on delete cascade,
  uuid str not null, tell str not null, at str not null,
  primary key (memory_seq, uuid)
);
create table candidates (
  seq bigint generated always as identity primary key,
  author str not null default session_user,
  id str not null, kind str not null, source str not null,
  project_seq bigint not null references projects (seq) on delete cascade,
  fingerprint str not null, text str not null, reason str not null, gate str not null, category str not null,
  confidence double precision not null, reinforcement int not null, contradicted int not null, status str not null,
  memory_ids str not null default '', created_at str not null, updated_at str not null, version int not null default 1,
  unique (author, id)
);
create unique index candidates_once on candidates (project_seq, kind, fingerprint) where status in ('open', 'needs_review');
create table candidate_evidence (
  candidate_seq bigint not null references candidates (seq) on delete cascade,
  uuid str not null, session_id str not null, at str not null, against int not null default 0,
  primary key (candidate_seq, uuid)
);
create table digests (
  seq bigint generated always as identity primary key,
  session_seq bigint not null references sessions (seq) on delete cascade,
  version int not null, why str not null, upto bigint not null, at str not null, text str not null,
  outcome str not null, prompts int not null, calls int not null, tokens int not null,
  words tsvector generated always as (to_tsvector('english', text)) stored,
  unique (session_seq, version)
);
create table digest_items (
  seq bigint generated always as identity primary key,
  digest_seq bigint not null references digests (seq) on delete cascade,
  kind str not null, text str not null, uuid str not null, state str not null default '', amount int not null default 1
);

create table vector_models (seq int generated always as identity primary key, name str not null unique, dim int not null);
create table vectors (
  model_seq int not null references vector_models (seq),
  memory_seq bigint not null references memories (seq) on delete cascade,
  start_at int not null, end_at int not null,
  embedding halfvec not null,
  primary key (memory_seq, model_seq, start_at)
);
-- The row of a model, made with its index (HNSW needs to know the length) when it is new.
create function ensure_model(model text, size int) returns int language plpgsql security definer set search_path = csmd, public as $$
declare made int;
begin
  select seq into made from vector_models m where m.name = model and m.dim = size;
  if made is null then
    if size not between 1 and 4000 or (select count(*) from vector_models) >= 32 then
      raise exception 'no room for one more embedding model';
    end if;
    insert into vector_models (name, dim) values (model, size) returning seq into made;
    execute format('create index on vectors using hnsw ((embedding::halfvec(%s)) halfvec_l2_ops) where model_seq = %s', size, made);
  end if;
  return made;
end $$;

-- Whether a memory may be read, and is one's own. Functions: of a condition the planner would make a list of all memories.
create function is_seen(memory bigint) returns boolean language plpgsql stable as $$
begin return exists (select 1 from csmd.memories m where m.seq = memory); end $$;
create function is_own(memory bigint) returns boolean language plpgsql stable as $$
begin return exists (select 1 from csmd.memories m where m.seq = memory and m.author = session_user); end $$;

-- Whose rows are seen, and whose may be written: by table, both as conditions. Each asks the table above it, whose own
-- rules hold there; `projects` is the one that says who reads what.
do $$
declare rule record;
begin
  for rule in select * from (values
    ('projects', '(author = session_user or readers is null or session_user = any (readers))
      and coalesce(nullif(current_setting(''csmd.of'', true), ''''), author) = author', 'author = session_user'),
    ('sessions', 'project_seq in (select seq from projects)', 'author = session_user and project_seq in (select seq from projects where author = session_user)'),
    ('memories', 'project_seq in (select seq from projects)', 'author = session_user and project_seq in (select seq from projects where author = session_user)'),
    ('gone', 'project_seq in (select seq from projects)', 'author = session_user and project_seq in (select seq from projects where author = session_user)'),
    ('candidates', 'project_seq in (select seq from projects)', 'author = session_user and project_seq in (select seq from projects where author = session_user)'),
    ('topics', 'project_seq in (select seq from projects)', 'project_seq in (select seq from projects where author = session_user)'),
    ('memory_events', 'author = session_user', 'author = session_user'),
    ('belief_changes', 'exists (select 1 from memories m where m.id = memory_id and m.author = belief_changes.author)', 'author = session_user'),
    ('links', 'csmd.is_seen(from_seq) and csmd.is_seen(to_seq)', 'csmd.is_own(from_seq) and csmd.is_own(to_seq)'),
    ('candidate_evidence', 'exists (select 1 from candidates c where c.seq = candidate_seq)', 'exists (select 1 from candidates c where c.seq = candidate_seq and c.author = session_user)'),
    ('digests', 'exists (select 1 from sessions s where s.seq = session_seq)', 'exists (select 1 from sessions s where s.seq = session_seq and s.author = session_user)'),
    ('digest_items', 'exists (select 1 from digests d where d.seq = digest_seq)',
      'exists (select 1 from digests d join sessions s on s.seq = d.session_seq where d.seq = digest_seq and s.author = session_user)')
  ) as fixed (name, seen, own) union all
    select name, 'csmd.is_seen(memory_seq)', 'csmd.is_own(memory_seq)'
    from unnest(array['provenance', 'memory_topics', 'symptoms', 'refutations', 'scenes', 'judgements', 'vectors']) as name
  loop
    execute format('alter table %I enable row level security, force row level security', rule.name);
    execute format('create policy seen on %I for select using (%s)', rule.name, rule.seen);
    execute format('create policy added on %I for insert with check (%s)', rule.name, rule.own);
    execute format('create policy changed on %I for update using (%s)', rule.name, rule.own);
    execute format('create policy removed on %I for delete using (%s)', rule.name, rule.own);
    execute format('grant select, insert, update, delete on %I to public', rule.name);
  end loop;
end $$;
-- As in a home: which memories are somebody else's.
create view team_memories with (security_invoker = true) as
  select seq as memory_seq, author from memories where author <> session_user;
-- As a home keeps them: counted here from what may be seen.
create view graph_counts with (security_invoker = true) as
  select p.seq as project_seq,
    (select count(*) from memories m where m.project_seq = p.seq and m.twin_of = 0) as memories,
    (select count(distinct x.topic_seq) from memories m join memory_topics x on x.memory_seq = m.seq
      where m.project_seq = p.seq and m.twin_of = 0 and x.weight > 0) as topics,
    (select count(*) from sessions s where s.project_seq = p.seq and s.parent = '' and s.host <> 'probe') as sessions,
    (select count(*) from memories m join memory_topics x on x.memory_seq = m.seq
      where m.project_seq = p.seq and m.twin_of = 0 and x.weight > 0) as tagged,
    (select count(distinct (m.seq, o.session_id)) from memories m join provenance o on o.memory_seq = m.seq
      where m.project_seq = p.seq and m.twin_of = 0 and o.session_id <> '' and o.role <> 'beside') as produced
  from projects p;
create view link_counts with (security_invoker = true) as
  select a.project_seq as from_project, b.project_seq as to_project, l.relationship, count(*) as number
  from links l join memories a on a.seq = l.from_seq join memories b on b.seq = l.to_seq
  where a.twin_of = 0 and b.twin_of = 0 group by a.project_seq, b.project_seq, l.relationship;
grant usage on schema csmd to public;
grant select on server, vector_models, team_memories, graph_counts, link_counts to public;
