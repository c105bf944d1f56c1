"""The tables that the examples of the documentation are about.

Their app is not installed, so migrations and other tests never hear of them; the fixture `shop`
makes and drops the tables.
"""

from django.db import models


class Order(models.Model):
    """What a customer ordered."""

    email = models.CharField(max_length=200)
    total = models.DecimalField(max_digits=9, decimal_places=2)
    status = models.CharField(max_length=20, default="new")

    class Meta:
        app_label = "shop"

    def __str__(self) -> str:
        return f"order {self.pk}"


class Receipt(models.Model):
    """That money came in."""

    order_id = models.BigIntegerField()
    text = models.CharField(max_length=200)

    class Meta:
        app_label = "shop"

    def __str__(self) -> str:
        return self.text


TABLES = (Order, Receipt)
