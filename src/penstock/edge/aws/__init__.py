"""What the APIs of AWS have in common: signatures, the Query protocol, errors."""
