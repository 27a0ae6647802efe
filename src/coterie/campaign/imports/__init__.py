"""Tables of earlier measurements, taken into a campaign."""
