"""From files, frames and rows in memory to a `Table` of raw cells, and from that to a `Pool` of measurements."""
