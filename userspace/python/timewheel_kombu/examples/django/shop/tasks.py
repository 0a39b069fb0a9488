# SPDX-License-Identifier: LGPL-2.1-or-later
import logging

from celery import shared_task


@shared_task(acks_late=True)
def ask_to_rate(order):
    logging.getLogger(__name__).warning("rate your order %s", order)
