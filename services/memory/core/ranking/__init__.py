"""The ranking of passages: which plan is fastest, and how answers are fused."""
