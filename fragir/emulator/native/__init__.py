"""The compiled core: a library in C that runs some steps of the emulator, where it was built."""
