-- name: new_secret
-- As in common/, drawn by PostgreSQL: a random UUID has 122 random bits.
SELECT replace(concat(gen_random_uuid(), gen_random_uuid()), '-', '');
