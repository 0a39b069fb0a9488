<?php
// SPDX-License-Identifier: LGPL-2.1-or-later
namespace Timewheel\Messenger;

/** Stands in a list of failed messages for one that cannot be decoded. */
final class Undecoded
{
    public function __construct(public readonly string $body)
    {
    }
}
