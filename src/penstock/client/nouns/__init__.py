"""The nouns of a broker as clients call them: the same over HTTP and in process."""
