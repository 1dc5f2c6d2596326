"""OpenAI's Responses with agents in the place of models."""
