"""Faults: what the broker promises, kept while everything around it breaks.

A run is: a real broker process (server), clients that record what they saw (load), something that
breaks (the rows below), a drain, and a verdict on the recorded history (checker). I1 nothing
acknowledged is lost, I2 no message in two leases at once, I3 nothing unexpected, corrupt or
resurrected, I4 order within a group, I5 the books balance, I6 it comes back by itself, I7 counters
and ids never go back. The harness is tested too: on hand-made histories, and on a disk that lies.

| row | fault | where |
|---|---|---|
| 1-4 | kill -9, SIGTERM, killed while recovering, SIGSTOP | test_crash |
| 5-7, 9 | power cut: all lost, torn, names lost, at the first start | test_power_loss |
| 8, 10, 11 | power cut, no room, read-only, by the kernel (full) | test_kernel |
| 10, 12, 13 | no room, writes fail, syncs fail | test_disk_errors |
| 13 | syncs fail and the power is cut, seeded and without a server | test_failed_syncs |
| 14 | every call to the disk fails once | test_walk |
| 15, 16 | torn log, flipped bits | test_damage |
| 17 | a store that would not keep its word | test_refusal |
| 18, 19, 22 | PostgreSQL dies, the way to it is lost | test_postgres |
| 23 | a node is lost or sleeps | test_nodes, test_stale |
| 24 | answers lost, resets, dead clients | test_network |
| 25, 26 | clocks jump and differ | test_clock |

PENSTOCK_FAULTS=full raises the counts to those before a release.
"""
