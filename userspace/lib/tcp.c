// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Tells when data last came in on TCP connections: the caller's own by getsockopt(2),
 * connections of other processes by sock_diag(7). The kernel answers a request of sock_diag
 * before send(2) returns, into the socket's buffer, and drops what has no room there.
 */
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "internal.h"

#ifndef SO_BINDTOIFINDEX
#define SO_BINDTOIFINDEX	62
#endif

/* The number of questions in one send(2). A socket's buffer of usual size holds their answers. */
#define QUESTIONS	64

/* No answer is longer. Of a longer answer only the end would be missing, which nobody reads. */
#define ANSWER_SIZE	2048

struct question {
	struct nlmsghdr			header;
	struct inet_diag_req_v2		body;
};

static int socket_option(int fd, int option)
{
	int value = 0;
	socklen_t length = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, option, &value, &length) < 0 ? -1 :
									  value;
}

static bool is_connected(int state)
{
	return state != TCP_LISTEN && state != TCP_CLOSE && state != TCP_SYN_SENT;
}

/* Gets what TCP tells of a connection of the calling process. Returns -1 and errno. */
static int get_info(int fd, struct tcp_info *info)
{
	int protocol = socket_option(fd, SO_PROTOCOL);
	socklen_t length = sizeof(*info);

	if (protocol < 0)
		return -1;
	memset(info, 0, sizeof(*info));
	/* MPTCP would tell of only one of a connection's paths. */
	if (protocol != IPPROTO_TCP ||
	    getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &length) < 0) {
		errno = EPROTONOSUPPORT;
		return -1;
	}
	if (is_connected(info->tcpi_state))
		return 0;
	errno = ENOTCONN;
	return -1;
}

int64_t tw_tcp_idle(int fd)
{
	struct tcp_info info;

	if (get_info(fd, &info) < 0)
		return -1;
	return TW_MS(info.tcpi_last_data_recv);
}

/* Finds one end of a connection. Returns its address family. */
static int take_address(const struct sockaddr_storage *name, __be32 *address,
			__be16 *port)
{
	const struct sockaddr_in6 *six = (const void *)name;
	const struct sockaddr_in *four = (const void *)name;

	if (name->ss_family == AF_INET6) {
		memcpy(address, &six->sin6_addr, sizeof(six->sin6_addr));
		*port = six->sin6_port;
	} else {
		memcpy(address, &four->sin_addr, sizeof(four->sin_addr));
		*port = four->sin_port;
	}
	return name->ss_family;
}

int tw_tcp_name(int fd, struct tw_tcp *tcp)
{
	struct sockaddr_storage local = { }, remote = { };
	socklen_t local_size = sizeof(local), remote_size = sizeof(remote);
	struct tw_tcp new = { };
	socklen_t length = sizeof(new.id.idiag_cookie);
	struct tcp_info info;
	int interface;

	if (get_info(fd, &info) < 0 ||
	    getsockname(fd, (struct sockaddr *)&local, &local_size) < 0 ||
	    getpeername(fd, (struct sockaddr *)&remote, &remote_size) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_COOKIE, new.id.idiag_cookie, &length) < 0)
		return -1;
	interface = socket_option(fd, SO_BINDTOIFINDEX);
	take_address(&remote, new.id.idiag_dst, &new.id.idiag_dport);
	new.family = take_address(&local, new.id.idiag_src, &new.id.idiag_sport);
	new.id.idiag_if = interface > 0 ? interface : 0;
	*tcp = new;
	return 0;
}

/* Finds the beginning of the kernel's struct tcp_info, as far as the answer has it. */
static void find_info(struct tcp_info *info, const struct inet_diag_msg *socket,
		      const char *end)
{
	const struct nlattr *attr = (const void *)(socket + 1);

	while ((const char *)(attr + 1) <= end && attr->nla_len >= sizeof(*attr)) {
		const char *next = (const char *)attr + NLA_ALIGN(attr->nla_len);
		size_t size = attr->nla_len - sizeof(*attr);

		if (attr->nla_type == INET_DIAG_INFO && next <= end)
			memcpy(info, attr + 1,
			       size < sizeof(*info) ? size : sizeof(*info));
		attr = (const void *)next;
	}
}

/*
 * Whether a connection has ended. A connection that no process has accepted yet has no inode
 * either, but a closed one is never in one of these states.
 */
static bool has_ended(const struct inet_diag_msg *socket)
{
	return !socket->idiag_inode && socket->idiag_state != TCP_ESTABLISHED &&
	       socket->idiag_state != TCP_CLOSE_WAIT &&
	       socket->idiag_state != TCP_SYN_RECV;
}

static void take_socket(struct tw_tcp *tcp, const struct inet_diag_msg *socket,
			const char *end)
{
	struct tcp_info info = { };

	if (memcmp(socket->id.idiag_cookie, tcp->id.idiag_cookie,
		   sizeof(tcp->id.idiag_cookie)))
		return;
	find_info(&info, socket, end);
	tcp->error = has_ended(socket) ? ENOTCONN : 0;
	tcp->received = TW_MS(info.tcpi_last_data_recv);
	tcp->sent = TW_MS(info.tcpi_last_data_sent);
}

/* Stores one answer with the question of its number. */
static void take_answer(struct tw_tcp *tcp, size_t count,
			const struct nlmsghdr *header, const char *end)
{
	const struct nlmsgerr *error = NLMSG_DATA(header);
	const struct inet_diag_msg *socket = NLMSG_DATA(header);

	if ((const char *)NLMSG_DATA(header) > end || header->nlmsg_seq >= count)
		return;
	tcp += header->nlmsg_seq;
	if (header->nlmsg_type == SOCK_DIAG_BY_FAMILY &&
	    (const char *)(socket + 1) <= end)
		take_socket(tcp, socket, end);
	else if (header->nlmsg_type == NLMSG_ERROR &&
		 (const char *)(error + 1) <= end)
		tcp->error = error->error == -ENOENT || error->error == -ESTALE ?
			     ENOTCONN : -error->error;
}

/* Takes all answers there are. Returns -1 and errno if the socket has failed. */
static int take_answers(int diag, struct tw_tcp *tcp, size_t count)
{
	char answer[ANSWER_SIZE] __attribute__((aligned(8)));
	ssize_t length;

	for (;;) {
		length = recv(diag, answer, sizeof(answer), MSG_DONTWAIT);
		if (length < 0 && errno == EAGAIN)
			return 0;
		/*
		 * Some answers had no room in the buffer: the caller sees which questions have
		 * none.
		 */
		if (length < 0 && errno != ENOBUFS)
			return -1;
		if (length > 0)
			take_answer(tcp, count, (const void *)answer,
				    answer + length);
	}
}

static ssize_t send_questions(int diag, const struct tw_tcp *tcp, size_t count)
{
	struct question questions[QUESTIONS];
	size_t i;

	for (i = 0; i < count; i++) {
		questions[i] = (struct question) {
			.header = {
				.nlmsg_len = sizeof(*questions),
				.nlmsg_type = SOCK_DIAG_BY_FAMILY,
				.nlmsg_flags = NLM_F_REQUEST,
				.nlmsg_seq = i,
			},
			.body = {
				.sdiag_family = tcp[i].family,
				.sdiag_protocol = IPPROTO_TCP,
				.idiag_ext = 1 << (INET_DIAG_INFO - 1),
				.idiag_states = -1,
				.id = tcp[i].id,
			},
		};
	}
	return send(diag, questions, count * sizeof(*questions), 0);
}

/* Returns how many questions, from the first on, have their answers; or -1 and errno. */
static ssize_t ask_some(int diag, struct tw_tcp *tcp, size_t count)
{
	size_t i;

	if (count > QUESTIONS)
		count = QUESTIONS;
	if (send_questions(diag, tcp, count) < 0 ||
	    take_answers(diag, tcp, count) < 0)
		return -1;
	for (i = 0; i < count && tcp[i].error != EINPROGRESS; i++)
		;
	if (i)
		return i;
	errno = ENOBUFS;
	return -1;
}

/*
 * A kernel without tcp_diag gives the error that it gives for a connection which is not there.
 * For this reason the kernel is asked to list the connections that are in no state at all.
 */
static int check_kernel(int diag, uint8_t family)
{
	const struct question question = {
		.header = {
			.nlmsg_len = sizeof(question),
			.nlmsg_type = SOCK_DIAG_BY_FAMILY,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
		},
		.body = {
			.sdiag_family = family,
			.sdiag_protocol = IPPROTO_TCP,
		},
	};
	struct {
		struct nlmsghdr	header;
		int		error;
	} answer;

	if (send(diag, &question, sizeof(question), 0) < 0)
		return -1;
	if (recv(diag, &answer, sizeof(answer), MSG_DONTWAIT) < 0)
		return -1;
	if (answer.error != -ENOENT)
		return 0;
	errno = EPROTONOSUPPORT;
	return -1;
}

int tw_tcp_ask(int diag, struct tw_tcp *tcp, size_t count)
{
	bool any = false;
	ssize_t answered;
	size_t i;

	for (i = 0; i < count; i++)
		tcp[i].error = EINPROGRESS;
	for (i = 0; i < count; i += answered) {
		answered = ask_some(diag, tcp + i, count - i);
		if (answered < 0)
			return -1;
	}
	for (i = 0; i < count; i++)
		any |= tcp[i].error != ENOTCONN;
	return any || !count ? 0 : check_kernel(diag, tcp->family);
}
