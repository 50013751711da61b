"""The pusher: picks the next queue, sends its delivery and handles the response."""
