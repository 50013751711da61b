"""Jobs as applications declare, enqueue and inspect them."""
