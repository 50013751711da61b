"""What tests lean on: outside servers and other machinery that is not itself under test."""
