# SPDX-License-Identifier: LGPL-2.1-or-later
"""Shows what a view does when an order is closed."""
import os

import django

import shop  # noqa: F401  (Celery's app is the current one)

django.setup()
from shop.tasks import ask_to_rate  # noqa: E402

delay = float(os.environ.get("DELAY", 48 * 3600))
print(ask_to_rate.apply_async((4711,), countdown=delay).id)
