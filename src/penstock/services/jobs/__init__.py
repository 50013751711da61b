"""Use-cases of jobs: durable steps and signals, results, logs of attempts."""
