<?php
// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Finds the classes of this folder for programs that have no Composer.
spl_autoload_register(static function (string $class): void {
    $file = \dirname(__DIR__).'/'.str_replace('\\', '/', $class).'.php';
    if (str_starts_with($class, 'Timewheel\\') && is_file($file)) {
        require $file;
    }
});
