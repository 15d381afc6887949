-- The server that a team shares memories on: one row, none until `csmd team join`. `author` is this home's role there,
-- `epoch` the server's own id: another one begins with nothing. Since when it is not reached, and why; '' for reached.
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
-- Projects of which memories are shared. `name` is what the team knows it by; `readers` are roles with spaces between,
-- '*' for everybody, '' for nobody else.
create table team_shares (
  project_seq integer primary key references projects (seq),
  name text not null unique,
  readers text not null,
  shared_at text not null
);
-- What has changed since it was sent, and how often: ids, no words. It is read again when it is sent.
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
-- Which memories are a colleague's, whose, and what they are called on the server.
create table team_memories (
  memory_seq integer not null primary key references memories (seq) on delete cascade,
  place_seq integer not null references team_places (seq),
  author text not null,
  remote_id text not null,
  unique (place_seq, remote_id)
) without rowid;

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
-- What hangs on a memory, or on a digest, of a shared project changes it.
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
