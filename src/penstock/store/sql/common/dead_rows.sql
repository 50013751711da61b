-- Queues whose indexes have many dead rows: only PostgreSQL has them, and only its statements are
-- used.

-- name: claim
-- As messages.claim.

-- name: claim_kinds
-- As claims_by_kind.claim.

-- name: free_heads
-- As claims_by_kind.free_heads.

-- name: heads
-- As consecutive_claims.heads.

-- name: visible
-- The first ready messages.

-- name: queues_with_due
-- As messages.queues_with_due.

-- name: ready
-- The ready messages in a part of an index.

-- name: unexpired
-- The condition of claims.

-- name: of_kind
-- The condition of messages of one kind.

-- name: read_in_order
-- Avoid plans that sort.
