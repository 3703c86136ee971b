"""What a PASTIS broker needs to know about ffuzz.

One module per engine, because a broker imports the module that a client names and takes the one
descriptor in it. Nothing is imported here, so that the descriptors' module is the only one that
needs libpastis.
"""

__version__ = "0.1.0"
