# SPDX-License-Identifier: LGPL-2.1-or-later
import os

SECRET_KEY = "an example"
USE_TZ = True
INSTALLED_APPS = ["shop"]
CELERY_BROKER_URL = os.environ.get("BROKER", "timewheel:///run/twjobd/socket")
CELERY_TASK_IGNORE_RESULT = True
