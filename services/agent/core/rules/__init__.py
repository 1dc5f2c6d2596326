"""Tool rules as JSON, as sentences, and what they read in returns. The rules themselves: tool_rules.py."""
