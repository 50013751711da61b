"""Answers in words to what operators ask about the past, from the pipeline's tables."""
