"""Operations on tiles of a package of its own: what each interface is for, and mistakes."""
