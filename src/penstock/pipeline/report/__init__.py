"""The report: one self-contained page of charts, which loads nothing from other hosts."""
