"""The same two jobs, written for each framework.  `BENCH_URL` says where its store is."""
