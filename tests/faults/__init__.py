"""Faults: what the broker promises, kept while everything around it breaks.

A run is: a real broker process (server), clients that record what they saw (load), something that
breaks (the faults below), a drain, and a verdict on the recorded history (checker). I1 nothing
acknowledged is lost, I2 no message in two leases at once, I3 nothing unexpected, corrupt or
resurrected, I4 order within a group, I5 the counters balance, I6 it recovers by itself, I7 counters
and ids never decrease. The harness is tested too: on hand-made histories, and on a disk that lies.

| fault | where |
|---|---|
| kill -9, SIGTERM, killed while recovering, SIGSTOP | test_crash |
| power cut: all lost, torn, names lost, at the first start | test_power_loss |
| power cut, full disk, read-only disk, by the kernel (full) | test_kernel |
| full disk, failing writes, failing syncs | test_disk_errors |
| failing syncs and power cuts, without a server | test_failed_syncs |
| every call to the disk fails once | test_failing_disk_calls |
| torn log, flipped bits | test_damage |
| unsafe settings of the database | test_refusal |
| PostgreSQL crashes, the network to it is lost | test_postgres |
| a node is lost or sleeps | test_nodes, test_expired_lease_holder |
| lost answers, resets, dead clients | test_network |
| clocks jump and differ | test_clock |

PENSTOCK_FAULTS=full raises the counts to those before a release.
"""
