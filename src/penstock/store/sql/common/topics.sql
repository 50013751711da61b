-- name: add
-- A new topic; returns no row if it exists already.
INSERT INTO topic (name, created_at, settings, revision)
VALUES (:name, :now, :settings, :revision)
    ON CONFLICT DO NOTHING
RETURNING topic_no;

-- name: by_name
-- One topic with its counters.
SELECT t.topic_no, t.name, t.created_at,
       (SELECT coalesce(sum(c.published_total), 0)
          FROM topic_counter AS c
         WHERE c.topic_no = t.topic_no),
       (SELECT coalesce(sum(c.unmatched_total), 0)
          FROM topic_counter AS c
         WHERE c.topic_no = t.topic_no),
       t.settings, t.revision
  FROM topic AS t
 WHERE t.name = :name;

-- name: to_publish
-- The same without the counters, which a publish does not need.
SELECT topic_no, name, created_at, 0, 0, settings, revision
  FROM topic
 WHERE name = :name;

-- name: change
-- The settings of a topic.
UPDATE topic
   SET settings = :settings,
       revision = :revision
 WHERE topic_no = :topic_no;

-- name: touch
-- One of its subscriptions changes.
UPDATE topic
   SET revision = :revision
 WHERE topic_no = :topic_no;

-- name: number
-- The last number of some events of an ordered topic.  Locks the topic: its events are stored one
-- publish after the other.
UPDATE topic
   SET numbered = numbered + :count
 WHERE topic_no = :topic_no
RETURNING numbered;

-- name: page
-- Topics by name, with their counters.
SELECT t.topic_no, t.name, t.created_at,
       (SELECT coalesce(sum(c.published_total), 0)
          FROM topic_counter AS c
         WHERE c.topic_no = t.topic_no),
       (SELECT coalesce(sum(c.unmatched_total), 0)
          FROM topic_counter AS c
         WHERE c.topic_no = t.topic_no),
       t.settings, t.revision
  FROM topic AS t
 WHERE t.name > :after
   AND substr(t.name, 1, length(CAST(:prefix AS TEXT))) = :prefix
 ORDER BY t.name
 LIMIT :limit;

-- name: remove
-- A topic …
DELETE FROM topic
 WHERE topic_no = :topic_no;

-- name: remove_subscriptions
-- … with its subscriptions …
DELETE FROM subscription
 WHERE topic_no = :topic_no;

-- name: remove_counters
-- … and its counters.
DELETE FROM topic_counter
 WHERE topic_no = :topic_no;

-- name: subscribe
-- A new or changed subscription; returns no row if its queue belongs to another one and may not be
-- shared.
INSERT INTO subscription (topic_no, name, queue_no, kinds, dispatch, created_at, settings)
SELECT :topic_no, :name, :queue_no, :kinds, :dispatch, :now, :settings
 WHERE :is_shared = 1
    OR NOT EXISTS (SELECT 1
                     FROM subscription AS o
                    WHERE o.queue_no = :queue_no
                      AND NOT (o.topic_no = :topic_no AND o.name = :name))
    ON CONFLICT (topic_no, name)
    DO UPDATE
   SET queue_no = excluded.queue_no,
       kinds = excluded.kinds,
       dispatch = excluded.dispatch,
       settings = excluded.settings
RETURNING subscription_no;

-- name: unsubscribe
-- Its queue receives no more events.
DELETE FROM subscription
 WHERE subscription_no = :subscription_no;

-- name: subscriptions
-- The subscriptions of one topic, by name; a subscription ends with its queue.
SELECT s.subscription_no, t.name, s.name, s.queue_no, q.name, s.kinds, s.dispatch, s.created_at,
       s.settings, q.is_paused
  FROM subscription AS s
  JOIN topic AS t
    ON t.topic_no = s.topic_no
  JOIN queue AS q
    ON q.queue_no = s.queue_no
   AND q.removed_at IS NULL
 WHERE s.topic_no = :topic_no
   {conditions}
 ORDER BY s.name;

-- name: all_subscriptions
-- Subscriptions of all topics, by topic and name.
SELECT s.subscription_no, t.name, s.name, s.queue_no, q.name, s.kinds, s.dispatch, s.created_at,
       s.settings, q.is_paused
  FROM subscription AS s
  JOIN topic AS t
    ON t.topic_no = s.topic_no
  JOIN queue AS q
    ON q.queue_no = s.queue_no
   AND q.removed_at IS NULL
 WHERE (t.name, s.name) > (:after_topic, :after_name)
 ORDER BY t.name, s.name
 LIMIT :limit;

-- name: with_endpoints
-- Subscriptions whose events are pushed to a URL: a small table, read when one of them changes.
SELECT s.subscription_no, t.name, s.name, s.queue_no, q.name, s.kinds, s.dispatch, s.created_at,
       s.settings, q.is_paused
  FROM subscription AS s
  JOIN topic AS t
    ON t.topic_no = s.topic_no
  JOIN queue AS q
    ON q.queue_no = s.queue_no
   AND q.removed_at IS NULL
 WHERE replace(s.settings, '"endpoint":', '') <> s.settings
 ORDER BY s.subscription_no;

-- name: of_name
-- One subscription.
AND s.name = :name

-- name: number_of
-- The number of subscriptions: a small table, and not on the hot path.
SELECT count(*)
  FROM subscription
 WHERE topic_no = :topic_no;

-- name: count
-- Add the counts of a publish.
INSERT INTO topic_counter (topic_no, stripe, published_total, unmatched_total)
VALUES (:topic_no, :stripe, :published, :unmatched)
    ON CONFLICT (topic_no, stripe)
    DO UPDATE
   SET published_total = topic_counter.published_total + excluded.published_total,
       unmatched_total = topic_counter.unmatched_total + excluded.unmatched_total;

-- name: add_node
-- A queue for events that one worker publishes and handles itself.
INSERT INTO node_queue (queue_no, subscription_no, node)
VALUES (:queue_no, :subscription_no, :node)
    ON CONFLICT DO NOTHING;

-- name: node_queues
-- All such queues: a few for each worker that is alive.
SELECT n.queue_no, n.subscription_no, n.node, t.name, s.name, s.queue_no, q.name, s.kinds,
       s.dispatch, s.created_at, s.settings, q.is_paused
  FROM node_queue AS n
  JOIN queue AS own
    ON own.queue_no = n.queue_no
   AND own.removed_at IS NULL
  LEFT JOIN (subscription AS s
             JOIN topic AS t
               ON t.topic_no = s.topic_no
             JOIN queue AS q
               ON q.queue_no = s.queue_no
              AND q.removed_at IS NULL)
    ON s.subscription_no = n.subscription_no
 ORDER BY n.queue_no;

-- name: forget_nodes
-- Delete rows whose queues were removed.
DELETE FROM node_queue
 WHERE queue_no IN (SELECT q.queue_no
                      FROM queue AS q
                     WHERE q.removed_at IS NOT NULL);
