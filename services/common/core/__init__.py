"""Values and rules that services share: they neither wait nor do I/O."""
