-- Why: topics and subscriptions have settings: filters, formats, what the SNS API keeps.  A topic's
-- revision changes with its subscriptions, so that nodes notice.  An ordered topic numbers its
-- events.  Several topics may feed one queue.

ALTER TABLE topic ADD COLUMN settings TEXT NOT NULL DEFAULT '{}';

ALTER TABLE topic ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;

ALTER TABLE topic ADD COLUMN numbered INTEGER NOT NULL DEFAULT 0;

ALTER TABLE subscription ADD COLUMN settings TEXT NOT NULL DEFAULT '{}';

DROP INDEX subscription_by_queue;

CREATE INDEX subscription_by_queue ON subscription (queue_no);
