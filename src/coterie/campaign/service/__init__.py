"""`Campaigns`: all campaigns of one store, for any number of threads and processes."""
