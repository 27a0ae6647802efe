"""What a campaign is at a point of its log: a pure fold of settings and rows, its leases, and snapshots of it."""
