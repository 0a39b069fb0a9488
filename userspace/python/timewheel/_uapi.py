# SPDX-License-Identifier: LGPL-2.1-or-later
"""The structures and constants of <linux/timewheel.h>, for ctypes.

userspace/man/generate wrote this file.
"""

import ctypes

TIMEWHEEL_IOC_TYPE = 0xbe
TIMEWHEEL_IOC_CAPS = 0xbe00
TIMEWHEEL_IOC_SETUP = 0xbe01
TIMEWHEEL_IOC_INFO = 0xbe02
TIMEWHEEL_IOC_OP = 0xbe03
TIMEWHEEL_IOC_BATCH = 0xbe04
TIMEWHEEL_IOC_TOUCH = 0xbe05
TIMEWHEEL_IOC_ADVANCE = 0xbe06
TIMEWHEEL_IOC_LIST = 0xbe07
TIMEWHEEL_IOC_CREATE = 0xbe08
TIMEWHEEL_IOC_DESTROY = 0xbe09
TIMEWHEEL_IOC_STATS = 0xbe0a
TIMEWHEEL_IOC_TOUCH_MANY = 0xbe0b
TIMEWHEEL_IOC_CONTROL = 0xbe0c
TIMEWHEEL_IOC_GET = 0xbe0d
TIMEWHEEL_MAX_BATCH = 65536
TIMEWHEEL_MAX_TICK = 0x3fffffffffff
TIMEWHEEL_NAME_SIZE = 64
TIMEWHEEL_BUCKETS = 252
TIMEWHEEL_MAX_LEASES = 1000
TIMEWHEEL_NEVER = 0xffffffffffffffff
TIMEWHEEL_MAP_WORDS = 0
TIMEWHEEL_CLOCK_MONOTONIC = 0
TIMEWHEEL_CLOCK_BOOTTIME = 1
TIMEWHEEL_CLOCK_REALTIME = 2
TIMEWHEEL_CLOCK_MANUAL = 3
TIMEWHEEL_SETUP_NO_IDS = 1
TIMEWHEEL_SETUP_NO_COOKIES = 2
TIMEWHEEL_SETUP_TOUCH_WORDS = 4
TIMEWHEEL_SETUP_PERIODS = 8
TIMEWHEEL_CREATE_EXCLUSIVE = 1
TIMEWHEEL_OP_REGISTER = 0
TIMEWHEEL_OP_TOUCH = 1
TIMEWHEEL_OP_TOUCH_OR_REGISTER = 2
TIMEWHEEL_OP_MOVE = 3
TIMEWHEEL_OP_CANCEL = 4
TIMEWHEEL_OP_ACK = 5
TIMEWHEEL_OP_NACK = 6
TIMEWHEEL_OP_EXTEND = 7
TIMEWHEEL_OP_BURY = 8
TIMEWHEEL_OP_KICK = 9
TIMEWHEEL_OP_DELETE = 10
TIMEWHEEL_OPF_BY_HANDLE = 1
TIMEWHEEL_OPF_ABSOLUTE = 2
TIMEWHEEL_OPF_ANY_FILE = 4
TIMEWHEEL_RES_WAS_DUE = 1
TIMEWHEEL_RES_REGISTERED = 2
TIMEWHEEL_RES_BURIED = 4
TIMEWHEEL_RES_EXISTED = 8
TIMEWHEEL_CONTROL_PAUSED = 1
TIMEWHEEL_CONTROL_DRAINING = 2
TIMEWHEEL_STATE_NONE = 0
TIMEWHEEL_STATE_PENDING = 1
TIMEWHEEL_STATE_TAKEN = 2
TIMEWHEEL_STATE_HELD = 3
TIMEWHEEL_STATE_BURIED = 4


class timewheel_caps(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("clocks", ctypes.c_uint32),
        ("setup_flags", ctypes.c_uint32),
        ("codes", ctypes.c_uint32),
        ("max_slots", ctypes.c_uint32),
        ("min_tick", ctypes.c_uint64),
        ("max_tick", ctypes.c_uint64),
        ("max_tokens", ctypes.c_uint64),
        ("max_word_ticks", ctypes.c_uint64),
        ("max_batch", ctypes.c_uint32),
        ("op_size", ctypes.c_uint32),
        ("token_size", ctypes.c_uint32),
        ("event_size", ctypes.c_uint32),
    ]


class timewheel_setup(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("clock", ctypes.c_uint32),
        ("slots", ctypes.c_uint32),
        ("tick", ctypes.c_uint64),
        ("max_tokens", ctypes.c_uint64),
        ("start", ctypes.c_uint64),
        ("lease", ctypes.c_uint64),
        ("slack", ctypes.c_uint64),
        ("max_attempts", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
    ]


class timewheel_create(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("setup", ctypes.c_uint64),
        ("name", ctypes.c_char * TIMEWHEEL_NAME_SIZE),
    ]


class timewheel_destroy(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("name", ctypes.c_char * TIMEWHEEL_NAME_SIZE),
    ]


class timewheel_op(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("code", ctypes.c_uint32),
        ("result", ctypes.c_int32),
        ("id", ctypes.c_uint64),
        ("handle", ctypes.c_uint64),
        ("cookie", ctypes.c_uint64),
        ("time", ctypes.c_uint64),
        ("timeout", ctypes.c_uint64),
        ("period", ctypes.c_uint64),
        ("deadline", ctypes.c_uint64),
        ("delivery", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
    ]


class timewheel_batch(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("ops", ctypes.c_uint64),
        ("count", ctypes.c_uint32),
        ("op_size", ctypes.c_uint32),
        ("done", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
    ]


class timewheel_touch(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("key", ctypes.c_uint64),
    ]


class timewheel_touch_many(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("keys", ctypes.c_uint64),
        ("count", ctypes.c_uint32),
        ("done", ctypes.c_uint32),
    ]


class timewheel_advance(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("tick", ctypes.c_uint64),
    ]


class timewheel_control(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("state", ctypes.c_uint32),
        ("mask", ctypes.c_uint32),
    ]


class timewheel_info(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("clock", ctypes.c_uint32),
        ("slots", ctypes.c_uint32),
        ("tick", ctypes.c_uint64),
        ("max_tokens", ctypes.c_uint64),
        ("setup_flags", ctypes.c_uint32),
        ("number", ctypes.c_uint32),
        ("now", ctypes.c_uint64),
        ("hand", ctypes.c_uint64),
        ("next", ctypes.c_uint64),
        ("pending", ctypes.c_uint64),
        ("taken", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("registered", ctypes.c_uint64),
        ("cancelled", ctypes.c_uint64),
        ("moved", ctypes.c_uint64),
        ("delivered", ctypes.c_uint64),
        ("put_back", ctypes.c_uint64),
        ("refiled", ctypes.c_uint64),
        ("callbacks", ctypes.c_uint64),
        ("quiet", ctypes.c_uint64),
        ("touched", ctypes.c_uint64),
        ("offset", ctypes.c_int64),
        ("lease", ctypes.c_uint64),
        ("slack", ctypes.c_uint64),
        ("state", ctypes.c_uint32),
        ("max_attempts", ctypes.c_uint32),
        ("held", ctypes.c_uint64),
        ("buried", ctypes.c_uint64),
        ("acked", ctypes.c_uint64),
        ("nacked", ctypes.c_uint64),
        ("lapsed", ctypes.c_uint64),
        ("returned", ctypes.c_uint64),
        ("kicked", ctypes.c_uint64),
        ("deleted", ctypes.c_uint64),
        ("missed", ctypes.c_uint64),
    ]


class timewheel_stats(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("lateness", ctypes.c_uint64),
        ("wake", ctypes.c_uint64),
    ]


class timewheel_token(ctypes.Structure):
    _fields_ = [
        ("id", ctypes.c_uint64),
        ("handle", ctypes.c_uint64),
        ("cookie", ctypes.c_uint64),
        ("deadline", ctypes.c_uint64),
        ("lease_end", ctypes.c_uint64),
        ("buried_at", ctypes.c_uint64),
        ("left", ctypes.c_uint64),
        ("timeout", ctypes.c_uint64),
        ("period", ctypes.c_uint64),
        ("base", ctypes.c_uint64),
        ("cycle", ctypes.c_uint64),
        ("slot", ctypes.c_uint32),
        ("state", ctypes.c_uint32),
        ("delivery", ctypes.c_uint32),
        ("attempts", ctypes.c_uint32),
    ]


class timewheel_get(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("keys", ctypes.c_uint64),
        ("tokens", ctypes.c_uint64),
        ("count", ctypes.c_uint32),
        ("token_size", ctypes.c_uint32),
        ("done", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
    ]


class timewheel_list(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("cursor", ctypes.c_uint64),
        ("from", ctypes.c_uint64),
        ("to", ctypes.c_uint64),
        ("tokens", ctypes.c_uint64),
        ("count", ctypes.c_uint32),
        ("token_size", ctypes.c_uint32),
        ("listed", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
    ]


class timewheel_event(ctypes.Structure):
    _fields_ = [
        ("id", ctypes.c_uint64),
        ("handle", ctypes.c_uint64),
        ("cookie", ctypes.c_uint64),
        ("deadline", ctypes.c_uint64),
        ("taken", ctypes.c_uint64),
        ("delivery", ctypes.c_uint32),
        ("missed", ctypes.c_uint32),
    ]
