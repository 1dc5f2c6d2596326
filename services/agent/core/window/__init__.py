"""How much fits into the window, and how what does not is made smaller. What is shown: context.py."""
