"""Penstock in Django: a backend for its Tasks, `manage.py penstock_worker`; see docs/django.md."""
