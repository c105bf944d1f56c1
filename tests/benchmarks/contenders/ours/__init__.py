"""flexiq_django: a Django app with two tasks, worked by ``manage.py flexiq_worker``."""
