-- Inside a caller's transaction.

-- name: savepoint
-- From here on everything can be undone.
SAVEPOINT penstock;

-- name: release
-- Our changes become part of the caller's transaction.
RELEASE SAVEPOINT penstock;

-- name: roll_back
-- Undo our changes; the caller's earlier changes stay.
ROLLBACK TO SAVEPOINT penstock;

-- name: take_write_lock
-- Changes nothing, but locks out other writers from here on. A transaction that reads first and
-- writes later fails at once if another one has written in between; this waits as long as the
-- caller allows.
UPDATE sequence
   SET taken_no = taken_no
 WHERE name = 'message';

-- name: files
-- The databases of a connection: number, name and file. Not a SELECT, which would start a read: a
-- transaction that has read cannot wait for other writers.
PRAGMA database_list;

-- name: leave_log
-- This connection moves no pages of the log, however many there are.
PRAGMA wal_autocheckpoint = 0;
