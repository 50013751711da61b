"""What runs itself: the loop and its duties."""
