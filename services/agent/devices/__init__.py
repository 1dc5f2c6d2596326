"""Remote devices: who is known, who is connected, and what is pushed to them."""
