"""The pass-by-pass view of a program: what every pass did to every layout, as one page."""
