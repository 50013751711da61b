from django.db import models


class Order(models.Model):
    name = models.CharField(max_length=20, unique=True)
    is_confirmed = models.BooleanField(default=False)
