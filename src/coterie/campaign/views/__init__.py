"""What people and programs see of a campaign: functions from its state to plain JSON values."""
