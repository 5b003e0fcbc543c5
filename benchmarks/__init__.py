"""What README's figures come from: every promise about speed and memory, measured against the plain way.

``python -m benchmarks`` from the checkout prints one table.  Both sides of a row are measured in
the same run, in interleaved pairs, and compared by their medians.
"""
