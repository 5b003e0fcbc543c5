"""What OpenCode knows: its HTTP API, its events and the state they yield, and its processes."""
