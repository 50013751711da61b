-- name: new_secret
-- As in common/, drawn by MariaDB's TLS library.
SELECT LOWER(HEX(RANDOM_BYTES(32)));

-- name: raise
-- As in common/, with MariaDB's upsert.
INSERT INTO meta (name, value)
VALUES (:name, :value)
    ON DUPLICATE KEY UPDATE
       value = IF(CAST(VALUES(value) AS signed) > CAST(meta.value AS signed), VALUES(value),
                  meta.value);
