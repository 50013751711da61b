"""Background work: the duty loop and its duties, the pusher, the archiver, the autoscaler."""
