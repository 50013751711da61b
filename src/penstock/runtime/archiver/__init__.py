"""The archiver: writes history to the lake and takes snapshots."""
