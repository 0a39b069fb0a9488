# SPDX-License-Identifier: LGPL-2.1-or-later
"""Django and Celery in their usual set-up: celery -A shop worker"""
import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")
app = Celery("shop")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
