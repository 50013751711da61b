-- Why: what a handler logs is kept with the attempt.  A part has some lines; its worker numbers the
-- parts of an attempt, so that a repeated request adds nothing.  Days that are there already get the
-- table here, later ones when they are created.

DO $$
DECLARE
  one integer;
BEGIN
  FOR one IN SELECT d.day FROM day AS d LOOP
    EXECUTE format('CREATE TABLE attempt_log_%s (
                      message_no bigint  NOT NULL,
                      lease_no   integer NOT NULL,
                      seq        integer NOT NULL,
                      lines      text    NOT NULL,
                      PRIMARY KEY (message_no, lease_no, seq)
                    )', one);
  END LOOP;
END
$$;
