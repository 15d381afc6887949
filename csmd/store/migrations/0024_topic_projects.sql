-- A tag adds its topic to the counts of the topic's project, which may have no memory and no session yet.
create trigger graph_topic_insert after insert on topics begin
  insert into graph_counts (project_seq) values (new.project_seq) on conflict (project_seq) do nothing;
end;
insert into graph_counts (project_seq) select distinct project_seq from topics where true on conflict (project_seq) do nothing;
