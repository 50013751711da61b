-- Why: a duplicate is told the number of the first message too.  Keys from before have none.

ALTER TABLE dedup ADD COLUMN message_no bigint;
