"""What people type from habit, where our own word is another one.  Both are understood.

The only place that spells the habit out, so that the rest of the command line speaks our words.
"""

FINISH = "ack"  # ours: complete
TAKE = "receive"  # ours: claim

OTHER_NAMES = {"complete": FINISH, "claim": TAKE}
