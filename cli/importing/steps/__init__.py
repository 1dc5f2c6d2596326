"""What is brought over, one kind after the other. Each leaves out what is there already, so that it may be repeated."""
