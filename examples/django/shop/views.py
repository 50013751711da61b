from django.db import transaction
from django.http import HttpRequest, JsonResponse
from django_tasks.exceptions import TaskResultDoesNotExist

from shop.models import Order
from shop.tasks import confirm


@transaction.atomic
def order(request: HttpRequest) -> JsonResponse:
    """The order and its task exist together, or neither does."""
    made = Order.objects.create(name=request.POST["name"])
    result = confirm.enqueue(made.pk)
    return JsonResponse({"order": made.pk, "task": result.id}, status=202)


def task_state(_: HttpRequest, task_id: str) -> JsonResponse:
    try:
        result = confirm.get_result(task_id)
    except TaskResultDoesNotExist:
        return JsonResponse({"error": "there is no such task"}, status=404)
    return JsonResponse(
        {
            "status": result.status,
            "attempts": result.attempts,
            "result": result.return_value if result.status == "SUCCESSFUL" else None,
        }
    )
