"""Pure code and its ports: the neutral chat, what is known of models, and the rules by which calls are made."""
