"""What happens around a call to a provider: who is asked, when, how often, and what it costs."""
