"""Model calls and tool calls, as far as they are pure: offers, plans, replies, arguments."""
