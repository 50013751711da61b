-- Inside a transaction that is not ours.

-- name: savepoint
-- From here on all is ours to take back.
SAVEPOINT penstock;

-- name: release
-- What we did is part of the caller's transaction.
RELEASE SAVEPOINT penstock;

-- name: roll_back
-- What we did is undone; what the caller did before stands.
ROLLBACK TO SAVEPOINT penstock;

-- name: take_write_lock
-- MessageChanges nothing, but from here on nobody else writes.  To read first and to write later fails at
-- once when somebody else has written in between; this waits as long as the caller wants to.
UPDATE sequence
   SET taken_no = taken_no
 WHERE name = 'message';

-- name: files
-- The databases of a connection: number, name, and the file behind it.  Not as a SELECT: that would
-- begin to read, and who reads already can not wait until others have written.
PRAGMA database_list;

-- name: leave_log
-- Pages in the log: none are moved by this connection, however many there are.
PRAGMA wal_autocheckpoint = 0;
