"""What a file is, before anything touches it (SPEC 2.4)."""

APPLICATION_ID = 1128351288
"""The ASCII bytes `CAF8`."""

HEAD_VERSION = 5
"""The file version that this cafleet reads and writes."""
