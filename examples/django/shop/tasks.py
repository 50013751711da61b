from django_tasks import TaskContext, task

from shop.models import Order


@task(queue_name="mail", priority=10)
def confirm(order_id: int) -> str:
    order = Order.objects.get(pk=order_id)
    order.is_confirmed = True
    order.save()
    return f"confirmed {order.name}"


@task(takes_context=True)
def audit(context: TaskContext, *, day: str) -> int:
    if context.attempt == 1:
        raise ValueError(f"no report of {day} yet")
    return Order.objects.count()
