"""A program that knows nothing of Penstock: it consumes from RabbitMQ, a message at a time.

python consumer.py PORT QUEUE FILE
"""

import signal
import sys
import threading
from pathlib import Path

import pika


def main() -> None:
    port, queue, file = sys.argv[1:]
    connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", int(port)))
    channel = connection.channel()
    channel.basic_qos(prefetch_count=1)

    def handle(channel, method, properties, body) -> None:
        threading.Event().wait(0.1)
        with Path(file).open("a") as log:
            log.write(body.decode() + "\n")
        channel.basic_ack(method.delivery_tag)

    def end(*_) -> None:
        connection.add_callback_threadsafe(channel.stop_consuming)

    signal.signal(signal.SIGTERM, end)
    channel.basic_consume(queue, handle)
    channel.start_consuming()
    connection.close()


if __name__ == "__main__":
    main()
