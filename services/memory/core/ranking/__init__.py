"""How passages are searched: which way is soonest, and how answers are fused."""
