/* SPDX-License-Identifier: MIT */
/*
 * Goal: examples/echo_server sends back each byte, of many clients at a time,
 * at a port and at a Unix socket; half-closes, resets and idle clients hurt no
 * other; clients beyond its descriptors are served when some are free again;
 * a signal ends it, with status 0 and the sum of its bytes.
 * Method: the program itself, and threads with blocking sockets.
 */
#include "tests/support/expect.h"
#include "tests/support/runtimes.h"
#include "tests/support/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

enum {
	LIMIT_SECONDS = 120,
	CLIENTS = 24,
	ROUNDS = 12,
	BYTES = 50000,
	DESCRIPTORS = 96,
	CROWD = 150,
};

static char program[4096];
static pid_t server;
static FILE *output;
static struct sockaddr_in port_place = {.sin_family = AF_INET};
static struct sockaddr_un path_place = {.sun_family = AF_UNIX};
static bool is_path;

static void start(const char *place, rlim_t descriptors)
{
	int ends[2];
	int port = -1;
	char text[128];

	is_path = strchr(place, '/') != NULL;
	expect_ready("pipe", pipe2(ends, O_CLOEXEC) == 0);
	server = fork();
	expect_ready("fork", server >= 0);
	if (server == 0) {
		struct rlimit limit = {descriptors, descriptors};

		dup2(ends[1], STDOUT_FILENO);
		if (descriptors != 0) {
			setrlimit(RLIMIT_NOFILE, &limit);
		}
		execl(program, program, place, (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	output = fdopen(ends[0], "r");
	expect_ready("its first line", fgets(text, sizeof(text), output) != NULL);
	expect_ready("its port", sscanf(text, "listens at %*[^,], %d", &port) == 1);
	port_place.sin_port = htons((uint16_t)port);
	port_place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	snprintf(path_place.sun_path, sizeof(path_place.sun_path), "%s", place);
}

static void end(int sig, unsigned long long bytes)
{
	char text[128] = "";
	char expected[128];
	int status = -1;

	expect_number("signal", 0, kill(server, sig));
	expect_number("its end", server, waitpid(server, &status, 0));
	expect_number("status", 0, status);
	snprintf(expected, sizeof(expected), "%llu bytes sent back\n", bytes);
	expect_true("its last line", fgets(text, sizeof(text), output) != NULL);
	expect_text("its sum", expected, text);
	fclose(output);
}

static int join(void)
{
	int fd = socket(is_path ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const struct sockaddr *place = is_path ? (const struct sockaddr *)&path_place
					       : (const struct sockaddr *)&port_place;

	expect_ready("connect",
		connect(fd, place, is_path ? sizeof(path_place) : sizeof(port_place)) == 0);
	return fd;
}

/* Bytes that no other client has. */
static void *talk(void *arg)
{
	uint32_t number = (uint32_t)(uintptr_t)arg;
	static _Thread_local uint8_t out[BYTES];
	static _Thread_local uint8_t in[BYTES];
	struct linger reset = {1, 0};
	int fd = join();

	for (uint32_t round = 0; round < ROUNDS; round++) {
		for (uint32_t i = 0; i < BYTES; i++) {
			out[i] = (uint8_t)(i * 7 + i / 251 + number * 13 + round);
		}
		expect_number("out", BYTES, send(fd, out, BYTES, MSG_NOSIGNAL));
		expect_number("and in", BYTES, recv(fd, in, BYTES, MSG_WAITALL));
		expect_true("the same", memcmp(in, out, BYTES) == 0);
	}
	if (number % 3 == 0) {
		expect_number("no more", 0, shutdown(fd, SHUT_WR));
		expect_number("closed", 0, recv(fd, in, BYTES, 0));
	} else if (number % 3 == 1) {
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	}
	close(fd);
	return NULL;
}

static void check_clients(const char *place, int sig)
{
	pthread_t threads[CLIENTS];
	char byte;
	int idle;

	start(place, 0);
	idle = join();
	for (uint32_t i = 0; i < CLIENTS; i++) {
		expect_ready("thread",
			pthread_create(&threads[i], NULL, talk, (void *)(uintptr_t)i) == 0);
	}
	for (uint32_t i = 0; i < CLIENTS; i++) {
		pthread_join(threads[i], NULL);
	}
	expect_number("late, but there", 1, send(idle, "x", 1, MSG_NOSIGNAL));
	expect_number("and back", 1, recv(idle, &byte, 1, 0));
	end(sig, (unsigned long long)CLIENTS * ROUNDS * BYTES + 1);
	expect_number("closed by the end", 0, recv(idle, &byte, 1, 0));
	close(idle);
}

/* The last has to wait until the first have gone. */
static void check_crowd(const char *place)
{
	int fds[CROWD];
	char byte;

	start(place, DESCRIPTORS);
	for (int i = 0; i < CROWD; i++) {
		fds[i] = join();
	}
	expect_number("a question", 1, send(fds[CROWD - 1], "x", 1, MSG_NOSIGNAL));
	expect_number("the first is served", 1, send(fds[0], "y", 1, MSG_NOSIGNAL));
	expect_number("meanwhile", 1, recv(fds[0], &byte, 1, 0));
	expect_number("not the last", -1, recv(fds[CROWD - 1], &byte, 1, MSG_DONTWAIT));
	for (int i = 0; i < CROWD - 1; i++) {
		close(fds[i]);
	}
	expect_number("then it is", 1, recv(fds[CROWD - 1], &byte, 1, 0));
	expect_number("its own", 'x', byte);
	close(fds[CROWD - 1]);
	end(SIGTERM, 2);
}

int main(int argc, char **argv)
{
	static char here[4096];

	(void)argc;
	runtimes_watchdog(LIMIT_SECONDS);
	expect_ready("place", realpath(argv[0], here) != NULL);
	snprintf(program, sizeof(program), "%.3000s/../../../examples/echo_server", dirname(here));
	if (access(program, X_OK) != 0) {
		printf("skipped: %s is not there\n", program);
		return 77;
	}
	scratch_enter("echo_server_serves_clients");
	check_clients("0", SIGINT);
	check_clients("./place", SIGTERM);
	unlink("./place");
	check_crowd("0");
	check_crowd("./place");
	scratch_leave();
	return expect_status();
}
