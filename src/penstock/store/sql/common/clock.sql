-- The store's time is set back by :shift_ms. Instants after :since, which a clock that was ahead
-- wrote, are shifted by the same amount, so that every wait continues where it was.

-- name: set_back_messages
-- Leases and ages. leased_at stays, because receipts are fenced by it; a timeout counts from
-- started_at instead. A wait of up to :delay_ms after the send or the last claim is a delay and is
-- shifted, a longer one is a due date and stays. An older lease that was extended meanwhile ends at
-- :longest_at, when the longest lease that begins now would end.
UPDATE message
   SET due_at = CASE
         WHEN state = 'ready' AND due_at > :since THEN due_at - :shift_ms
         WHEN state = 'leased' AND leased_at > :since THEN due_at - :shift_ms
         WHEN state = 'leased' AND due_at > :longest_at THEN :longest_at
         WHEN state = 'waiting' AND leased_at > :since AND due_at - leased_at <= :delay_ms
         THEN due_at - :shift_ms
         WHEN state = 'waiting' AND sent_at > :since AND due_at - sent_at <= :delay_ms
         THEN due_at - :shift_ms
         ELSE due_at
       END,
       expires_at = CASE
         WHEN sent_at > :since AND expires_at - sent_at <= :delay_ms THEN expires_at - :shift_ms
         ELSE expires_at
       END,
       sent_at = CASE WHEN sent_at > :since THEN sent_at - :shift_ms ELSE sent_at END,
       first_leased_at = CASE
         WHEN first_leased_at > :since THEN first_leased_at - :shift_ms
         ELSE first_leased_at
       END,
       started_at = CASE
         WHEN started_at > :since THEN started_at - :shift_ms
         WHEN state = 'leased' AND timeout_ms IS NOT NULL AND started_at IS NULL
          AND leased_at > :since
         THEN leased_at - :shift_ms
         ELSE started_at
       END
 WHERE sent_at > :since
    OR leased_at > :since
    OR (state = 'leased' AND due_at > :longest_at)
    OR (state = 'ready' AND due_at > :since);

-- name: waiting_dates
-- Messages that were sent while the clock was ahead and keep their due dates: how many, and the
-- last date.
SELECT count(*), coalesce(max(due_at), 0)
  FROM message
 WHERE state = 'waiting'
   AND sent_at > :since
   AND due_at - sent_at > :delay_ms;

-- name: set_back_queues
-- The name of a removed queue can be reused a minute later, not days later.
UPDATE queue
   SET created_at = CASE WHEN created_at > :since THEN created_at - :shift_ms ELSE created_at END,
       changed_at = CASE WHEN changed_at > :since THEN changed_at - :shift_ms ELSE changed_at END,
       removed_at = CASE WHEN removed_at > :since THEN removed_at - :shift_ms ELSE removed_at END
 WHERE created_at > :since
    OR changed_at > :since
    OR removed_at > :since;

-- name: set_back_dedup
-- Keys with a window, of messages whose ids show that they were sent while the clock was ahead.
UPDATE dedup
   SET until_at = until_at - :shift_ms
 WHERE id > :since_id
   AND until_at > :since
   AND until_at < :no_end;

-- name: set_back_claim_keys
-- Repeatable claims are remembered for :kept_ms.
UPDATE claim_key
   SET until_at = until_at - :shift_ms
 WHERE until_at - :kept_ms > :since;

-- name: set_back_steps
-- A durable sleep counts from the instant of its step.
UPDATE step
   SET at = at - :shift_ms,
       day = (at - :shift_ms) / :day_ms
 WHERE at > :since;

-- name: set_back_signals
-- Signals are kept for as long as before.
UPDATE signal
   SET at = at - :shift_ms,
       until_at = until_at - :shift_ms
 WHERE at > :since;

-- name: set_back_waits
-- Timeouts of waits for signals.
UPDATE signal_waiter
   SET at = at - :shift_ms,
       until_at = until_at - :shift_ms
 WHERE at > :since;

-- name: set_back_rates
-- Otherwise a bucket would earn nothing until the instant of its last change.
UPDATE pace
   SET paced_at = paced_at - :shift_ms,
       full_at = full_at - :shift_ms
 WHERE paced_at > :since;

-- name: set_back_moves
-- The same for move tasks.
UPDATE move_task
   SET paced_at = CASE WHEN paced_at > :since THEN paced_at - :shift_ms ELSE paced_at END,
       started_at = CASE WHEN started_at > :since THEN started_at - :shift_ms ELSE started_at END,
       ended_at = CASE WHEN ended_at > :since THEN ended_at - :shift_ms ELSE ended_at END
 WHERE paced_at > :since
    OR started_at > :since
    OR ended_at > :since;

-- name: set_back_workers
-- Otherwise a worker that has exited would count as alive for as long as the clock was ahead.
UPDATE worker
   SET registered_at = CASE
         WHEN registered_at > :since THEN registered_at - :shift_ms
         ELSE registered_at
       END,
       alive_until = CASE WHEN beat_at > :since THEN alive_until - :shift_ms ELSE alive_until END,
       ended_at = CASE WHEN ended_at > :since THEN ended_at - :shift_ms ELSE ended_at END,
       beat_at = CASE WHEN beat_at > :since THEN beat_at - :shift_ms ELSE beat_at END
 WHERE registered_at > :since
    OR beat_at > :since
    OR ended_at > :since;

-- name: set_back_circuits
-- Otherwise a circuit would stay open, and a probe block others, for as long.
UPDATE circuit
   SET opened_at = CASE WHEN opened_at > :since THEN opened_at - :shift_ms ELSE opened_at END,
       probe_until = CASE
         WHEN probe_until - :probe_ms > :since THEN probe_until - :shift_ms
         ELSE probe_until
       END
 WHERE opened_at > :since
    OR probe_until - :probe_ms > :since;

-- name: set_back_outcomes
-- Otherwise these outcomes would count for as long.
UPDATE circuit_sample
   SET at = at - :shift_ms
 WHERE at > :since;

-- name: set_back_holds
-- When the holds of queues began.
UPDATE circuit_hold
   SET at = at - :shift_ms
 WHERE at > :since;

-- name: drop_minutes
-- Counters of future minutes, which would block the real ones.
DELETE FROM minute_counter
 WHERE minute_at > :since;

-- name: reopen_days
-- Days that are not over: what happens on them is still to be archived.
UPDATE archive_mark
   SET is_closed = 0
 WHERE is_closed = 1
   AND day >= :first_open_day;

-- name: schedules_ahead
-- Schedules whose next firing was planned while the clock was ahead.
SELECT name
  FROM schedule
 WHERE last_at > :since
    OR next_at > :since
 ORDER BY name;
