-- name: by_columns
-- Takes the place of VALUES in an insert of many rows: shared values, and arrays for the others.
SELECT {row}
  FROM unnest({arrays}) AS c ({names});
