"""Tick: what happens because time passed, under one elected leader per namespace."""
