-- Why: a login of the console is a row that the server can end, and of its token only the hash is kept:
-- reading the store is not enough to forge one.  A key remembers which secret file it signs with.

CREATE TABLE login (
  token_hash text COLLATE "C" PRIMARY KEY,
  key_id     text COLLATE "C" NOT NULL,
  until_at   bigint NOT NULL
);

CREATE INDEX login_by_end ON login (until_at);

-- NULL: with the secret of the store, as all keys did before.
ALTER TABLE api_key ADD COLUMN signed_with text COLLATE "C";
