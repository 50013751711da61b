"""The bus: topics, subscriptions, their filters, and the forms in which events are delivered."""
