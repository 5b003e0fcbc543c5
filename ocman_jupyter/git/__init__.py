"""What git knows: repositories, their worktrees, branches and what removing one would lose."""
