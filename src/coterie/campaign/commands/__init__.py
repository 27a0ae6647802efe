"""What is decided on a campaign: each command checks, changes the state, and makes rows."""
