"""History played once more, through the functions that the broker itself goes by."""
