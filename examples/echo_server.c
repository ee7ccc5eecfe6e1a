/* SPDX-License-Identifier: MIT-0 */
/*
 * Shows: a server whose sockets are requests: it returns what it receives, at a
 * port of this machine or a Unix socket, a name with a slash. Each worker
 * serves what it accepts, without locks. SIGINT and SIGTERM drain it.
 *
 * Try:   examples/echo_server 7007 & exec 3<>/dev/tcp/127.0.0.1/7007
 *        echo hello >&3; head -n 1 <&3; kill %1
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pinion/pinion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { ACCEPTS = 16, BYTES = 16 << 10, CLIENTS_A_WORKER = 4096, PAUSE_NS = 100000000 };

/* One request, which is a receive, a send and at last a close in turn. */
struct client {
	struct pinion_request request; /* first, so that its task leads back here */
	struct pinion_file socket;
	uint8_t bytes[BYTES];
};

static struct pinion_runtime *runtime;
static struct pinion_file listener;
static struct pinion_request accepts[ACCEPTS];

static void next(struct client *client, uint16_t op, int64_t length_bytes)
{
	client->request.op = op;
	client->request.length_bytes = (uint64_t)length_bytes;
	client->request.flags = op == PINION_OP_SEND ? MSG_WAITALL : 0;
	/* Refused where its ring is full, or nothing but a stop is left. */
	if (pinion_request_submit(runtime, &client->request) < 0) {
		close(client->socket.fd);
		free(client);
	}
}

static int serve(struct pinion_task *task)
{
	struct client *client = (struct client *)(void *)task;
	int has_bytes = client->request.op == PINION_OP_RECV;

	if (client->request.op == PINION_OP_CLOSE) {
		free(client);
	} else if (client->request.result <= 0) {
		next(client, PINION_OP_CLOSE, 0);
	} else {
		next(client, has_bytes ? PINION_OP_SEND : PINION_OP_RECV,
			has_bytes ? client->request.result : BYTES);
	}
	return 0;
}

static void welcome(int fd)
{
	struct client *client = calloc(1, sizeof(*client));

	if (client == NULL) {
		close(fd);
		return;
	}
	client->socket.fd = fd;
	client->request = (struct pinion_request){
		.task.run = serve, .file = &client->socket, .bytes = client->bytes};
	next(client, PINION_OP_RECV, BYTES);
}

/* Has a client, or an error, such as no descriptor, or a pause behind it. */
static int accept_next(struct pinion_task *task)
{
	struct pinion_request *request = (struct pinion_request *)(void *)task;
	int64_t result = request->result;
	int pauses = result < 0 && result != -ETIME; /* the end of a pause */
	int rc = 0;

	/* First, as it has a place in its ring, which the client might take. */
	if (pinion_runtime_is_accepting(runtime)) {
		request->op = pauses ? PINION_OP_TIMEOUT : PINION_OP_ACCEPT;
		request->deadline_ns = pauses ? pinion_clock_now_ns() + PAUSE_NS : 0;
		rc = pinion_request_submit(runtime, request);
	}
	if (result >= 0) {
		welcome((int)result);
	}
	return rc;
}

static int listen_at(const char *place)
{
	struct sockaddr_un path = {.sun_family = AF_UNIX};
	struct sockaddr_in port = {.sin_family = AF_INET};
	int is_path = strchr(place, '/') != NULL;
	struct sockaddr *address = is_path ? (void *)&path : (void *)&port;
	socklen_t bytes = is_path ? sizeof(path) : sizeof(port);

	snprintf(path.sun_path, sizeof(path.sun_path), "%s", place);
	port.sin_port = htons((uint16_t)atoi(place));
	port.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener.fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(listener.fd, address, bytes) < 0 || listen(listener.fd, SOMAXCONN) < 0 ||
		getsockname(listener.fd, address, &bytes) < 0) {
		return -errno;
	}
	printf("listens at %s, %d\n", place, ntohs(port.sin_port));
	return 0;
}

int main(int argc, char **argv)
{
	struct pinion_runtime_stats stats;
	struct pinion_tuning tuning;
	struct pinion_config config;
	sigset_t ends;
	int rc, sig;

	if (argc != 2 || strcmp(argv[1], "--help") == 0) {
		return puts("usage: echo_server PORT|PATH") < 0 || argc != 2 ? 2 : 0;
	}
	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	pinion_config_init(&config);
	pinion_tuning_init(&tuning);
	config.tuning = &tuning;
	tuning.ring_entries = CLIENTS_A_WORKER; /* each idle client holds one */
	rc = pinion_runtime_create(&config, &runtime);
	rc = rc < 0 ? rc : listen_at(argv[1]);
	for (int i = 0; rc == 0 && i < ACCEPTS; i++) {
		accepts[i] = (struct pinion_request){
			.task.run = accept_next, .op = PINION_OP_ACCEPT, .file = &listener};
		rc = pinion_request_submit(runtime, &accepts[i]); /* on the next worker */
	}
	if (rc < 0) {
		fprintf(stderr, "echo_server: %s: %s\n", argv[1], strerror(-rc));
		return 1;
	}
	fflush(stdout);
	sigwait(&ends, &sig);
	rc = pinion_runtime_drain(runtime);
	pinion_runtime_get_stats(runtime, &stats, sizeof(stats));
	printf("%llu bytes sent back\n", (unsigned long long)stats.sent_bytes);
	pinion_runtime_destroy(runtime);
	return rc == 0 ? 0 : 1;
}
