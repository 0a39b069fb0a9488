<?php
// SPDX-License-Identifier: LGPL-2.1-or-later
namespace Timewheel\Messenger;

use Symfony\Component\Messenger\Transport\Receiver\KeepaliveReceiverInterface;

// Messenger has this interface from version 7.2 on.
if (interface_exists(KeepaliveReceiverInterface::class)) {
    interface Keepalive extends KeepaliveReceiverInterface
    {
    }
} else {
    interface Keepalive
    {
    }
}
