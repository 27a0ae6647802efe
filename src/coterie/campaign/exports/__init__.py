"""A campaign as text and as Excel files."""
