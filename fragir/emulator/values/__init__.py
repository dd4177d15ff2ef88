"""What instructions compute, as text: the language, and what is made of an expression."""
