"""How the world comes in: parse, call a service, render."""
