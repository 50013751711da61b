from django.urls import path

from shop.views import order, task_state

urlpatterns = [path("orders", order), path("tasks/<task_id>", task_state)]
