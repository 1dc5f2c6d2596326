"""Model calls and tool calls of a run: what is offered, what is sent, what comes, who runs it."""
