-- name: number
-- As in common/: the first statement locks the topic and returns what the second one writes.
SELECT numbered + :count, topic_no AS found_no
  FROM topic
 WHERE topic_no = :topic_no
   FOR UPDATE;
UPDATE topic
   SET numbered = numbered + :count
 WHERE topic_no IN ({found:found_no});
