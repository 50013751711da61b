"""The application of the worker in compose.yaml; replace it with yours."""

import os

from penstock import Penstock

app = Penstock(os.environ["PENSTOCK_STORE_URL"])


@app.job(queue="mail", attempts=5, timeout="30s")
def send_mail(to: str) -> None:
    print(f"to {to}", flush=True)


if __name__ == "__main__":
    send_mail.enqueue("ada@example.org")
