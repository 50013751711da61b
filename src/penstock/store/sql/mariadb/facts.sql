-- name: forget
-- As in common/, with MariaDB's limit.
DELETE FROM fact
 WHERE at < :before_at
   AND fact_no <= :upto_no
 ORDER BY at
 LIMIT :limit;
