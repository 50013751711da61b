"""Rules of the whole tree that no single module can keep: words, clocks, SQL, sizes, version.

Each rule is a function from a source folder to what it found, so that every rule is also tried on a
planted violation.
"""
