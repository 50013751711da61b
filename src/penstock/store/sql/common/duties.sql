-- name: take
-- The first node to ask after the current term is over takes the duty. A term that ends later than
-- one that begins now was set under other settings or by another clock, and does not count.
INSERT INTO duty (name, until_at, holder, ticks)
VALUES (:name, :until_at, :holder, 0)
    ON CONFLICT (name)
    DO UPDATE
   SET until_at = excluded.until_at,
       holder = excluded.holder,
       ticks = duty.ticks + 1
 WHERE duty.until_at <= :now
    OR duty.until_at > excluded.until_at
RETURNING ticks;

-- name: until
-- When it can be taken again.
SELECT until_at
  FROM duty
 WHERE name = :name;

-- name: restart
-- The next time counts as the first in a row.
UPDATE duty
   SET ticks = -1
 WHERE name = :name;

-- name: lead
-- The holder keeps the lead; another node takes over when the term is over or implausible.
INSERT INTO duty (name, until_at, holder, ticks)
VALUES (:name, :until_at, :holder, 0)
    ON CONFLICT (name)
    DO UPDATE
   SET until_at = excluded.until_at,
       holder = excluded.holder,
       ticks = duty.ticks + 1
 WHERE duty.holder = excluded.holder
    OR duty.until_at <= :now
    OR duty.until_at > :absurd_at
RETURNING ticks;

-- name: leave
-- Give up the lead, so that another node need not wait for the end of the term.
UPDATE duty
   SET until_at = 0
 WHERE name = :name
   AND holder = :holder;
