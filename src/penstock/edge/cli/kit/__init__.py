"""What commands share: flags, output, exit codes."""
