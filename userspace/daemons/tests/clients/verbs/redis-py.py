# SPDX-License-Identifier: GPL-2.0-only
#
# redis-py: see check.
import sys

import redis

where = sys.argv[1]
client = redis.Redis(unix_socket_path=where) if where[0] == "/" else \
    redis.Redis(port=int(where), password="secret")


def text(answer):
    if answer is None:
        return "nil"
    if isinstance(answer, list):
        return "[" + "|".join(map(text, answer)) + "]"
    return answer.decode() if isinstance(answer, bytes) else str(answer)


pipeline = None
for line in sys.stdin:
    words = line.split()
    try:
        if words == ["MULTI"]:
            pipeline = client.pipeline()
            continue
        if words == ["EXEC"]:
            gathered, pipeline = pipeline, None
            answer = text(gathered.execute())
        elif pipeline is not None:
            pipeline.execute_command(*words)
            continue
        else:
            answer = text(client.execute_command(*words))
    # It cuts off this code, and ERR.
    except redis.exceptions.ExecAbortError as error:
        answer = f"!EXECABORT {error}"
    except redis.exceptions.ResponseError as error:
        answer = f"!{error}"
    print(answer.replace("\n", " "), flush=True)
