"""The demo: a sample project, a scripted model that needs no network, and the run that joins them."""
