"""Move: the only room that writes rows.

One module per verb; one verb is one transaction. Every verb takes a ``Scope`` first and returns
plain records. None reads settings, sends a signal or calls user code.
"""
