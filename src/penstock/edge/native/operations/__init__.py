"""Operations with handlers of their own: hot paths, streams and plain text."""
