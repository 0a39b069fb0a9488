// SPDX-License-Identifier: GPL-2.0-only
/*
 * load: many users of twidled, each with its own connection. They log in and send
 * packets at a rate. Some fall silent for good at random moments, and keep their
 * connection or lose it. The ledger lists these users and the time of the last packet
 * of each; the service's reports are compared with it.
 *
 * All users send at the same rate, and are walked as a ring: the work depends on the packets,
 * not on the users.
 */
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define MS		1000000ULL
#define SEC		1000000000ULL
#define TURN		256
/* The load waits for so many connections at once, and no listener's queue becomes full. */
#define CONNECTING	512
/* The time before a lost or refused connection is tried again. */
#define RETRY		(200 * MS)
/* A source address has some 28,000 ports, but the last free ones are hard to find. */
#define PER_ADDRESS	4000

enum state {
	AWAY,		/* not connected, and will connect */
	CONNECTS,
	TALKS,
	SILENT,		/* silent for good, and may still be connected */
};

struct user {
	int fd;			/* -1: none */
	enum state state;
	uint64_t silent_after;	/* how long after the start it falls silent, 0: never */
	bool vanishes;		/* closes its connection when it falls silent */
	uint64_t retry;		/* AWAY: the earliest time to connect */
	uint64_t last;		/* a moment before it sent its last packet */
	uint64_t longest;	/* the longest time between two of its packets */
	uint64_t closed;	/* SILENT: when the service hung up */
};

static struct {
	int epoll;
	unsigned int *away;		/* ring of the users that are AWAY, in order */
	unsigned int away_first, away_count;
	unsigned int connecting;
	uint64_t turn_of;		/* the packets whose moment has come */
	uint64_t packets, skipped, connects, lost, refused;
} crew;

static struct {
	struct sockaddr_storage address;
	socklen_t length;
	unsigned int users, silent, vanish;
	uint64_t first, interval, from, until, time, timeout;
	double connect_rate;
	bool reconnect;
	const char *ledger;
} options;

static struct user *users;
static uint64_t began;			/* the time of the first connection */
static unsigned int logged_in;		/* users that have logged in once */
static uint64_t start;		/* when all users had logged in; 0: not yet */
static atomic_bool over;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * SEC + now.tv_nsec;
}

static void away(unsigned int number, uint64_t retry)
{
	users[number].state = AWAY;
	users[number].retry = retry;
	crew.away[(crew.away_first + crew.away_count++) % options.users] =
		number;
}

static void close_user(struct user *user)
{
	if (user->fd >= 0)
		close(user->fd);
	user->fd = -1;
}

/* Lets the user fall silent if its moment has come. Returns whether it is silent. */
static bool is_silent(struct user *user, uint64_t now)
{
	if (user->state == SILENT)
		return true;
	if (!user->silent_after || !start || now < start + user->silent_after)
		return false;
	/* A user whose connection is under way would still send its name. */
	if (user->state == CONNECTS)
		return false;
	user->state = SILENT;
	if (user->vanishes)
		close_user(user);
	return true;
}

/* Deals with a connection that is lost, or could not be made. */
static void lose(unsigned int number, uint64_t now)
{
	struct user *user = &users[number];

	close_user(user);
	if (is_silent(user, now)) {
		user->closed = now;
		return;
	}
	if (user->state == CONNECTS) {
		crew.connecting--;
		crew.refused++;
	} else {
		crew.lost++;
	}
	/*
	 * A user that does not connect again counts as silent in the ledger, as if it were planned.
	 */
	if (options.reconnect || !user->last)
		away(number, now + RETRY);
	else
		user->state = SILENT;
}

/* Returns true if the whole packet was sent. */
static bool send_packet(unsigned int number,
			const char *text, size_t length)
{
	struct user *user = &users[number];
	uint64_t now = now_ns();
	ssize_t bytes = send(user->fd, text, length,
			     MSG_NOSIGNAL | MSG_DONTWAIT);

	if (bytes == (ssize_t)length) {
		if (user->last && now - user->last > user->longest)
			user->longest = now - user->last;
		user->last = now;
		crew.packets++;
		return true;
	}
	if (bytes < 0 && errno != EAGAIN)
		lose(number, now);
	else
		crew.skipped++;
	return false;
}

static void bind_source(int fd, unsigned int number)
{
	struct sockaddr_in source = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 +
					 number / PER_ADDRESS),
	};
	const struct sockaddr_in *to = (struct sockaddr_in *)&options.address;
	const int on = 1;

	if (to->sin_family != AF_INET || ntohl(to->sin_addr.s_addr) >> 24 != 127)
		return;
	if (setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on)) ||
	    bind(fd, (struct sockaddr *)&source, sizeof(source)))
		err(1, "a source address");
}

static void connect_user(unsigned int number)
{
	struct user *user = &users[number];
	struct epoll_event event = {
		.events = EPOLLOUT | EPOLLIN,
		.data.u32 = number,
	};

	user->fd = socket(options.address.ss_family,
			  SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (user->fd < 0)
		err(1, "socket of user %u", number);
	bind_source(user->fd, number);
	user->state = CONNECTS;
	crew.connecting++;
	if (connect(user->fd, (struct sockaddr *)&options.address,
		    options.length) < 0 && errno != EINPROGRESS) {
		/* EAGAIN: the queue of a unix socket is full */
		lose(number, now_ns());
		return;
	}
	if (epoll_ctl(crew.epoll, EPOLL_CTL_ADD, user->fd, &event) < 0)
		err(1, "epoll");
}

/* Sends the first packet. When all users have sent theirs, the start is reached. */
static void log_in(unsigned int number)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = number };
	struct user *user = &users[number];
	bool first = !user->last;
	char hello[32];
	int error = 0;
	socklen_t length = sizeof(error);

	getsockopt(user->fd, SOL_SOCKET, SO_ERROR, &error, &length);
	if (error) {
		lose(number, now_ns());
		return;
	}
	crew.connecting--;
	crew.connects++;
	user->state = TALKS;
	if (epoll_ctl(crew.epoll, EPOLL_CTL_MOD, user->fd, &event) < 0)
		err(1, "epoll");
	sprintf(hello, "user %" PRIu64 "\n", options.first + number);
	if (!send_packet(number, hello, strlen(hello))) {
		/* The service would take the next bytes for the user's name. */
		if (user->fd >= 0)
			lose(number, now_ns());
		return;
	}
	if (first && ++logged_in == options.users)
		start = now_ns();
}

static void hear(const struct epoll_event *event)
{
	unsigned int number = event->data.u32;
	struct user *user = &users[number];
	char text[64];
	ssize_t bytes;

	if (user->fd < 0)
		return;
	if (user->state == CONNECTS) {
		log_in(number);
		return;
	}
	bytes = recv(user->fd, text, sizeof(text), 0);
	/* The service tells why it will hang up. */
	if (bytes == 0 || (bytes < 0 && errno != EAGAIN))
		lose(number, now_ns());
}

static void connect_some(uint64_t now)
{
	/* Connects at the rate that was asked for, counted since the beginning. */
	uint64_t most = options.connect_rate ?
		(double)(now - began) / SEC * options.connect_rate + 1 : UINT64_MAX;

	while (crew.away_count && crew.connecting < CONNECTING &&
	       (crew.connects + crew.connecting < most || start)) {
		unsigned int number = crew.away[crew.away_first];

		if (users[number].retry > now)
			break;
		crew.away_first = (crew.away_first + 1) % options.users;
		crew.away_count--;
		if (!is_silent(&users[number], now))
			connect_user(number);
	}
}

/* Sends for the users whose moment has come. After a stall each user sends only once. */
static void send_some(uint64_t now)
{
	uint64_t due = (now - began) * (double)options.users / options.interval;

	if (due > crew.turn_of + options.users)
		crew.turn_of = due - options.users;
	for (; crew.turn_of < due; crew.turn_of++) {
		unsigned int number = crew.turn_of % options.users;

		if (!is_silent(&users[number], now) &&
		    users[number].state == TALKS)
			send_packet(number, "alive\n", 6);
	}
}

static void work(void)
{
	unsigned int i;

	for (i = 0; i < options.users; i++)
		away(i, 0);
	while (!over) {
		struct epoll_event events[TURN];
		uint64_t now = now_ns();
		int j, n;

		connect_some(now);
		send_some(now);
		n = epoll_wait(crew.epoll, events, TURN, 10);
		for (j = 0; j < n; j++)
			hear(&events[j]);
		if (options.time && start && now > start + options.time)
			break;
	}
}

static void plan(void)
{
	unsigned int i;

	users = calloc(options.users, sizeof(*users));
	if (!users)
		err(1, "users");
	for (i = 0; i < options.users; i++)
		users[i].fd = -1;
	srandom(1);
	for (i = 0; i < options.silent;) {
		struct user *user = &users[random() % options.users];

		if (user->silent_after)
			continue;
		user->silent_after = options.from + random() * MS %
			(options.until - options.from + 1);
		user->vanishes = i < options.vanish;
		i++;
	}
}

/*
 * silent USER LAST CLOSED: the user sent its last packet at LAST
 * gap USER LONGEST: the user goes on, but paused for longer than the timeout
 */
static void write_ledger(uint64_t end)
{
	FILE *file = fopen(options.ledger, "we");
	unsigned int i;

	if (!file)
		err(1, "%s", options.ledger);
	for (i = 0; i < options.users; i++) {
		struct user *user = &users[i];

		/* A pause that is not over counts, too. */
		if (user->state != SILENT && end - user->last > user->longest)
			user->longest = end - user->last;
		if (user->state == SILENT)
			fprintf(file, "silent %" PRIu64 " %.9f %.9f\n",
				options.first + i, (double)user->last / SEC,
				(double)user->closed / SEC);
		if (user->longest > options.timeout)
			fprintf(file, "gap %" PRIu64 " %.9f\n",
				options.first + i, (double)user->longest / SEC);
	}
	if (fclose(file))
		err(1, "%s", options.ledger);
}

static void report(void)
{
	unsigned int i, silent = 0;
	uint64_t longest = 0, now = now_ns();

	for (i = 0; i < options.users; i++) {
		silent += users[i].state == SILENT;
		if (users[i].longest > longest)
			longest = users[i].longest;
	}
	printf("users %u, logged in after %.1f s; in %.1f s then: silent %u\n",
	       options.users, start ? (double)(start - began) / SEC : 0.0,
	       start ? (double)(now - start) / SEC : 0.0, silent);
	printf("connections %" PRIu64 ", refused %" PRIu64 ", lost %" PRIu64
	       "; packets %" PRIu64 " (%.0f/s), skipped %" PRIu64
	       "; longest pause of a user that goes on %.3f s\n",
	       crew.connects, crew.refused, crew.lost, crew.packets,
	       crew.packets / ((double)(now - began) / SEC), crew.skipped,
	       (double)longest / SEC);
}

static void on_signal(int signal)
{
	(void)signal;
	over = true;
}

static void run(void)
{
	crew.away = calloc(options.users, sizeof(*crew.away));
	crew.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!crew.away || crew.epoll < 0)
		err(1, "the users");
	began = now_ns();
	work();
}

/* Parses ADDRESS:PORT in numbers, or the path of a unix socket. */
static void parse_address(char *text)
{
	struct sockaddr_un *path = (struct sockaddr_un *)&options.address;
	const struct addrinfo hints = {
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
		.ai_socktype = SOCK_STREAM,
	};
	char *port = strrchr(text, ':');
	struct addrinfo *found;

	if (text[0] == '/' && strlen(text) < sizeof(path->sun_path)) {
		path->sun_family = AF_UNIX;
		strcpy(path->sun_path, text);
		options.length = sizeof(*path);
		return;
	}
	if (!port)
		errx(2, "\"%s\" is neither ADDRESS:PORT nor a path", text);
	*port++ = '\0';
	if (getaddrinfo(text, port, &hints, &found))
		errx(2, "\"%s\", \"%s\" is no address", text, port);
	memcpy(&options.address, found->ai_addr, found->ai_addrlen);
	options.length = found->ai_addrlen;
	freeaddrinfo(found);
}

__attribute__((__noreturn__))
static void usage(FILE *to, int status)
{
	fputs("load [OPTION]...\n"
	      "  --to ADDRESS:PORT|PATH  the service (127.0.0.1:7075)\n"
	      "  --users N               users, one connection each (1000)\n"
	      "  --first ID              the first one's number (1)\n"
	      "  --rate N                packets per second of all (users / 10)\n"
	      "  --connect-rate N        connections per second at first (0: all)\n"
	      "  --silent N              this many users fall silent (0)\n"
	      "  --vanish N              this many of these also hang up (0)\n"
	      "  --from S --until S      when, after all have logged in (1, 10)\n"
	      "  --time S                how long, after that (0: until SIGTERM)\n"
	      "  --timeout S             longer pauses are in the ledger (30)\n"
	      "  --reconnect             connect again when the service hangs up\n"
	      "  --ledger FILE           list the users that fell silent\n", to);
	exit(status);
}

static double parse_number(const char *text)
{
	char *end;
	double value = strtod(text, &end);

	if (*end || end == text || !(value >= 0))
		errx(2, "\"%s\" is no number", text);
	return value;
}

/* The options; the first ones take numbers. */
enum {
	USERS, FIRST, RATE, CONNECT_RATE, SILENT_USERS, VANISH, FROM, UNTIL, TIME,
	TIMEOUT, NUMBERS,
	TO = NUMBERS, RECONNECT, LEDGER, HELP,
};

static void parse_options(int argc, char **argv, double *numbers)
{
	static const struct option names[] = {
		{ "users", required_argument, NULL, USERS },
		{ "first", required_argument, NULL, FIRST },
		{ "rate", required_argument, NULL, RATE },
		{ "connect-rate", required_argument, NULL, CONNECT_RATE },
		{ "silent", required_argument, NULL, SILENT_USERS },
		{ "vanish", required_argument, NULL, VANISH },
		{ "from", required_argument, NULL, FROM },
		{ "until", required_argument, NULL, UNTIL },
		{ "time", required_argument, NULL, TIME },
		{ "timeout", required_argument, NULL, TIMEOUT },
		{ "to", required_argument, NULL, TO },
		{ "reconnect", no_argument, NULL, RECONNECT },
		{ "ledger", required_argument, NULL, LEDGER },
		{ "help", no_argument, NULL, HELP },
		{ }
	};
	char standard[] = "127.0.0.1:7075";
	int option;

	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (option >= 0 && option < NUMBERS)
			numbers[option] = parse_number(optarg);
		else if (option == TO)
			parse_address(optarg);
		else if (option == RECONNECT)
			options.reconnect = true;
		else if (option == LEDGER)
			options.ledger = optarg;
		else if (option == HELP)
			usage(stdout, 0);
		else
			usage(stderr, 2);
	}
	if (optind < argc)
		usage(stderr, 2);
	if (!options.length)
		parse_address(standard);
}

static void set_options(int argc, char **argv)
{
	double numbers[NUMBERS] = {
		[USERS] = 1000, [FIRST] = 1, [FROM] = 1, [UNTIL] = 10,
		[TIMEOUT] = 30,
	};

	parse_options(argc, argv, numbers);
	if (numbers[USERS] < 1 ||
	    numbers[SILENT_USERS] > numbers[USERS] ||
	    numbers[VANISH] > numbers[SILENT_USERS] ||
	    numbers[FROM] <= 0 || numbers[UNTIL] < numbers[FROM])
		usage(stderr, 2);
	options.users = numbers[USERS];
	options.first = numbers[FIRST];
	/* The interval is the time from one packet of a user to its next. */
	options.interval = numbers[RATE] ?
		numbers[USERS] / numbers[RATE] * SEC : 10 * SEC;
	options.connect_rate = numbers[CONNECT_RATE];
	options.silent = numbers[SILENT_USERS];
	options.vanish = numbers[VANISH];
	options.from = numbers[FROM] * SEC;
	options.until = numbers[UNTIL] * SEC;
	options.time = numbers[TIME] * SEC;
	options.timeout = numbers[TIMEOUT] * SEC;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct rlimit limit;

	set_options(argc, argv);
	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	plan();
	run();
	if (options.ledger)
		write_ledger(now_ns());
	report();
	/* The load was not the requested one if it had fewer users. */
	return start ? 0 : 1;
}
