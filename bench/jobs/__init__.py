"""Jobs end to end: our workers beside other job frameworks, on the same machine in the same run."""
