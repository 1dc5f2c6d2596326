"""What is known of models: what was said of them, what their endpoints list, and the figures that follow."""
