<?php
// SPDX-License-Identifier: GPL-2.0-only
//
// proxy.php PATH SOCKET cut|after|once|always VERB [ERROR]: stands between a client and twjobd. "cut" ends
// the connection instead of passing the first answer to VERB on, "after" when it has done that; "once" and
// "always" answer VERB with ERROR, the first time or each time, and twjobd does not hear of it.

[, $path, $socket, $what, $verb, $error] = $argv + [5 => ''];
$server = stream_socket_server("unix://$path");
while (true) {
    $client = stream_socket_accept($server, 86400);
    $daemon = stream_socket_client("unix://$socket");
    while (true) {
        $sources = [$client, $daemon];
        $none = [];
        stream_select($sources, $none, $none, null);
        $source = reset($sources);
        $text = fread($source, 1 << 22);
        if ($text === '' || $text === false) {
            break;
        }
        if ($source === $daemon) {
            fwrite($client, $text);
        } elseif ($verb === '' || !str_contains($text, "\r\n$verb\r\n")) {
            fwrite($daemon, $text);
        } elseif ($what === 'cut' || $what === 'after') {
            fwrite($daemon, $text);
            $answer = fread($daemon, 1 << 16);
            fwrite($client, $what === 'after' ? $answer : '');
            $verb = '';
            break;
        } else {
            fwrite($client, "-$error\r\n");
            $verb = $what === 'once' ? '' : $verb;
        }
    }
    fclose($client);
    fclose($daemon);
}
