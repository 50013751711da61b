"""Resources as clients use them, over HTTP and in process."""
