"""The queues that are measured, each a small program of its own (see ``base``).

``registry`` lists them. What runs in a contender's own interpreter imports neither Django nor our
package unless that contender is about them.
"""
