"""What runs itself: duties as calls, and the loop that makes them."""
