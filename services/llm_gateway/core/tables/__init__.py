"""Tables of figures that vendors publish of their models, and their endpoints do not say; one for each vendor."""
