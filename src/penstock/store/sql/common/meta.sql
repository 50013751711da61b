-- name: get
-- One value of the store.
SELECT value
  FROM meta
 WHERE name = :name;

-- name: set
-- Store it.
INSERT INTO meta (name, value)
VALUES (:name, :value)
    ON CONFLICT (name)
    DO UPDATE
   SET value = excluded.value;

-- name: raise
-- Store a number unless a larger one is stored: processes that share a store may differ slightly.
INSERT INTO meta (name, value)
VALUES (:name, :value)
    ON CONFLICT (name)
    DO UPDATE
   SET value = excluded.value
 WHERE CAST(excluded.value AS BIGINT) > CAST(meta.value AS BIGINT);

-- name: set_if_absent
-- Store it unless another process was faster.
INSERT INTO meta (name, value)
VALUES (:name, :value)
    ON CONFLICT (name)
    DO NOTHING;

-- name: new_secret
-- 256 random bits, drawn by the database: SQLite's generator is ChaCha20, seeded by the system.
SELECT lower(hex(randomblob(32)));
