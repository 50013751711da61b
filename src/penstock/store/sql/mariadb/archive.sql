-- name: plan
-- As in common/: the first statement makes sure that there is a row to lock.
INSERT INTO archive_mark (source, day, done_no, planned_no)
VALUES (:source, :day, :done_no, :done_no)
    ON CONFLICT DO NOTHING;
SELECT :planned_no, source AS found_source
  FROM archive_mark
 WHERE source = :source
   AND day = :day
   AND done_no = :done_no
   AND planned_no = :done_no
   FOR UPDATE;
UPDATE archive_mark
   SET planned_no = :planned_no
 WHERE source IN ({found:found_source})
   AND day = :day;

-- name: close
-- As in common/, with MariaDB's upsert.
INSERT INTO archive_mark (source, day, is_closed, moved_at)
VALUES (:source, :day, 1, :now)
    ON DUPLICATE KEY UPDATE
       is_closed = IF(archive_mark.done_no = :done_no AND archive_mark.planned_no = :done_no, 1,
                      archive_mark.is_closed);

-- name: writers
-- Transactions that may write to tables that the archiver reads by number. A number is assigned
-- before the row is visible. The server shows them as they were up to 100 ms ago, so the list is
-- read after a pause: it has every transaction that was open when the caller read the last number.
SELECT CONCAT(t.trx_mysql_thread_id, '@', t.trx_started)
  FROM (SELECT SLEEP(0.15) AS slept) AS pause
 STRAIGHT_JOIN information_schema.innodb_trx AS t
 STRAIGHT_JOIN information_schema.processlist AS p
    ON p.id = t.trx_mysql_thread_id
   AND p.db = DATABASE()
 WHERE t.trx_is_read_only = 0
   AND t.trx_mysql_thread_id <> CONNECTION_ID();

-- name: history
-- As in common/, with MariaDB's list of texts.
SELECT h.history_no, h.message_no, h.id, h.queue_no, coalesce(q.name, ''), h.outcome, h.reason,
       h.kind, h.entity_id, h.tag1, h.tag2, h.group_key, h.priority, h.sent_at, h.due_at,
       h.first_leased_at, h.leased_at, h.finished_at, h.attempts, h.failures, h.crashes, h.lease_no,
       h.leased_by, h.last_error, h.size, h.route, h.held_key, octet_length(h.result), h.flow_no,
       f.id, m.name, f.name, m.role,
       (SELECT GROUP_CONCAT(e.parent_no ORDER BY e.parent_no SEPARATOR ',')
          FROM flow_edge AS e
         WHERE e.child_no = m.message_no),
       h.body_day
  FROM history_{day} AS h
  LEFT JOIN queue AS q
    ON q.queue_no = h.queue_no
  LEFT JOIN flow AS f
    ON f.flow_no = h.flow_no
  LEFT JOIN flow_member AS m
    ON m.message_no = CASE WHEN h.flow_no IS NOT NULL THEN h.message_no END
 WHERE h.history_no > :after_no
   AND h.history_no <= :upto_no
 ORDER BY h.history_no
 LIMIT :limit;
