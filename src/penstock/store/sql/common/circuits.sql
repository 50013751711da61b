-- name: find
-- Circuits, by one of the conditions below.
SELECT hash, circuit_no, successes, failures, pattern, state, fail_ratio, opened_at, reopened,
       is_forced, generation, probe_until
  FROM circuit
 {conditions};

-- name: everything
-- All circuits.
ORDER BY hash;

-- name: by_hashes
-- Some circuits.
WHERE hash IN (SELECT value FROM json_each(:hashes));

-- name: lock
-- Some circuits, to be changed.
WHERE hash IN (SELECT value FROM json_each(:hashes));

-- name: lock_in
-- All circuits in some states, to be changed.
WHERE state <> 'closed'
  AND state IN (SELECT value FROM json_each(:states));

-- name: add
-- A new circuit.
INSERT INTO circuit (hash, pattern, state)
VALUES (:hash, :pattern, :state)
    ON CONFLICT DO NOTHING;

-- name: save
-- All columns that may change.
UPDATE circuit
   SET state = :state,
       fail_ratio = :fail_ratio,
       opened_at = :opened_at,
       reopened = :reopened,
       is_forced = :is_forced,
       generation = :generation,
       probe_until = :probe_until,
       successes = :successes,
       failures = :failures
 WHERE circuit_no = :circuit_no;

-- name: remove
-- Circuits whose route was removed.
DELETE FROM circuit
 WHERE circuit_no IN {list:circuit_nos};

-- name: old_samples
-- How many outcomes are too old to count: usually none, because they were deleted.
SELECT circuit_no, is_failure, count(*)
  FROM circuit_sample
 WHERE circuit_no IN {list:circuit_nos}
   AND is_failure IN (0, 1)
   AND at < :since
 GROUP BY circuit_no, is_failure;

-- name: known_samples
-- Requests of a batch that have an outcome already.
SELECT request_id, at
  FROM circuit_sample
 WHERE circuit_no = :circuit_no
   AND is_failure = :is_failure
   AND request_id IN (SELECT value FROM json_each(:request_ids));

-- name: oldest_samples
-- The oldest outcomes, which are dropped first.
SELECT request_id, at
  FROM circuit_sample
 WHERE circuit_no = :circuit_no
   AND is_failure = :is_failure
 ORDER BY at, request_id
 LIMIT :limit;

-- name: samples
-- All requests with one outcome.
SELECT s.request_id, s.at
  FROM circuit_sample AS s
  JOIN circuit AS c
    ON c.circuit_no = s.circuit_no
 WHERE c.hash = :hash
   AND s.is_failure = :is_failure;

-- name: note
-- A new attempt replaces an older one of the same request.
INSERT INTO circuit_sample (circuit_no, is_failure, request_id, at)
VALUES (:circuit_no, :is_failure, :request_id, :at)
    ON CONFLICT (circuit_no, is_failure, request_id)
    DO UPDATE
   SET at = excluded.at;

-- name: trim
-- Delete outcomes beyond the limit.
DELETE FROM circuit_sample
 WHERE circuit_no = :circuit_no
   AND is_failure = :is_failure
   AND request_id IN (SELECT value FROM json_each(:request_ids));

-- name: forget_samples
-- Delete all outcomes of a circuit that closes.
DELETE FROM circuit_sample
 WHERE circuit_no IN {list:circuit_nos};

-- name: hold
-- Hold queues, or renew the hold.
INSERT INTO circuit_hold (circuit_no, queue_no, at)
VALUES (:circuit_no, :queue_no, :at)
    ON CONFLICT (circuit_no, queue_no)
    DO UPDATE
   SET at = excluded.at;

-- name: held
-- Longest held first.
SELECT q.name, h.at
  FROM circuit_hold AS h
  JOIN circuit AS c
    ON c.circuit_no = h.circuit_no
  JOIN queue AS q
    ON q.queue_no = h.queue_no
 WHERE c.hash = :hash
   AND q.removed_at IS NULL
 ORDER BY h.at, q.name;

-- name: held_counts
-- How many queues each circuit holds, including those that wait to be released and those of removed
-- circuits.
SELECT held_by, count(*)
  FROM queue
 WHERE held_by IS NOT NULL
   AND removed_at IS NULL
 GROUP BY held_by;

-- name: held_reasons
-- Why queues are held, for penstock doctor: by circuit, its state (null: it was removed), whether
-- they wait to be released, and whether their circuit would release them.
SELECT q.held_by, c.pattern, c.state,
       q.queue_no IN (SELECT queue_no FROM unhold_line) AS is_awaiting_unhold,
       q.queue_no IN (SELECT queue_no FROM circuit_hold) AS is_known,
       count(*), min(q.name)
  FROM queue AS q
  LEFT JOIN circuit AS c
    ON c.hash = q.held_by
 WHERE q.held_by IS NOT NULL
   AND q.removed_at IS NULL
 GROUP BY 1, 2, 3, 4, 5
 ORDER BY 1, 4, 5;

-- name: awaiting_counts
-- How many of them wait to be released.
SELECT q.held_by, count(DISTINCT q.queue_no)
  FROM unhold_line AS l
  JOIN queue AS q
    ON q.queue_no = l.queue_no
 WHERE q.held_by IS NOT NULL
   AND q.removed_at IS NULL
 GROUP BY q.held_by;

-- name: held_names
-- The queues that a circuit holds.
SELECT name
  FROM queue
 WHERE held_by = :hash
   AND removed_at IS NULL
 ORDER BY name
 LIMIT :limit;

-- name: held_page
-- Held queues of any circuit.
SELECT queue_no, held_by
  FROM queue
 WHERE held_by IS NOT NULL
   AND removed_at IS NULL
   AND queue_no > :after
 ORDER BY queue_no
 LIMIT :limit;

-- name: held_page_of
-- Held queues of one circuit.
SELECT queue_no, held_by
  FROM queue
 WHERE held_by = :hash
   AND removed_at IS NULL
   AND queue_no > :after
 ORDER BY queue_no
 LIMIT :limit;

-- name: holding
-- Circuits with queues that they would release as probes or when they close.
SELECT hash
  FROM circuit
 WHERE circuit_no IN (SELECT circuit_no FROM circuit_hold)
 ORDER BY hash;

-- name: holders
-- Circuits that hold any of these queues.
SELECT hash
  FROM circuit
 WHERE circuit_no IN (SELECT circuit_no
                        FROM circuit_hold
                       WHERE queue_no IN {list:queue_nos})
 ORDER BY hash;

-- name: drop_holds
-- Delete the holds of queues that are released by hand; the circuits are locked.
DELETE FROM circuit_hold
 WHERE circuit_no IN {list:circuit_nos}
   AND queue_no IN {list:queue_nos};

-- name: remove_from_release
-- Remove them from the queues that wait to be released.
DELETE FROM unhold_line
 WHERE queue_no IN {list:queue_nos};

-- name: held_longest
-- One queue of each circuit.
SELECT f.circuit_no, f.queue_no
  FROM (SELECT h.circuit_no, h.queue_no,
               row_number() OVER (PARTITION BY h.circuit_no ORDER BY h.at, q.name) AS place
          FROM circuit_hold AS h
          JOIN queue AS q
            ON q.queue_no = h.queue_no
         WHERE h.circuit_no IN {list:circuit_nos}
           AND q.removed_at IS NULL) AS f
 WHERE f.place = 1
 ORDER BY f.circuit_no;

-- name: queue_for_release
-- Append queues to those that wait to be released, longest held first.
INSERT INTO unhold_line (queue_no)
SELECT h.queue_no
  FROM circuit_hold AS h
  JOIN queue AS q
    ON q.queue_no = h.queue_no
 WHERE h.circuit_no IN {list:circuit_nos}
   AND q.removed_at IS NULL
 ORDER BY h.at, q.name;

-- name: forget_holds
-- Delete the holds of queues that wait to be released now.
DELETE FROM circuit_hold
 WHERE circuit_no IN {list:circuit_nos};

-- name: next_for_release
-- The queues that are released next.
SELECT place, queue_no
  FROM unhold_line
 ORDER BY place
 LIMIT :limit;

-- name: take_for_release
-- The same, and removes them.
DELETE FROM unhold_line
 WHERE place IN (SELECT place
                   FROM unhold_line
                  ORDER BY place
                  LIMIT :limit)
RETURNING place, queue_no;
