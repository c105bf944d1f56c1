"""The overview: how many jobs wait, what ran lately and how long, who works, what looks wrong.

Whatever the size of the tables: jobs that have ended are not counted, and of the executions no more
than the latest are looked at.
"""
