"""Files of the lake and of the computed tables: on a disk, or in an object store."""
