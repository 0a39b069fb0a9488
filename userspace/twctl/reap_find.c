// SPDX-License-Identifier: GPL-2.0-only
/*
 * Finds the connections of a program among those that sock_diag(7) tells of: connections that
 * are files of its processes, and connections that wait until one of its sockets accepts them.
 */
#include <dirent.h>
#include <sys/syscall.h>

#include "reap.h"

#define GROUPS	"/sys/fs/cgroup"

struct pids {
	pid_t	*pid;
	size_t	count;
	size_t	room;
};

static int pidfd_open(pid_t pid)
{
	return syscall(SYS_pidfd_open, pid, 0);
}

static FILE *open_group(const char *path)
{
	char file[PATH_MAX + 16];

	snprintf(file, sizeof(file), "%s/cgroup.procs", path);
	return fopen(file, "re");
}

/* The path may be without that of the file system, as systemd writes it. */
static void find_group(struct reap *reap, const char *path)
{
	FILE *file = open_group(path);

	/* An empty path, as of an unknown group in a script, must not mean the whole system. */
	if (!*path)
		die_usage("--cgroup", path, "a control group");
	snprintf(reap->group, sizeof(reap->group), "%s%s", file ? "" : GROUPS "/",
		 path);
	if (!file)
		file = open_group(reap->group);
	if (!file)
		die(STATUS_NOT_THERE, "--cgroup '%s': no control group: %s", path,
		    strerror(errno));
	fclose(file);
}

/* Finds the program that is meant. Ends twctl if that program does not exist. */
void reap_target(struct reap *reap, const struct args *args)
{
	reap->pidfd = -1;
	if (args->option[OPT_CGROUP])
		find_group(reap, args->option[OPT_CGROUP]);
	if (!args->option[OPT_PID])
		return;
	reap->pidfd = pidfd_open(reap->pid);
	if (reap->pidfd >= 0)
		return;
	die(STATUS_NOT_THERE, "--pid '%d': no process: %s", reap->pid,
	    strerror(errno));
}

static void pids_add(struct pids *pids, pid_t pid)
{
	if (pids->count == pids->room) {
		pids->room = pids->room ? 2 * pids->room : 64;
		pids->pid = reallocarray(pids->pid, pids->room,
					 sizeof(*pids->pid));
		if (!pids->pid)
			die(STATUS_FAILED, "no memory for processes");
	}
	pids->pid[pids->count++] = pid;
}

/* Reads the numbers of processes from @file, and closes it. */
static void pids_read(struct pids *pids, FILE *file)
{
	pid_t pid;

	/* A process of another pid namespace has the number 0. */
	while (fscanf(file, "%d", &pid) == 1) {
		if (pid)
			pids_add(pids, pid);
	}
	fclose(file);
}

static void add_children(struct pids *pids, pid_t pid)
{
	struct dirent *task;
	char path[64];
	FILE *file;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	if (!tasks)
		return;
	while ((task = readdir(tasks))) {
		snprintf(path, sizeof(path), "/proc/%d/task/%.16s/children", pid,
			 task->d_name);
		file = *task->d_name == '.' ? NULL : fopen(path, "re");
		if (file)
			pids_read(pids, file);
	}
	closedir(tasks);
}

/* The processes of a control group and of those below it. */
static void add_group(struct pids *pids, const char *path)
{
	FILE *file = open_group(path);
	DIR *folder = opendir(path);
	struct dirent *entry;
	char below[PATH_MAX];

	if (file)
		pids_read(pids, file);
	while (folder && (entry = readdir(folder))) {
		if (entry->d_type != DT_DIR || *entry->d_name == '.')
			continue;
		if (snprintf(below, sizeof(below), "%s/%s", path, entry->d_name) <
		    (int)sizeof(below))
			add_group(pids, below);
	}
	if (folder)
		closedir(folder);
}

/* Returns false if the control group has gone. The end of a single process is seen by poll(). */
static bool find_processes(const struct reap *reap, struct pids *pids)
{
	size_t i;

	if (!reap->pid) {
		add_group(pids, reap->group);
		return pids->count || !access(reap->group, F_OK);
	}
	pids_add(pids, reap->pid);
	for (i = 0; i < pids->count; i++)
		add_children(pids, pids->pid[i]);
	return true;
}

static int compare(uint64_t one, uint64_t other)
{
	return one < other ? -1 : one > other;
}

static int by_inode(const void *one, const void *other)
{
	return compare(((const struct conn *)one)->inode,
		       ((const struct conn *)other)->inode);
}

static int by_cookie(const void *one, const void *other)
{
	return compare(conn_cookie(one), conn_cookie(other));
}

static struct conn *search(const struct conns *conns, const struct conn *like,
			   int (*by)(const void *one, const void *other))
{
	return conns->count ? bsearch(like, conns->conn, conns->count,
				      sizeof(*like), by) : NULL;
}

static void sort(struct conns *conns,
		 int (*by)(const void *one, const void *other))
{
	if (conns->count)
		qsort(conns->conn, conns->count, sizeof(*conns->conn), by);
}

/* Registers a token that is due after @delay. Returns the new state of the connection. */
enum conn_state conn_expect(struct reap *reap, const struct conn *conn,
			    uint64_t delay)
{
	struct timewheel_op op;

	tw_op_register(&op, conn_cookie(conn), delay, 0, 0);
	if (tw_wheel_run(reap->wheel, &op) >= 0)
		return CONN_EXPECTED;
	if (errno != ENOSPC && errno != ENOMEM)
		die(STATUS_FAILED, "cannot register a token: %s",
		    tw_strerror(errno));
	tell_full(reap);
	return CONN_NEW;
}

/* The connection with this cookie, or NULL. */
struct conn *conn_known(const struct reap *reap, uint64_t cookie)
{
	const struct conn like = {
		.tcp.id.idiag_cookie = { cookie, cookie >> 32 },
	};

	return search(&reap->known, &like, by_cookie);
}

/* A new connection gets a token that is due at once, and then its idle time is asked for. */
static void found(struct reap *reap, struct conn *conn)
{
	struct conn *known = conn_known(reap, conn_cookie(conn));
	uint64_t now = end_after(0);

	conn->look = reap->look;
	conn->since = known ? known->since : now;
	conn->state = known ? known->state : CONN_NEW;
	if (known)
		known->look = reap->look;
	if (conn->state != CONN_NEW || conn->listens ||
	    now - conn->since < reap->grace)
		return;
	if (conn->multipath) {
		conn->state = CONN_LEFT;
		tell_multipath(reap);
	} else {
		conn->state = conn_expect(reap, conn, 0);
	}
}

/* Goes through the files of a process. @all: sorted by inode. */
static void look_at_files(struct reap *reap, struct conns *all, DIR *files)
{
	struct conn like, *conn;
	struct dirent *entry;
	char text[64];
	ssize_t length;

	while ((entry = readdir(files))) {
		length = readlinkat(dirfd(files), entry->d_name, text,
				    sizeof(text) - 1);
		if (length < 0)
			continue;
		text[length] = '\0';
		if (sscanf(text, "socket:[%u]", &like.inode) != 1)
			continue;
		conn = search(all, &like, by_inode);
		if (conn && conn->look != reap->look)
			found(reap, conn);
	}
}

/*
 * Tells whether this look asks about the network namespace of a process. Returns false if a
 * right is missing, or if the process has gone.
 */
static bool use_space(struct reap *reap, pid_t pid)
{
	struct space *space;
	char process[16];

	snprintf(process, sizeof(process), "%d", pid);
	space = space_of(&reap->spaces, process);
	if (space)
		space->look = reap->look;
	else if (errno == EACCES)
		tell_ptrace(reap, pid);
	else if (errno == EPERM)
		tell_space(reap, pid);
	else if (errno != ENOENT && errno != ESRCH)
		die(STATUS_FAILED, "cannot ask for connections: %s",
		    strerror(errno));
	return space;
}

/* The sockets of servers in these namespaces, sorted by inode. */
static void ask_spaces(const struct reap *reap, struct conns *all)
{
	struct space *space;
	int err;

	for (space = reap->spaces; space; space = space->next) {
		if (space->look != reap->look)
			continue;
		err = diag_sockets(space, reap->port, all);
		if (err)
			exit(diag_trouble(err));
	}
	sort(all, by_inode);
}

/* Returns false if a right is missing, or the process has gone. */
static bool look_at_process(struct reap *reap, struct conns *all, pid_t pid)
{
	char path[64];
	DIR *files;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	files = opendir(path);
	if (!files && errno == EACCES)
		tell_files(reap, pid);
	if (!files)
		return false;
	look_at_files(reap, all, files);
	closedir(files);
	return true;
}

/* Whether the socket @listener, which listens, would accept the connection. */
static bool accepts(const struct conn *listener, const struct conn *conn)
{
	static const uint32_t any[4];
	const struct inet_diag_sockid *id = &listener->tcp.id;

	return listener->listens && listener->space == conn->space &&
	       id->idiag_sport == conn->tcp.id.idiag_sport &&
	       (!memcmp(id->idiag_src, any, sizeof(any)) ||
		(listener->tcp.family == conn->tcp.family &&
		 !memcmp(id->idiag_src, conn->tcp.id.idiag_src, sizeof(any))));
}

/*
 * Adds connections that no process has accepted yet, at sockets that the program listens with.
 * They come first in the list, as they have no inode.
 */
static void look_at_queues(struct reap *reap, struct conns *all)
{
	struct conns listeners = { };
	size_t i, j;

	for (i = 0; i < all->count; i++) {
		if (all->conn[i].listens && all->conn[i].look == reap->look)
			conns_add(&listeners, &all->conn[i]);
	}
	for (i = 0; i < all->count && !all->conn[i].inode; i++) {
		for (j = 0; j < listeners.count; j++) {
			if (accepts(&listeners.conn[j], &all->conn[i]))
				break;
		}
		if (j < listeners.count)
			found(reap, &all->conn[i]);
	}
	free(listeners.conn);
}

/* Adds all connections of the port, whatever process has them. */
static void look_at_port(struct reap *reap, struct conns *all)
{
	struct space *space = space_of(&reap->spaces, "self");
	size_t i;

	if (!space)
		die(STATUS_FAILED, "cannot ask for connections: %s",
		    strerror(errno));
	space->look = reap->look;
	ask_spaces(reap, all);
	for (i = 0; i < all->count; i++)
		found(reap, &all->conn[i]);
}

/*
 * Makes what this look has found the known connections. A connection that was not found stays
 * for one more look, because the kernel's answer is not of one moment.
 */
static void replace_known(struct reap *reap, const struct conns *all)
{
	struct conns known = { };
	struct timewheel_op op;
	size_t i;

	for (i = 0; i < all->count; i++) {
		if (all->conn[i].look == reap->look && !all->conn[i].listens)
			conns_add(&known, &all->conn[i]);
	}
	for (i = 0; i < reap->known.count; i++) {
		const struct conn *conn = &reap->known.conn[i];

		if (conn->look == reap->look)
			continue;
		if (conn->look + 1 == reap->look && conn->space->look == reap->look) {
			conns_add(&known, conn);
		} else if (conn->state == CONN_EXPECTED) {
			tw_op_cancel(&op, conn_cookie(conn), 0);
			tw_wheel_run(reap->wheel, &op);
		}
	}
	free(reap->known.conn);
	sort(&known, by_cookie);
	reap->known = known;
}

/* Finds the processes of the program and their connections. Returns false if they have gone. */
static bool look_at_program(struct reap *reap, struct conns *all)
{
	size_t i, kept = 0, looked = 0;
	struct pids pids = { };
	bool there = find_processes(reap, &pids);

	reap->denied = false;
	for (i = 0; i < pids.count; i++) {
		if (use_space(reap, pids.pid[i]))
			pids.pid[kept++] = pids.pid[i];
	}
	ask_spaces(reap, all);
	for (i = 0; i < kept; i++)
		looked += look_at_process(reap, all, pids.pid[i]);
	if (!looked && reap->denied)
		exit(STATUS_NOT_ALLOWED);
	look_at_queues(reap, all);
	free(pids.pid);
	return there;
}

/*
 * Finds the program's connections, and registers tokens for new ones. Returns
 * false if the control group has gone. Ends this program if it may look at no process.
 */
bool reap_look(struct reap *reap)
{
	struct conns all = { };
	bool there = true;

	reap->look++;
	if (reap->pid || *reap->group)
		there = look_at_program(reap, &all);
	else
		look_at_port(reap, &all);
	replace_known(reap, &all);
	spaces_trim(&reap->spaces, reap->look);
	free(all.conn);
	return there;
}
