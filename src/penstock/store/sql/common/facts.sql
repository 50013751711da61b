-- name: add
-- Add a fact; none is ever changed.
INSERT INTO fact (at, kind, subject, data)
VALUES (:at, :kind, :subject, :data);

-- name: search
-- Newest first, from the end of the page before.
SELECT fact_no, at, kind, subject, data
  FROM fact
 WHERE at >= :from_at
   AND at < :to_at
   AND (at, fact_no) < (CAST(:before_at AS BIGINT), CAST(:before_no AS BIGINT))
   {conditions}
 ORDER BY at DESC, fact_no DESC
 LIMIT :limit;

-- name: where_kind
-- Only of this kind.
AND kind = :kind;

-- name: where_subject
-- Only about this subject.
AND subject = :subject;

-- name: forget
-- Delete facts of days that are pruned, some at a time.
DELETE FROM fact
 WHERE fact_no IN (
         SELECT fact_no
           FROM fact
          WHERE at < :before_at
            AND fact_no <= :upto_no
          ORDER BY at
          LIMIT :limit
       );
