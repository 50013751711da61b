"""Workers for an application: in its own process, or in processes of their own."""
