"""django-tasks-db: the database backend of Django's own task framework, worked by its db_worker."""
