"""Windows of models, as calls showed them."""
