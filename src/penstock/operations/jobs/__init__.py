"""Operations on jobs: durable steps and signals, results, logs of attempts."""
