"""What ports promise by themselves."""
