"""Operations that change messages: send, claim, acts on leases, transfers."""
