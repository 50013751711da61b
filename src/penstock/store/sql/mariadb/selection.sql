-- name: end
-- As in common/: MariaDB computes no offset.
SELECT {order}
  FROM (SELECT {order}, row_number() OVER (ORDER BY {order}) AS place
          FROM (SELECT {order}
                  FROM message
                 WHERE queue_no = :queue_no
                   {begin}
                 ORDER BY {order}
                 LIMIT :length) AS scanned) AS numbered
 WHERE place = :length;
