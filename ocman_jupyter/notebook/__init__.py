"""The notebook face: one client for a Jupyter server or the host in process, magics, and the Python API."""
