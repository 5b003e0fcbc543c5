"""The Jupyter Server extension: REST routes, the events WebSocket and their description."""
