"""Routes that take a prompt and give text: chats rendered as prompts, calls and thoughts found in the text."""
