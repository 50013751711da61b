"""What released versions wrote: contracts of their tables, and small lakes of their archivers."""
