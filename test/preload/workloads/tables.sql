create table t (id integer primary key, name text, amount real, kind integer);
create table kinds (kind integer primary key, label text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 60000)
  insert into t select i, 'name ' || (i * 7919 % 10007), i % 977 / 7.0, i % 23 from n;
insert into kinds select distinct kind, 'kind ' || kind from t;
create index by_name on t (name);
create index by_kind_amount on t (kind, amount);
select label, count(*), printf('%.3f', sum(amount)), min(name), max(name)
  from t join kinds using (kind) group by label order by label;
select name, count(*) c from t group by name having c > 5 order by c desc, name limit 20;
update t set name = name || ' changed' where id % 3 = 0;
delete from t where id % 5 = 0;
select count(*), sum(length(name)) from t;
select kind, group_concat(id) from (select * from t where id < 400 order by id) group by kind;
with ranked as (select id, kind, row_number() over (partition by kind order by amount, id) r from t)
  select kind, id from ranked where r = 7 order by kind;
reindex;
vacuum;
select count(distinct name) from t;
