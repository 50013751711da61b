-- Why: topics and subscriptions have settings: filters, formats, what the SNS API keeps.  A topic's
-- revision changes with its subscriptions, so that nodes notice.  An ordered topic numbers its
-- events.  Several topics may feed one queue.

ALTER TABLE topic ADD COLUMN IF NOT EXISTS settings longtext NOT NULL DEFAULT '{}';

ALTER TABLE topic ADD COLUMN IF NOT EXISTS revision bigint NOT NULL DEFAULT 0;

ALTER TABLE topic ADD COLUMN IF NOT EXISTS numbered bigint NOT NULL DEFAULT 0;

ALTER TABLE subscription ADD COLUMN IF NOT EXISTS settings longtext NOT NULL DEFAULT '{}';

DROP INDEX IF EXISTS subscription_by_queue ON subscription;

CREATE INDEX IF NOT EXISTS subscription_by_queue ON subscription (queue_no);
