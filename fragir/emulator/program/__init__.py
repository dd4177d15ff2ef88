"""From a syntax tree to flat code with every name resolved."""
