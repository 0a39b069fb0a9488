/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a kernel may be configured without. The compiler reads this after a packaged
 * kernel's configuration, to build the module as for a kernel that has none of these.
 * The result is not to be loaded.
 */
#undef CONFIG_CGROUPS
#undef CONFIG_COMPAT
#undef CONFIG_DEBUG_FS
#undef CONFIG_DEVTMPFS
#undef CONFIG_EPOLL
#undef CONFIG_EVENT_TRACING
#undef CONFIG_HIGH_RES_TIMERS
#undef CONFIG_IA32_EMULATION
#undef CONFIG_INET
#undef CONFIG_MEMCG
#undef CONFIG_MEMCG_KMEM
#undef CONFIG_MODULE_UNLOAD
#undef CONFIG_NAMESPACES
#undef CONFIG_NET
#undef CONFIG_PRINTK
#undef CONFIG_PROC_FS
#undef CONFIG_SMP
#undef CONFIG_SYSFS
#undef CONFIG_TIME_NS
#undef CONFIG_TRACEPOINTS
#undef CONFIG_TRACING
#undef CONFIG_USER_NS
