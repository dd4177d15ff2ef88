"""How `frag-place` finds layouts: classes of tiles, what is demanded of them, what follows."""
