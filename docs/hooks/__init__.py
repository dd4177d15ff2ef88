"""What `make docs` makes of the sources: mkdocs calls `docs/hooks/site.py`.

The pages of docs/ are plain Markdown that a code host shows as they are. Here are made, in memory
and at each build: the reference of instructions with a picture of every operand, of operations,
passes, commands and public names; and the files of the repository that pages link to.
"""
