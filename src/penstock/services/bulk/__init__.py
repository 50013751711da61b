"""Work on many messages: move tasks, and acts on selected messages."""
