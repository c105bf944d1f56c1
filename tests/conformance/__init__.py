"""What this package and the one it takes its vocabulary from do alike, and where they differ.

``scenarios`` asks for each fact once and imports neither of them, ``expected.py`` says what it
is. ``test_ours.py`` checks that on the database under test, ``test_reference.py`` on the reference,
where an interpreter has it.
"""
