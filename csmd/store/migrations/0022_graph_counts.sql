-- What is counted of the graph, kept with every change so that nobody counts it anew: of a project its memories, the topics
-- that some memory has, its sessions, and the edges TAGGED and PRODUCED; a twin counts for nothing.
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

-- A topic's members are found without their own rows.
drop index memory_topics_by_topic;
create index memory_topics_by_topic on memory_topics (topic_seq, memory_seq, weight, by_whom);

-- The same, counted from the rows: what the counts are made of here, and what a check compares them with.
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
insert into graph_counts (project_seq, memories, topics, sessions, tagged, produced)
  select project_seq, memories, topics, sessions, tagged, produced from graph_counted;
insert into link_counts (from_project, to_project, relationship, number)
  select from_project, to_project, relationship, number from links_counted;

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

-- A tag counts as soon as it weighs something; its topic with the first memory that has it.
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

-- A session produced a memory once, however many of its turns say it.
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
-- Adds (`by` 1) or takes away (-1) all that a memory counts for as one of a project: an insert is a call.
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
-- Before: what hangs on it goes with it, and then nothing tells whose it was.
create trigger graph_memory_delete before delete on memories when old.twin_of = 0 begin
  insert into graph_shift (memory_seq, project_seq, by) values (old.seq, old.project_seq, -1);
end;
create trigger graph_memory_update after update of project_seq, twin_of on memories
when old.project_seq <> new.project_seq or (old.twin_of = 0) <> (new.twin_of = 0) begin
  insert into graph_shift (memory_seq, project_seq, by) select old.seq, old.project_seq, -1 where old.twin_of = 0;
  insert into graph_shift (memory_seq, project_seq, by) select new.seq, new.project_seq, 1 where new.twin_of = 0;
end;
