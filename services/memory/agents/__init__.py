"""What an agent remembers as a whole."""
