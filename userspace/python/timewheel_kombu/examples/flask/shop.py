# SPDX-License-Identifier: LGPL-2.1-or-later
"""Flask and Celery in their usual set-up: flask --app shop run, celery -A shop:celery worker"""
import os

from celery import Celery, Task
from flask import Flask

app = Flask(__name__)
app.config["CELERY"] = {
    "broker_url": os.environ.get("BROKER", "timewheel:///run/twjobd/socket"),
    "task_ignore_result": True,
}


class ContextTask(Task):
    def __call__(self, *args, **kwargs):
        with app.app_context():
            return self.run(*args, **kwargs)


celery = Celery(app.name, task_cls=ContextTask)
celery.config_from_object(app.config["CELERY"])


@celery.task(acks_late=True)
def ask_to_rate(order):
    app.logger.warning("rate your order %s", order)


@app.post("/orders/<int:order>")
def close_order(order):
    delay = float(os.environ.get("DELAY", 48 * 3600))
    return {"task": ask_to_rate.apply_async((order,), countdown=delay).id}


if __name__ == "__main__":
    print(app.test_client().post("/orders/4711").json)
