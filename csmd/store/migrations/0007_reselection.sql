-- What an older csmd chose is chosen anew, once (dream/reselection.py).
insert into cursors (stage, subject, position) select 'reselection', 'due', 1 where exists (select 1 from memories);
